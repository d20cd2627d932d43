// Package await has a program of Kubernetes wait for its API server or its etcd before it begins, where upstream's
// ends: kubelet starts such a program again after pauses of up to five minutes, so it would stay away longer than what
// it needs.
// Trellis' own programs have pkg/managers for that. This module cannot import it: it is built with several versions of
// Kubernetes.
package await

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// interval lies between two questions to the API server.
	interval = time.Second
	// patienceForAnAnswer is how long one waits.
	patienceForAnAnswer = 10 * time.Second
	// sayEvery lies between two lines in the log.
	sayEvery = 30 * time.Second
)

// Program is one that needs another one when it begins.
type Program struct {
	// Name is what the log calls it.
	Name string
	// Args are its flags, as --name=value or --name value.
	Args []string
	// Port is where it serves, by HTTPS, unless --secure-port names another.
	Port int
	// Alive is the path by which kubelet asks there whether it is alive; /healthz if it is empty.
	Alive string
	// Log gets lines that say what is waited for.
	Log io.Writer
}

// APIServer returns when the API server that --kubeconfig leads to is ready; at once without that flag, or where the
// file leads nowhere, as the program says that itself. Meanwhile kubelet finds the program alive at its own port, which
// is free again afterwards. An error says that ctx ended, and what was waited for.
func APIServer(ctx context.Context, p Program) error {
	kubeconfig := p.flag("kubeconfig")
	if kubeconfig == "" {
		return nil
	}
	server, err := serverOf(kubeconfig)
	if err != nil {
		p.say("not waiting for an API server: %v", err)
		return nil
	}
	return p.await(ctx, "its API server is ready", server.unready)
}

// await returns when there is no reason to wait any more, and says which there is until then.
func (p Program) await(ctx context.Context, until string, reasonToWait func(context.Context) error) error {
	reason := reasonToWait(ctx)
	if reason == nil {
		return nil
	}
	defer p.answerProbes()()
	for said := (time.Time{}); reason != nil; reason = reasonToWait(ctx) {
		if time.Since(said) >= sayEvery {
			p.say("waiting until %s: %v", until, reason)
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("told to end while waiting until %s: %w", until, reason)
		case <-time.After(interval):
		}
	}
	p.say("waiting no longer")
	return nil
}

func (p Program) say(format string, values ...any) {
	fmt.Fprintf(p.Log, "%s: %s\n", p.Name, fmt.Sprintf(format, values...))
}

// flag returns the value of a flag, the last one where it is given several times, or "".
func (p Program) flag(name string) string {
	value := ""
	for i, arg := range p.Args {
		given, found := strings.CutPrefix(arg, "--"+name)
		switch {
		case found && strings.HasPrefix(given, "="):
			value = given[1:]
		case found && given == "" && i+1 < len(p.Args):
			value = p.Args[i+1]
		}
	}
	return value
}

// apiServer is asked whether it is ready.
type apiServer struct {
	client   *http.Client
	question *http.Request
}

// serverOf is the API server that a kubeconfig leads to.
func serverOf(kubeconfig string) (apiServer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return apiServer{}, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return apiServer{}, fmt.Errorf("client for the kubeconfig %s: %w", kubeconfig, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return apiServer{}, fmt.Errorf("server of the kubeconfig %s: %w", kubeconfig, err)
	}
	question, err := http.NewRequest(http.MethodGet, base.JoinPath("readyz").String(), nil)
	return apiServer{client: client, question: question}, err
}

// unready is why a program has to wait for the server; nil where it has not. Also what is forbidden is waited for: a
// server that begins knows no rights yet. A server with another certificate than expected is not: whom a program
// trusts, it reads when it begins.
func (s apiServer) unready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patienceForAnAnswer)
	defer cancel()
	response, err := s.client.Do(s.question.WithContext(ctx))
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return nil
	case err != nil:
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	reason := fmt.Errorf("GET %s: %s", s.question.URL, response.Status)
	if failed := failedChecks(response.Body); len(failed) > 0 {
		return fmt.Errorf("%w: %s", reason, strings.Join(failed, "; "))
	}
	return reason
}

// failedChecks are those of /readyz, one of whose lines says "[-]etcd failed: reason withheld" where etcd is away.
func failedChecks(answer io.Reader) []string {
	var failed []string
	lines := bufio.NewScanner(io.LimitReader(answer, 64<<10))
	for lines.Scan() {
		if check, ok := strings.CutPrefix(lines.Text(), "[-]"); ok {
			failed = append(failed, check)
		}
	}
	return failed
}
