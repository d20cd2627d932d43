//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// fleetCommand runs trellisctl for the fleet of project demo.
func (l *landscape) fleetCommand(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	out, err := l.tryFleetCommand(t.Context(), input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l *landscape) tryFleetCommand(ctx context.Context, input string, arguments ...string) (string, error) {
	return l.command(ctx, input, "trellisctl",
		append(arguments, "--garden", l.name, "--project", "demo", "--shoot", "fleet")...)
}

// fleetNginx is a Deployment of the fleet, with a policy that goes on as the test wants.
func fleetNginx(name string, replicas int, policy string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default, labels: {app: %[1]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: nginx, image: nginx}], terminationGracePeriodSeconds: 1}
---
`, name, replicas) + fleetPolicy(name, policy)
}

func fleetPolicy(name, policy string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %[1]s, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[1]s}]
`, name) + policy
}

// prefers has an object run in one member, in another one while that is out of use, and return soon.
func prefers(first, other string) string {
	return fmt.Sprintf(`
  failover: {failBack: {windowSeconds: 5}}
  placement:
    clusterAffinities:
    - {affinityName: preferred, clusterNames: [%s]}
    - {affinityName: otherwise, clusterNames: [%s]}
`, first, other)
}

// A plan tells what a policy would do, the policy does that, and explain tells it afterwards, with the clusters that
// were not chosen.
func fleetPlansAndExplains(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	const name = "planned"
	at1, at2 := "  placement: {clusterAffinity: {clusterNames: [member1]}}\n",
		"  placement: {clusterAffinity: {clusterNames: [member2]}}\n"
	manifest := fleetNginx(name, 1, at1)
	l.removeAfterwards(t, fleet, manifest, "deploy/"+name, m1, m2)
	fleet.apply(t, manifest)
	m1.eventually(t, time.Minute, equals("1"), "get", "deploy", name, "-o", "jsonpath={.spec.replicas}")
	eventually(t, time.Minute, func(ctx context.Context) error {
		out, err := l.tryFleetCommand(ctx, "", "explain", "deployment/"+name)
		if err != nil {
			return err
		}
		return contains("PropagationPolicy default/"+name, "CLUSTER", "member1", "member2", "clusterAffinity")(out)
	})

	out := l.fleetCommand(t, fleetPolicy(name, at2), "plan", "-f", "-")
	if err := contains("Removed", "Added", "member1", "member2")(out); err != nil {
		t.Error(err)
	}
	m1.run(t, "get", "deploy", name)
	fleet.apply(t, fleetPolicy(name, at2))
	m2.eventually(t, time.Minute, equals("1"), "get", "deploy", name, "-o", "jsonpath={.spec.replicas}")
	m1.eventually(t, time.Minute, equals(""), "get", "deploy", name, "--ignore-not-found", "-o", "name")
	if out := l.fleetCommand(t, fleetPolicy(name, at2), "plan", "-f", "-"); strings.Contains(out, "Added") ||
		strings.Contains(out, "Removed") {
		t.Errorf("the plan of what is already so tells of changes:\n%s", out)
	}
}

// A change comes to the second member only when the first one has it, is healthy, and somebody said that it may go on.
// The fleet's controllers are killed between these steps, after which each member has got each revision once.
func fleetRollsOutInWaves(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	const name, version, changes = "waves", "jsonpath={.spec.template.metadata.annotations.version}", "jsonpath={.metadata.generation}"
	manifest := fleetNginx(name, 1, `
  rollout:
    waves:
    - {name: canary, clusterAffinity: {clusterNames: [member2]}, pause: true}
`)
	l.removeAfterwards(t, fleet, manifest, "deploy/"+name, m1, m2)
	fleet.apply(t, manifest)
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, 2*time.Minute, equals("1"), "get", "deploy", name, "-o",
			"jsonpath={.status.readyReplicas}")
	}
	fleet.run(t, "patch", "deploy", name, "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{"version":"two"}}}}}`)
	m2.eventually(t, time.Minute, equals("two"), "get", "deploy", name, "-o", version)
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		out, err := l.tryFleetCommand(ctx, "", "rollout", "status", "deployment/"+name)
		if err != nil {
			return err
		}
		return contains("canary", "Paused", "remaining", "not yet")(out)
	})
	l.killFederation(t)
	m1.eventually(t, time.Second, equals(""), "get", "deploy", name, "-o", version)
	l.fleetCommand(t, "", "rollout", "resume", "deployment/"+name)
	m1.eventually(t, time.Minute, equals("two"), "get", "deploy", name, "-o", version)
	l.fleetCommand(t, "", "rollout", "status", "deployment/"+name, "--watch")
	l.fleetCommand(t, "", "rollout", "undo", "deployment/"+name)
	l.killFederation(t)
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, time.Minute, equals(""), "get", "deploy", name, "-o", version)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		out, err := l.tryFleetCommand(ctx, "", "rollout", "status", "deployment/"+name)
		if err != nil {
			return err
		}
		return contains("RolledBack (Undone)", "rolled back")(out)
	})
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, time.Second, equals("3"), "get", "deploy", name, "-o", changes)
	}
}

