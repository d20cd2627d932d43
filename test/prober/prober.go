// Package prober asks a server all the time, and counts what comes of it.
package prober

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// period is the time between requests; each may take timeout, which is long for a machine with too much to do. One
	// that fails is tried again once, after pause: at once, it would only find that what has just stopped has stopped.
	period  = 100 * time.Millisecond
	timeout = 15 * time.Second
	pause   = time.Second
)

// Counts of requests.
type Counts struct {
	// All requests, those that were answered when they were tried again, and those that failed then, too.
	All, Retried, Failed int
	// Longest is the longest time without an answer.
	Longest time.Duration
	// Last is the last failure, if there was one.
	Last string
}

// String tells all counts in a line.
func (c Counts) String() string {
	text := fmt.Sprintf("%d requests, %d answered when tried again, %d failed; %s without an answer at the longest",
		c.All, c.Retried, c.Failed, c.Longest.Round(time.Millisecond))
	if c.Last != "" {
		text += " (last failure: " + c.Last + ")"
	}
	return text
}

// count notes a request: what came of it at first, and what in the end.
func (c *Counts) count(first, inTheEnd error) {
	c.All++
	switch {
	case inTheEnd != nil:
		c.Failed++
	case first != nil:
		c.Retried++
	default:
		return
	}
	c.Last = fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), first)
}

// Prober asks until it is stopped.
type Prober struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	counts  Counts
}

// Start asks ten times a second, until ctx is done or Stop is called.
func Start(ctx context.Context, ask func(context.Context) error) *Prober {
	ctx, cancel := context.WithCancel(ctx)
	p := &Prober{cancel: cancel}
	p.running.Go(func() { p.run(ctx, ask) })
	return p
}

// Stop ends the probing, and tells what came of it.
func (p *Prober) Stop() Counts {
	p.cancel()
	p.running.Wait()
	return p.counts
}

func (p *Prober) run(ctx context.Context, ask func(context.Context) error) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	answered := time.Now()
	answer := func() {
		p.counts.Longest = max(p.counts.Longest, time.Since(answered))
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
			case <-time.After(pause):
			}
			inTheEnd = ask(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		p.counts.count(first, inTheEnd)
		if inTheEnd == nil {
			answer()
		}
	}
}

// StoredPath is that of an object that every API server reads from etcd.
const StoredPath = "/api/v1/namespaces/default"

// API returns what asks the API server of a kubeconfig, with its authorities and credentials, for an object that is
// read from etcd. Each request has a connection of its own, as those of kubectl have. So it comes to any of the API
// servers, and no client tries again behind the prober's back.
func API(kubeconfig string) (ask func(context.Context) error, err error) {
	return Path(kubeconfig, StoredPath)
}

// Path is API for what an API server serves at a path.
func Path(kubeconfig, path string) (ask func(context.Context) error, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(config,
		&http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, Timeout: timeout}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
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
	}, nil
}
