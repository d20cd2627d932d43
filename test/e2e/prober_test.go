//go:build e2e && upgrade

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// probePeriod is the time between requests; each may take probeTimeout.
	probePeriod  = 100 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// probes count requests. One fails when its single retry fails too.
type probes struct {
	all, retried, failed int
	// longest is the longest time between two answers.
	longest time.Duration
	last    error
}

func (p probes) String() string {
	return fmt.Sprintf("%d requests, %d answered when tried again, %d failed; %s without an answer at the longest "+
		"(last error: %v)", p.all, p.retried, p.failed, p.longest.Round(time.Millisecond), p.last)
}

// prober asks an API server until it is stopped.
type prober struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	probes  probes
}

// probeAPI reads an object of a cluster, ten times a second.
func probeAPI(t *testing.T, k kubectl) *prober {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Timeout = -1, probeTimeout
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &prober{cancel: cancel}
	p.running.Go(func() {
		p.run(ctx, func(ctx context.Context) error {
			_, err := clientset.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	})
	return p
}

func (p *prober) run(ctx context.Context, ask func(context.Context) error) {
	answered := time.Now()
	for tick := time.NewTicker(probePeriod); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		p.probes.all++
		err := ask(ctx)
		if err != nil {
			p.probes.last = err
			if err = ask(ctx); err == nil {
				p.probes.retried++
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.probes.failed++
			continue
		}
		p.probes.longest = max(p.probes.longest, time.Since(answered))
		answered = time.Now()
	}
}

// stop ends the probing, and tells what came of it.
func (p *prober) stop() probes {
	p.cancel()
	p.running.Wait()
	return p.probes
}
