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
	if err := errors.Join(first.readCertificates(), first.prepare(t.Context()), first.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = first.stop()
		}
	})
	// There is one at a time.
	c.processes[3-c.waitLearner(t)].waitForLog(t, "is still a learner")
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
	first.closeEtcd()
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
}

// Whoever has no certificate of the peers' authority is told nothing, and cannot join.
func TestOnlyPeersArePeers(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.launch(t, 0)
	c.processes[0].waitForLog(t, "which may have data, do not answer")
	c.checkAnswersPeersOnly(t, answerPath)
	c.launch(t, 1, 2)
	c.waitReady(t)
	c.checkAnswersPeersOnly(t, membersPath)

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

// TestAttackASingleMemberAnswersPeersOnly plays who can connect to the peer URL of an etcd that has no other members,
// with no certificate or with each that is to be had: that of a client, of a server, of a member of another etcd, whose
// authority has the same name.
func TestAttackASingleMemberAnswersPeersOnly(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	c.processes[0] = launch(t, c.singleOptions())
	c.waitReady(t, 0)
	c.checkAnswersPeersOnly(t, membersPath)
	plain := strings.Replace(c.options[0].Members[0].PeerURL, "https:", "http:", 1)
	p := peers{&c.options[1], time.Second}
	var into any
	if _, err := p.get(t.Context(), plain+membersPath, &into); err == nil {
		t.Errorf("without TLS, it answers %v", into)
	}

	// One that wants to join with what a client has.
	thief := c.options[1]
	thief.PeerCertFile, thief.PeerKeyFile = c.clients.issue(t, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	c.processes[1] = launch(t, thief)
	c.processes[1].waitForLog(t, "which may have data, do not answer")
	if hasData(thief.DataDir) {
		t.Error("it has got data")
	}
	if response, err := c.client.MemberList(t.Context()); err != nil || len(response.Members) != 1 {
		t.Errorf("the members are %v, %v", response, err)
	}
}

// checkAnswersPeersOnly asks the first member with certificates that are none of its peers', and with one that is.
func (c *testCluster) checkAnswersPeersOnly(t *testing.T, path string) {
	t.Helper()
	ask := func(options Options) error {
		p := peers{&options, time.Second}
		var into any
		_, err := p.get(t.Context(), c.options[0].Members[0].PeerURL+path, &into)
		return err
	}
	for name, files := range map[string][2]string{
		"no certificate":        {},
		"a client's":            pair(c.clients.issue(t, x509.ExtKeyUsageClientAuth)),
		"the server's":          {c.options[1].CertFile, c.options[1].KeyFile},
		"one of some authority": pair(newAuthority(t, "peers").issue(t, x509.ExtKeyUsageClientAuth)),
	} {
		options := c.options[1]
		options.PeerCertFile, options.PeerKeyFile = files[0], files[1]
		if err := ask(options); err == nil {
			t.Errorf("%s with %s: it was answered", path, name)
		}
	}
	if err := ask(c.options[1]); err != nil {
		t.Errorf("%s as a peer: %v", path, err)
	}
}

func pair(a, b string) [2]string { return [2]string{a, b} }
