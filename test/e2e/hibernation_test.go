//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A shoot falls asleep: no machine and no pod of its control plane is left, and nobody takes that for a failure. Its gardenlet
// is killed meanwhile. Then it wakes up, with a node and with everything that it stored.
func TestHibernation(t *testing.T) {
	const namespace = "shoot--demo--member2"
	l := open(t)
	garden, seed := l.gardenKubectl(), l.runtimeKubectl()
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	member := l.shoot(t, "member2")
	t.Cleanup(func() {
		_, _ = member.try(context.Background(), "", "delete", "configmap", "remembered", "--ignore-not-found")
	})
	member.run(t, "create", "configmap", "remembered", "--from-literal=before=sleep")

	l.sleep(t, "hibernate", "member2")
	seed.eventually(t, 5*time.Minute, equals(""), "-n", namespace, "get", "machines", "-o", "name")
	l.killProcess(t, "garden", "app=gardenlet", "gardenlet")
	garden.eventually(t, 5*time.Minute, equals("true"), "-n", "garden-demo", "get", "shoot", "member2", "-o", "jsonpath={.status.hibernated}")
	l.waitForShoot(t, "member2", "", time.Minute)
	seed.eventually(t, time.Minute, equals(""), "-n", namespace, "get", "pods", "-o", "name")
	garden.eventually(t, time.Minute, contains("Hibernated", "healthy"), "-n", "garden-demo", "get", "shoot", "member2")
	fleet := l.shoot(t, "fleet")
	fleet.eventually(t, time.Minute, equals("ClusterHibernated"), "get", "cluster", "member2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)

	l.sleep(t, "wakeup", "member2")
	garden.eventually(t, 8*time.Minute, equals("false"), "-n", "garden-demo", "get", "shoot", "member2", "-o", "jsonpath={.status.hibernated}")
	l.waitForShoot(t, "member2", "", time.Minute)
	member.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	member.eventually(t, time.Minute, equals("sleep"), "get", "configmap", "remembered", "-o", "jsonpath={.data.before}")
	fleet.eventually(t, 2*time.Minute, equals("True"), "get", "cluster", "member2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
}

// sleep puts a shoot to sleep or wakes it up.
func (l *landscape) sleep(t *testing.T, command, name string) {
	t.Helper()
	out, err := l.command(t.Context(), "", "trellisctl", command, "--garden", l.name, "--project", "demo", "--shoot", name)
	if err != nil || !strings.Contains(out, "ing") {
		t.Fatalf("%s: %q, %v", command, out, err)
	}
}
