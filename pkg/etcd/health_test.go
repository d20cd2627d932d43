package etcd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	for _, i := range []int{1, 2} {
		c.launch(t, i)
	}
	// The first runs here, and looks after the others only when it is told to.
	first := newTestSteward(c.options[0], zap.NewNop())
	if err := errors.Join(first.prepare(t.Context()), first.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = first.stop()
		}
	})
	isLearner := func(p *process) func() error {
		return func() error {
			if err := p.ready(); err == nil || !strings.Contains(err.Error(), "is a learner") {
				return fmt.Errorf("it says %w", err)
			}
			return nil
		}
	}
	joined := -1
	c.processes[1].waitUntil(t, "a learner", func() error {
		for _, i := range []int{1, 2} {
			if isLearner(c.processes[i])() == nil {
				joined = i
				return nil
			}
		}
		return errors.New("there is none")
	})
	// There is one at a time.
	c.processes[3-joined].waitForLog(t, "is still a learner")
	care := &memberCare{
		Steward: first, peers: peers{&first.options, first.memberPace.ask}, soonest: time.Now().Add(time.Hour),
	}
	c.processes[1].waitUntil(t, "three voters", func() error {
		return errors.Join(care.look(t.Context()), c.processes[1].ready(), c.processes[2].ready())
	})
	c.voters(t)

	// Two are a quorum, one is none, whatever it has.
	c.processes[1].kill(t)
	c.waitReady(t, 2)
	first.etcd.Server.HardStop()
	first.etcd.Close()
	ended = true
	c.processes[2].waitUntil(t, "not ready without a leader", func() error {
		if err := c.processes[2].ready(); err == nil || !strings.Contains(err.Error(), "no leader") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
}

func TestLeaderlessIsBorneForAWhile(t *testing.T) {
	var l leaderless
	now := time.Now()
	for _, step := range []struct {
		missing bool
		after   time.Duration
		want    bool
	}{
		{true, 0, false}, {true, 4 * time.Second, false}, {false, 5 * time.Second, false},
		{true, 6 * time.Second, false}, {true, 10 * time.Second, false}, {true, 11 * time.Second, true},
	} {
		if got := l.lasts(step.missing, 5*time.Second, now.Add(step.after)); got != step.want {
			t.Errorf("after %s: got %v", step.after, got)
		}
	}
	if !(&leaderless{}).lasts(true, 0, now) {
		t.Error("a single member bears it")
	}
}

// Whoever has no certificate of the peers' authority is told nothing, and cannot join.
func TestOnlyPeersArePeers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "which may have data, do not answer")
	check := func(t *testing.T, path string, refused bool) {
		t.Helper()
		for name, files := range map[string][2]string{
			"no certificate":        {},
			"a client's":            pair(c.clients.issue(t, x509.ExtKeyUsageClientAuth)),
			"the server's":          {c.options[1].CertFile, c.options[1].KeyFile},
			"one of some authority": pair(newAuthority(t, "peers").issue(t, x509.ExtKeyUsageClientAuth)),
		} {
			options := c.options[1]
			options.PeerCertFile, options.PeerKeyFile = files[0], files[1]
			p := peers{&options, time.Second}
			var into any
			err := p.get(t.Context(), c.options[0].Members[0].PeerURL+path, &into)
			if (err != nil) != refused {
				t.Errorf("%s with %s: %v", path, name, err)
			}
		}
		p := peers{&c.options[1], time.Second}
		var into any
		if err := p.get(t.Context(), c.options[0].Members[0].PeerURL+path, &into); err != nil {
			t.Errorf("%s as a peer: %v", path, err)
		}
	}
	check(t, answerPath, true)
	c.launch(t, 1, 2)
	c.waitReady(t)
	check(t, membersPath, true)

	// One that takes the place of a member, with what a client has.
	c.processes[1].kill(t)
	thief := c.options[1]
	thief.DataDir = t.TempDir()
	thief.PeerCertFile, thief.PeerKeyFile = c.clients.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	p := launch(t, thief)
	p.waitForLog(t, "which may have data, do not answer")
	if hasData(thief.DataDir) {
		t.Error("it has got data")
	}
	c.voters(t)
}

func pair(a, b string) [2]string { return [2]string{a, b} }