// What a member ran moves to the other one while it is drained, and comes back afterwards. The old copy goes when the
// new one is healthy.
func fleetDrainsAMember(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	const name = "mover"
	manifest := fleetNginx(name, 1, prefers("member1", "member2"))
	l.removeAfterwards(t, fleet, manifest, "deploy/"+name, m1, m2)
	t.Cleanup(func() { _, _ = l.tryFleetCommand(context.Background(), "", "uncordon", "member1") })
	fleet.apply(t, manifest)
	m1.eventually(t, 2*time.Minute, equals("1"), "get", "deploy", name, "-o", "jsonpath={.status.readyReplicas}")

	l.fleetCommand(t, "", "drain", "member1", "--wait=4m")
	m2.eventually(t, time.Minute, equals("1"), "get", "deploy", name, "-o", "jsonpath={.status.readyReplicas}")
	m1.eventually(t, time.Minute, equals(""), "get", "deploy", name, "--ignore-not-found", "-o", "name")
	l.fleetCommand(t, "", "uncordon", "member1")
	m1.eventually(t, 3*time.Minute, equals("1"), "get", "deploy", name, "-o", "jsonpath={.status.readyReplicas}")
	m2.eventually(t, 2*time.Minute, equals(""), "get", "deploy", name, "--ignore-not-found", "-o", "name")
}

// Of many objects that are deleted at once, no more than the deletion budget of 20 goes. The rest is held in the member
// until somebody confirms that it was meant.
func fleetHoldsDeletions(t *testing.T) {
	l := open(t)
	fleet, m1 := l.fleet(t), l.shoot(t, "member1")
	const count, budget = 60, 20
	manifest := `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: many, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {test: many}}}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
`
	for i := range count {
		manifest +=
			fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: many-%d, namespace: default, "+
				"labels: {test: many}}}\n", i)
	}
	t.Cleanup(func() {
		_, _ = fleet.try(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-")
		_, _ = l.tryFleetCommand(context.Background(), "", "deletions", "confirm", "--all")
	})
	inMember := func(least, most int) {
		t.Helper()
		m1.eventually(t, 2*time.Minute, func(out string) error {
			if got := len(strings.Fields(out)); got < least || got > most {
				return fmt.Errorf("%d ConfigMaps, want %d to %d", got, least, most)
			}
			return nil
		}, "get", "configmaps", "-l", "test=many", "-o", "name")
	}
	fleet.apply(t, manifest)
	inMember(count, count)

	fleet.run(t, "delete", "configmaps", "-l", "test=many")
	eventually(t, time.Minute, func(ctx context.Context) error {
		out, err := l.tryFleetCommand(ctx, "", "deletions")
		if held := strings.Count(out, "many-"); err == nil && held < count-budget {
			err = fmt.Errorf("%d deletions are held, want %d at least:\n%s", held, count-budget, out)
		}
		return err
	})
	inMember(count-budget, count)
	l.fleetCommand(t, "", "deletions", "confirm", "--cluster", "member1")
	inMember(0, 0)
}

// The API of a member is reached by way of the fleet, with the fleet's credentials, also where a connection goes on for
// long.
func fleetLeadsToItsMembers(t *testing.T) {
	l := open(t)
	fleet, m1 := l.fleet(t), l.shoot(t, "member1")
	config, err := os.ReadFile(fleet.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	through := kubectl{l: l, kubeconfig: filepath.Join(t.TempDir(), "through.yaml")}
	server := regexp.MustCompile(`server: \S+`).ReplaceAll(config,
		[]byte("$0/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"))
	if err := os.WriteFile(through.kubeconfig, server, 0o600); err != nil {
		t.Fatal(err)
	}
	through.eventually(t, time.Minute, equals(strings.TrimSpace(m1.run(t, "get", "nodes", "-o", "name"))), "get",
		"nodes", "-o", "name")
	t.Cleanup(func() {
		_, _ = m1.try(context.Background(), "", "delete", "pod", "seen-through", "--now", "--ignore-not-found")
	})
	through.run(t, "run", "seen-through", "--image=nginx")
	through.run(t, "wait", "pod/seen-through", "--for=condition=Ready", "--timeout=90s")
	if out := through.run(t, "exec", "seen-through", "--", "cat",
		"/etc/hostname"); strings.TrimSpace(out) != "seen-through" {
		t.Errorf("the pod says that it is %q", out)
	}
}
