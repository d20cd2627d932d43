//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A shoot falls asleep by its schedule, before which the fleet moves away what runs there: no machine and no pod of its
// control plane is left, and nobody takes that for a failure. Its gardenlet is killed meanwhile. Then it wakes up, with
// a node, with everything that it stored, and with what the fleet has for it. Put to sleep by hand, it keeps its
// machines until that runs elsewhere.
func hibernation(t *testing.T) {
	const namespace, sleepless = "shoot--demo--member2", "sleepless"
	l := open(t)
	garden, seed, fleet := l.gardenKubectl(), l.runtimeKubectl(), l.fleet(t)
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	member, other := l.shoot(t, "member2"), l.shoot(t, "member1")
	manifest := fleetNginx(sleepless, 1, prefers("member2", "member1"))
	l.removeAfterwards(t, fleet, manifest, "deploy/"+sleepless, member, other)
	t.Cleanup(func() {
		_, _ = garden.try(context.Background(), "", "-n", "garden-demo", "patch", "shoot", "member2", "--type=merge",
			"-p", neverSleeps)
		_, _ = member.try(context.Background(), "", "delete", "configmap", "remembered", "--ignore-not-found")
	})
	member.run(t, "create", "configmap", "remembered", "--from-literal=before=sleep")
	fleet.apply(t, manifest)
	member.eventually(t, 2*time.Minute, equals("1"), "get", "deploy", sleepless, "-o",
		"jsonpath={.status.readyReplicas}")

	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=merge", "-p",
		sleepsAt(time.Now().Add(9*time.Minute)))
	other.eventually(t, 2*time.Minute, equals("1"), "get", "deploy", sleepless, "-o",
		"jsonpath={.status.readyReplicas}")
	member.eventually(t, time.Minute, equals(""), "get", "deploy", sleepless, "--ignore-not-found", "-o", "name")
	garden.eventually(t, time.Second, equals("false"), "-n", "garden-demo", "get", "shoot", "member2", "-o",
		"jsonpath={.status.hibernated}")

	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=merge", "-p",
		sleepsAt(time.Now().Add(70*time.Second)))
	seed.eventually(t, 5*time.Minute, equals(""), "-n", namespace, "get", "machines", "-o", "name")
	l.killGardenlet(t)
	l.sleep(t, "hibernate", "--shoot", "member2", "--wait", "--timeout=5m")
	l.waitForShoot(t, "member2", "", time.Minute)
	seed.eventually(t, time.Minute, equals(""), "-n", namespace, "get", "pods", "-o", "name")
	garden.eventually(t, time.Minute, contains("Hibernated", "healthy"), "-n", "garden-demo", "get", "shoot", "member2")
	fleet.eventually(t, time.Minute, equals("ClusterHibernated"), "get", "cluster", "member2", "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)

	l.sleep(t, "wakeup", "--shoot", "member2", "--wait", "--timeout=8m")
	l.waitForShoot(t, "member2", "", time.Minute)
	member.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	member.eventually(t, time.Minute, equals("sleep"), "get", "configmap", "remembered", "-o",
		"jsonpath={.data.before}")
	fleet.eventually(t, 2*time.Minute, equals("True"), "get", "cluster", "member2", "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	member.eventually(t, 3*time.Minute, equals("1"), "get", "deploy", sleepless, "-o",
		"jsonpath={.status.readyReplicas}")
	other.eventually(t, time.Minute, equals(""), "get", "deploy", sleepless, "--ignore-not-found", "-o", "name")

	garden.run(t, "-n", "garden-demo", "patch", "shoot", "member2", "--type=merge", "-p", sleepsNow)
	l.machinesStayUntilMoved(t, namespace, sleepless, other)
	l.sleep(t, "hibernate", "--shoot", "member2", "--wait", "--timeout=5m")
	l.sleep(t, "wakeup", "--shoot", "member2", "--wait", "--timeout=8m")
	l.waitForShoot(t, "member2", "", time.Minute)
}

// machinesStayUntilMoved follows a shoot that was put to sleep by hand: when its machines are to go, what the fleet had
// there runs in another shoot.
func (l *landscape) machinesStayUntilMoved(t *testing.T, namespace, name string, other kubectl) {
	t.Helper()
	l.runtimeKubectl().eventually(t, 5*time.Minute, func(replicas string) error {
		if strings.Trim(replicas, "0 ") != "" {
			return fmt.Errorf("machines are wanted: %s", replicas)
		}
		return nil
	}, "-n", namespace, "get", "machinedeployments", "-o", "jsonpath={.items[*].spec.replicas}")
	if ready := other.run(t, "get", "deploy", name, "-o", "jsonpath={.status.readyReplicas}"); ready != "1" {
		t.Errorf("the machines are to go, and %q replicas are ready elsewhere", ready)
	}
}

// neverSleeps takes back what sleepsAt did, and wakes the shoot up.
const neverSleeps = `{"spec":{"hibernation":{"enabled":false,"schedules":null}}}`

// sleepsNow puts a shoot to sleep.
const sleepsNow = `{"spec":{"hibernation":{"enabled":true,"schedules":null}}}`

// sleepsAt has a shoot fall asleep at the full minute before a time, which its schedule names by the clock of another
// place.
func sleepsAt(at time.Time) string {
	at = at.In(time.FixedZone("Asia/Kolkata", int((5*time.Hour + 30*time.Minute).Seconds())))
	return fmt.Sprintf(`{"spec":{"hibernation":{"schedules":[{"start":"%d %d * * *","location":"%s"}]}}}`, at.Minute(),
		at.Hour(), at.Location())
}

// sleep puts a shoot to sleep or wakes it up, and waits for that.
func (l *landscape) sleep(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := l.command(t.Context(), "", "trellisctl",
		append(arguments, "--garden", l.name, "--project", "demo")...); err != nil {
		t.Fatal(err)
	}
}
