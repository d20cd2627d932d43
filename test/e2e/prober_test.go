//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/test/prober"
)

// probes are counts of requests.
type probes struct{ prober.Counts }

// allAnswered tells what came of requests, none of which may have failed.
func (p probes) allAnswered(t *testing.T, whom string) {
	t.Helper()
	t.Logf("%s: %s", whom, p)
	if p.All == 0 || p.Failed > 0 {
		t.Errorf("%s did not answer all requests: %s", whom, p)
	}
}

// mostAway is how long an API server may not answer that has one pod and one etcd, each of which is replaced, on a
// machine that has nothing else to do. Others get patience.
const mostAway = 20 * time.Second

// answeredInTime tells what came of requests, between which there may not have been too long a time without an answer.
func (p probes) answeredInTime(t *testing.T, whom string) {
	t.Helper()
	t.Logf("%s: %s", whom, p)
	if p.All == 0 || p.Longest > patience*mostAway {
		t.Errorf("%s did not answer for more than %s: %s", whom, patience*mostAway, p)
	}
}

// apiProber asks an API server until it is stopped.
type apiProber struct{ *prober.Prober }

// probeAPI reads an object of a cluster ten times a second, with the authorities and the credentials of a kubeconfig.
func probeAPI(t *testing.T, k kubectl) apiProber {
	t.Helper()
	return probePath(t, k, prober.StoredPath)
}

// probePath is probeAPI for what is served at a path, such as an aggregated API.
func probePath(t *testing.T, k kubectl, path string) apiProber {
	t.Helper()
	ask, err := prober.Path(k.kubeconfig, path)
	if err != nil {
		t.Fatal(err)
	}
	return apiProber{prober.Start(t.Context(), ask)}
}

// stop ends the probing, and tells what came of it.
func (p apiProber) stop() probes { return probes{p.Stop()} }

// webProber is a web server in a shoot, and what asks it there.
type webProber struct{ server, pods string }

// probeWeb has a web server in a pool of a shoot, and then pods that ask it: testdata/web.yaml and webprober.yaml.
func (l *landscape) probeWeb(t *testing.T, name, pool string, shoot kubectl) webProber {
	t.Helper()
	w := webProber{
		server: strings.ReplaceAll(testdata(t, "web.yaml"), "POOL", pool),
		pods:   testdata(t, "webprober.yaml"),
	}
	folder := t.TempDir()
	t.Cleanup(func() {
		// The shoot may have got other credentials since, or be gone.
		if k, err := l.tryShoot(context.Background(), folder, "demo", name); err == nil {
			_ = w.remove(context.Background(), k)
		}
	})
	shoot.apply(t, w.server)
	shoot.run(t, "rollout", "status", "deployment/web", "--timeout=3m")
	shoot.eventually(t, time.Minute, equals("true true"), "get", "endpointslices", "-l", "kubernetes.io/service-name=web",
		"-o", "jsonpath={.items[*].endpoints[*].conditions.ready}")
	shoot.apply(t, w.pods)
	shoot.run(t, "rollout", "status", "deployment/prober", "--timeout=3m")
	shoot.eventually(t, time.Minute, bothBegun, toldByProbers...)
	return w
}

// bothBegun says whether both pods have told that they begin. In what is restored of an etcd, all that they told has to
// be there.
func bothBegun(told string) error {
	if begun := strings.Count(told, "begun-"); begun != 2 {
		return fmt.Errorf("%d pods have begun to ask, want 2; they told:\n%s", begun, told)
	}
	return nil
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
	if _, err := shoot.try(ctx, w.pods+"---\n"+w.server, "delete", "--ignore-not-found", "-f", "-"); err != nil {
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
		sum.All += all
		sum.Failed += failed
		sum.Longest = max(sum.Longest, time.Duration(inHundredths)*10*time.Millisecond)
		if failed > 0 {
			sum.Last = name + " at " + last
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
	want := probes{prober.Counts{
		All: 50, Failed: 1, Longest: 5300 * time.Millisecond, Last: "ended-b at 12:00:00",
	}}
	if sum, err := sumOf(told + "ended-b 10 1 530 12:00:00\n"); err != nil || sum != want {
		t.Errorf("got %s, %v, want %s", sum, err, want)
	}
}
