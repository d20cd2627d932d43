//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// probePeriod is the time between requests; each may take probeTimeout. One that fails is tried again once, after
	// probePause: at once, it would only find that what has just stopped has stopped.
	probePeriod  = 100 * time.Millisecond
	probeTimeout = 5 * time.Second
	probePause   = time.Second
)

// probes are counts of requests.
type probes struct {
	// all requests, those that were answered when they were tried again, and those that failed then, too.
	all, retried, failed int
	// longest is the longest time without an answer.
	longest time.Duration
	// last is the last failure, if there was one.
	last string
}

func (p probes) String() string {
	text := fmt.Sprintf("%d requests, %d answered when tried again, %d failed; %s without an answer at the longest",
		p.all, p.retried, p.failed, p.longest.Round(time.Millisecond))
	if p.last != "" {
		text += " (last failure: " + p.last + ")"
	}
	return text
}

// allAnswered tells what came of requests, none of which may have failed.
func (p probes) allAnswered(t *testing.T, whom string) {
	t.Helper()
	t.Logf("%s: %s", whom, p)
	if p.all == 0 || p.failed > 0 {
		t.Errorf("%s did not answer all requests: %s", whom, p)
	}
}

// counted tells what came of requests, of which some have to have been answered. How long there was no answer depends
// on what else the machine has to do, so that it is told and not judged.
func (p probes) counted(t *testing.T, whom string) {
	t.Helper()
	t.Logf("%s: %s", whom, p)
	if p.failed >= p.all {
		t.Errorf("%s did not answer any request: %s", whom, p)
	}
}

// count notes a request: what came of it at first, and what in the end.
func (p *probes) count(first, inTheEnd error) {
	p.all++
	switch {
	case inTheEnd != nil:
		p.failed++
	case first != nil:
		p.retried++
	default:
		return
	}
	p.last = fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), first)
}

// prober asks an API server until it is stopped.
type prober struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	probes  probes
}

// probeAPI reads an object of a cluster ten times a second, with the authorities and the credentials of a kubeconfig.
func probeAPI(t *testing.T, k kubectl) *prober {
	t.Helper()
	ask := askAPI(t, k)
	ctx, cancel := context.WithCancel(t.Context())
	p := &prober{cancel: cancel}
	p.running.Go(func() { p.run(ctx, ask) })
	return p
}

// askAPI returns what asks for an object, which is read from etcd. Each request has a connection of its own, as those
// of kubectl have. So it comes to any of the API servers, and no client tries again behind the prober's back.
func askAPI(t *testing.T, k kubectl) func(context.Context) error {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPWrappersForConfig(config,
		&http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport, Timeout: probeTimeout}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/default", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", response.Status, body)
		}
		return err
	}
}

func (p *prober) run(ctx context.Context, ask func(context.Context) error) {
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	answered := time.Now()
	answer := func() {
		p.probes.longest = max(p.probes.longest, time.Since(answered))
		answered = time.Now()
	}
	defer answer() // What was not answered until the end counts.
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		first := ask(ctx)
		inTheEnd := first
		if first != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(probePause):
			}
			inTheEnd = ask(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		p.probes.count(first, inTheEnd)
		if inTheEnd == nil {
			answer()
		}
	}
}

// stop ends the probing, and tells what came of it.
func (p *prober) stop() probes {
	p.cancel()
	p.running.Wait()
	return p.probes
}

// What is away for three seconds does not answer two requests, and a third one when it is tried again.
func TestProberCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, begin := &prober{cancel: cancel}, time.Now()
		p.running.Go(func() {
			p.run(ctx, func(context.Context) error {
				if at := time.Since(begin); at >= time.Second && at < 4*time.Second {
					return errors.New("away")
				}
				return nil
			})
		})
		time.Sleep(5 * time.Second) // of the test's own clock
		told := p.stop()
		if told.failed != 2 || told.retried != 1 || told.all < 10 || told.longest != 3100*time.Millisecond ||
			!strings.HasSuffix(told.last, ": away") {
			t.Errorf("got %s", told)
		}
	})
}

