package managers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// beginInterval lies between two tries of what a program begins with.
	beginInterval = 2 * time.Second
	// sayAfter is how many tries are made between two lines in the log.
	sayAfter = 15
)

// Begin does what a program has to ask API servers before it makes its manager, again and again until they answer. A
// program that ended instead would be started anew, which costs a machine that has too much to do still more. begin
// must bear to be repeated; errors that are answers, such as forbidden, end it.
//
// Meanwhile kubelet finds the program alive, but not ready, at healthAddress ("0" for none), which is free again
// afterwards.
func Begin(ctx context.Context, healthAddress string, begin func(context.Context) error) error {
	probed := &beginning{}
	end, err := probed.serve(ctx, healthAddress)
	if err != nil {
		return err
	}
	defer end()
	return probed.persist(ctx, beginInterval, begin)
}

// Groups asks an API server for its groups, as adding controllers to a manager does: for Begin.
func Groups(config *rest.Config) func(context.Context) error {
	return func(context.Context) error {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err == nil {
			_, err = client.ServerGroups()
		}
		if err != nil {
			return fmt.Errorf("API server at %s: %w", config.Host, err)
		}
		return nil
	}
}

// Healthy asks an API server whether it is healthy, as programs do that end where it is not: for Begin.
func Healthy(config *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err == nil {
			err = client.RESTClient().Get().AbsPath("/healthz").Do(ctx).Error()
		}
		if err != nil {
			return fmt.Errorf("health of the API server at %s: %w", config.Host, err)
		}
		return nil
	}
}

// beginning is a program that waits for its API servers.
type beginning struct {
	// reason is why it waits.
	reason atomic.Pointer[string]
}

// persist tries until it succeeds, or something else is wrong than that a server does not answer.
func (b *beginning) persist(ctx context.Context, interval time.Duration, begin func(context.Context) error) error {
	tries := 0
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		last = begin(ctx)
		if !isUnanswered(last) {
			return true, last
		}
		b.reason.Store(new(last.Error()))
		if tries%sayAfter == 0 {
			log.FromContext(ctx).Info("Waiting for an API server that does not answer", "reason", last.Error())
		}
		tries++
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// serve answers probes until end is called.
func (b *beginning) serve(ctx context.Context, address string) (end func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("health endpoint while waiting for API servers: %w", err)
	}
	server := &http.Server{Handler: b.handler(), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

func (b *beginning) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		reason := "beginning"
		if waits := b.reason.Load(); waits != nil {
			reason = "waiting for an API server that does not answer: " + *waits
		}
		http.Error(w, reason, http.StatusServiceUnavailable)
	})
	return mux
}

// isUnanswered says whether an error is that a server could not be asked, or could not answer: what passes by itself. A
// server with another certificate than expected is not that: what a program trusts, it reads when it starts.
func isUnanswered(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	var request *url.Error
	return errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded)
}
