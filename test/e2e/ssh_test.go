//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// sshTo is trellisctl ssh for member1.
func (l *landscape) sshTo(ctx context.Context, node []string, arguments ...string) (string, error) {
	all := append([]string{"ssh"}, node...)
	all = append(all, "--garden", l.name, "--project", "demo", "--shoot", "member1")
	return l.command(ctx, "", "trellisctl", append(all, arguments...)...)
}

// A user logs in to a machine of member1, and becomes root there. From elsewhere nobody gets in; a bastion leads to
// machines only; and what was made for it is gone afterwards.
func logInThroughABastion(t *testing.T) {
	l := open(t)
	l.waitForShoot(t, "member1", "", 5*time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	garden := l.gardenKubectl()
	bastions := []string{"-n", "garden-demo", "get", "bastions", "-o", "name"}
	whenFailed(t, func(_ context.Context, ask func(of kubectl, arguments ...string)) {
		ask(garden, "-n", "garden-demo", "get", "bastions", "-o", "yaml")
		ask(l.runtimeKubectl(), "-n", "shoot--demo--member1", "get", "bastions", "-o", "yaml")
		ask(l.runtimeKubectl(), "-n", "local-cloud", "logs", "daemonset/local-cloud", "--tail=20")
	})

	out, err := l.sshTo(ctx, nil, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Nodes []struct{ Name, Status, IP string }
	}
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed.Nodes) == 0 {
		t.Fatalf("nodes of member1: %s, %v", out, err)
	}
	node := []string{listed.Nodes[0].Name}
	out, err = l.sshTo(ctx, node, "--", "echo $USER at $(hostname), sudo is $(sudo -n id -u)")
	if err != nil {
		t.Fatal(err)
	}
	if want := "gardener at " + node[0] + ", sudo is 0"; strings.TrimSpace(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
	garden.eventually(t, time.Minute, equals(""), bastions...)

	if out, err := l.sshTo(ctx, node, "--cidr", "203.0.113.7/32", "--", "hostname"); err == nil {
		t.Errorf("logged in from a range that the bastion does not let in: %s", out)
	}
	l.leadsToMachinesOnly(ctx, t, node)
	garden.eventually(t, time.Minute, equals(""), bastions...)
}

// leadsToMachinesOnly logs in with the program ssh alone, by what trellisctl prints of a bastion that is kept. Then it
// deletes that.
func (l *landscape) leadsToMachinesOnly(ctx context.Context, t *testing.T, node []string) {
	t.Helper()
	out, err := l.sshTo(ctx, node, "--keep-bastion", "--no-keepalive", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var way struct {
		Bastion    struct{ Name string }
		ConfigFile string
	}
	if err := json.Unmarshal([]byte(out), &way); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(strings.TrimSuffix(way.ConfigFile, "/config")) })
	ssh := func(arguments ...string) (string, error) {
		all := append([]string{"-F", way.ConfigFile, "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"}, arguments...)
		out, err := exec.CommandContext(ctx, "ssh", all...).CombinedOutput()
		return string(out), err
	}
	if out, err := ssh(node[0], "--", "hostname"); err != nil || strings.TrimSpace(out) != node[0] {
		t.Errorf("what is printed leads to %q, %v", out, err)
	}
	for _, elsewhere := range []string{"172.18.0.2:6443", "172.18.0.2:22", "127.0.0.1:8090"} {
		if out, err := ssh("-W", elsewhere, way.Bastion.Name); err == nil {
			t.Errorf("the bastion leads to %s: %s", elsewhere, out)
		}
	}
	if out, err := ssh(way.Bastion.Name, "--", "id"); err == nil {
		t.Errorf("the bastion runs commands: %s", out)
	}
	l.gardenKubectl().run(t, "-n", "garden-demo", "delete", "bastion", way.Bastion.Name)
	if out, err := ssh(node[0], "--", "hostname"); err == nil {
		t.Errorf("a bastion that is gone leads to a machine: %s", out)
	}
}