// webProber is a web server in a shoot, and what asks it there.
type webProber struct{ manifest string }

// probeWeb has a web server in a pool of a shoot, and pods that ask it, see testdata/web.yaml.
func (l *landscape) probeWeb(t *testing.T, name, pool string, shoot kubectl) webProber {
	t.Helper()
	text, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := webProber{strings.ReplaceAll(string(text), "POOL", pool)}
	folder := t.TempDir()
	t.Cleanup(func() {
		// The shoot may have got other credentials since, or be gone.
		if k, err := l.tryShoot(context.Background(), folder, "demo", name); err == nil {
			_ = w.remove(context.Background(), k)
		}
	})
	shoot.apply(t, w.manifest)
	for _, deployment := range []string{"deployment/web", "deployment/prober"} {
		shoot.run(t, "rollout", "status", deployment, "--timeout=3m")
	}
	shoot.eventually(t, time.Minute, contains("begun-"), toldByProbers...)
	return w
}

// toldByProbers are arguments of kubectl that print the counts of pods: when they began, and when they ended.
var toldByProbers = []string{
	"get", "configmaps", "-l", "app=prober", "-o",
	"go-template={{range .items}}{{.metadata.name}} {{.data.all}} {{.data.failed}} {{.data.longest}} {{.data.last}}\n" +
		"{{end}}",
}

// stop ends the probing, and tells what came of it.
func (w webProber) stop(t *testing.T, shoot kubectl) probes {
	t.Helper()
	// When the pods are gone, they have told their counts.
	shoot.run(t, "delete", "deployment/prober", "--cascade=foreground", "--timeout=2m")
	told := shoot.run(t, toldByProbers...)
	sum, err := sumOf(told)
	if err != nil {
		t.Errorf("probes of the web server: %v; they told:\n%s", err, told)
	}
	if err := w.remove(t.Context(), shoot); err != nil {
		t.Error(err)
	}
	return sum
}

func (w webProber) remove(ctx context.Context, shoot kubectl) error {
	if _, err := shoot.try(ctx, w.manifest, "delete", "--ignore-not-found", "-f", "-"); err != nil {
		return err
	}
	_, err := shoot.try(ctx, "", "delete", "configmaps", "-l", "app=prober")
	return err
}

// sumOf adds up what pods told that asked a web server. One that began has to have told of its end.
func sumOf(told string) (probes, error) {
	var sum probes
	begun, ended := 0, 0
	for line := range strings.Lines(told) {
		var (
			name, last                string
			all, failed, inHundredths int
		)
		if _, err := fmt.Sscan(line, &name, &all, &failed, &inHundredths, &last); err != nil {
			return probes{}, fmt.Errorf("%q: %w", line, err)
		}
		if strings.HasPrefix(name, "begun-") {
			begun++
			continue
		}
		ended++
		sum.all += all
		sum.failed += failed
		sum.longest = max(sum.longest, time.Duration(inHundredths)*10*time.Millisecond)
		if failed > 0 {
			sum.last = name + " at " + last
		}
	}
	if begun != ended {
		return sum, fmt.Errorf("%d pods began to ask, and %d told what came of it", begun, ended)
	}
	return sum, nil
}

func TestSumOfProbes(t *testing.T) {
	const told = "begun-a 0 0 0 never\nbegun-b 0 0 0 never\nended-a 40 0 25 never\n"
	if sum, err := sumOf(told); err == nil {
		t.Errorf("b ended without a word: got %s, want an error", sum)
	}
	want := probes{all: 50, failed: 1, longest: 5300 * time.Millisecond, last: "ended-b at 12:00:00"}
	if sum, err := sumOf(told + "ended-b 10 1 530 12:00:00\n"); err != nil || sum != want {
		t.Errorf("got %s, %v, want %s", sum, err, want)
	}
}
