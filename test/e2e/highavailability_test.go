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

// growsToThree has the control plane of a shoot outlast the failure of a node: each etcd grows from one member to
// three, and kube-apiserver gets a second pod. What was stored is there, and the API and the web server in the shoot
// answer all requests, while it grows and while a member of etcd and a kube-apiserver are lost. Then its three members
// go back to a point in time, while pods are reached by others. There is no way back to one member.
func (l *landscape) growsToThree(t *testing.T, name string, shoot kubectl) {
	t.Helper()
	namespace := "shoot--demo--" + name
	l.explainShoot(t, name)
	whenFailed(t, func(_ context.Context, ask func(of kubectl, arguments ...string)) {
		ask(l.runtimeKubectl(), "-n", namespace, "get", "pods,poddisruptionbudgets", "-o", "wide")
		ask(l.runtimeKubectl(), "-n", namespace, "logs", "-l", "app=kubernetes,role=apiserver", "-c", "paths", "--tail=15",
			"--prefix")
		ask(shoot, "-n", "kube-system", "logs", "deploy/vpn-shoot-1", "--tail=8")
		ask(l.runtimeKubectl(), "-n", namespace, "logs", "-l", "app=etcd-statefulset", "--tail=15", "--prefix")
	})
	uids := []string{"get", "configmaps", "-l", "test=growth", "-o", "jsonpath={.items[*].metadata.uid}"}
	shoot.apply(t, configMapsOfBefore(50))
	before := shoot.run(t, uids...)
	web := l.probeWeb(t, name, "pool", shoot)

	api := probeAPI(t, shoot)
	if err := l.setHighAvailability(t, name, `{"failureTolerance":{"type":"node"}}`); err != nil {
		t.Fatal(err)
	}
	l.waitForShoot(t, name, "Reconcile", 10*time.Minute)
	api.stop().allAnswered(t, "kube-apiserver, while the control plane grew")
	shoot.eventually(t, time.Minute, equals(before), uids...)
	l.runtimeKubectl().eventually(t, 2*time.Minute, equals("2 2"), "-n", namespace, "get", "deployment",
		"machine-controller-manager", "kube-scheduler", "-o", "jsonpath={.items[*].status.readyReplicas}")

	l.losesMemberAndAPIServer(t, namespace, shoot)
	l.losesPaths(t, namespace, shoot)
	shoot.eventually(t, time.Minute, equals(before), uids...)
	shoot.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	l.goesBackToAPointInTime(t, name, shoot)
	shoot.eventually(t, time.Minute, equals(before), uids...)
	web.stop(t, shoot).allAnswered(t, "web server, while the control plane grew, lost pods and went back in time")
	if err := l.setHighAvailability(t, name, "null"); err == nil ||
		!strings.Contains(err.Error(), "spec.controlPlane.highAvailability") {
		t.Errorf("no high availability any more: got %v, want an error with spec.controlPlane.highAvailability", err)
	}
}

// pointInTime is the heading of docs/operating.md below which commands restore what an etcd had.
const pointInTime = "### Drill: back to a point in time"

// goesBackToAPointInTime has a shoot whose etcds have three members go back: what was written after a time is gone,
// what was written before is there.
func (l *landscape) goesBackToAPointInTime(t *testing.T, name string, shoot kubectl) {
	t.Helper()
	t.Cleanup(func() {
		_, _ = shoot.try(context.Background(), "", "delete", "configmap", "kept", "regretted", "--ignore-not-found")
	})
	namespace := "shoot--demo--" + name
	shoot.run(t, "create", "configmap", "kept")
	saved := l.waitForBackup(t, namespace)
	shoot.run(t, "create", "configmap", "regretted")
	l.drillOf(t, name, pointInTime, "GARDEN="+l.garden(), "TO="+saved.UTC().Format(time.RFC3339))
	shoot.eventually(t, 2*time.Minute, contains("kept"), "get", "configmap", "kept")
	shoot.eventually(t, time.Minute, equals(""), "get", "configmap", "regretted", "--ignore-not-found", "-o", "name")
	shoot.eventually(t, 2*time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	shoot.eventually(t, time.Minute, contains("created"), "create", "configmap", "regretted")
	l.membersOfEtcd(t, namespace, "main")
}

// setHighAvailability sets the field of this name of a shoot's control plane.
func (l *landscape) setHighAvailability(t *testing.T, name, highAvailability string) error {
	t.Helper()
	_, err := l.gardenKubectl().try(t.Context(), "", "-n", "garden-demo", "patch", "shoot", name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"controlPlane":{"highAvailability":%s}}}`, highAvailability))
	return err
}

// losesMemberAndAPIServer evicts the leader of etcd-main, as the drain of a node would, and keeps its pod from coming
// back. While it is away, no other member can be evicted, and a kube-apiserver is deleted. Then it joins again.
func (l *landscape) losesMemberAndAPIServer(t *testing.T, namespace string, shoot kubectl) {
	t.Helper()
	seed := l.runtimeKubectl()
	leader, other := l.membersOfEtcd(t, namespace, "main")
	l.membersOfEtcd(t, namespace, "events")
	seed.eventually(t, 2*time.Minute, equals("2"), "-n", namespace, "get", "deployment", "kube-apiserver", "-o",
		"jsonpath={.status.readyReplicas}")
	seed.eventually(t, time.Minute, equals("1/3 1/2"), "-n", namespace, "get", "poddisruptionbudgets", "etcd-main",
		"kube-apiserver", "-o",
		"jsonpath={range .items[*]}{.status.disruptionsAllowed}/{.status.expectedPods} {end}")

	api := probeAPI(t, shoot)
	comeBack := l.staysAway(t, namespace, leader)
	if err := l.evict(t, namespace, leader); err != nil {
		t.Fatal(err)
	}
	if err := l.evict(t, namespace, other); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("evicting %s without %s: got %v, want an error about the disruption budget", other, leader, err)
	}
	seed.eventually(t, time.Minute, equals("2"), "-n", namespace, "get", "statefulset", "etcd-main", "-o",
		"jsonpath={.status.readyReplicas}")
	server := seed.run(t, "-n", namespace, "get", "pods", "-l", "app=kubernetes,role=apiserver", "-o",
		"jsonpath={.items[0].metadata.name}")
	seed.run(t, "-n", namespace, "delete", "pod", server, "--timeout=2m")
	const written = "{apiVersion: v1, kind: ConfigMap, metadata: {name: written-by-two}}"
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := shoot.try(ctx, written, "apply", "-f", "-")
		return err
	})
	comeBack()
	l.membersOfEtcd(t, namespace, "main")
	seed.run(t, "-n", namespace, "rollout", "status", "deployment/kube-apiserver", "--timeout=2m")
	api.stop().allAnswered(t, "kube-apiserver, while "+leader+" and "+server+" were lost")
	shoot.eventually(t, time.Minute, contains("written-by-two"), "get", "configmap", "written-by-two", "-o", "name")
}

// losesPaths takes the vpn-seed-server of each of the two paths away in turn. kubectl logs and exec work meanwhile,
// through all kube-apiservers, and with both again.
func (l *landscape) losesPaths(t *testing.T, namespace string, shoot kubectl) {
	t.Helper()
	seed := l.runtimeKubectl()
	pod := shoot.run(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	readLog, err := prober.Path(shoot.kubeconfig, "/api/v1/namespaces/default/pods/"+pod+"/log?tailLines=1")
	if err != nil {
		t.Fatal(err)
	}
	works := func() {
		t.Helper()
		// Connections are spread over the kube-apiservers, and each request has one of its own.
		for range 12 {
			eventually(t, time.Minute, readLog)
		}
		shoot.eventually(t, time.Minute, contains("nginx"), "exec", pod, "--", "cat", "/etc/nginx/nginx.conf")
	}
	servers := []string{"deployment/vpn-seed-server", "deployment/vpn-seed-server-1"}
	for _, server := range servers {
		seed.run(t, "-n", namespace, "rollout", "status", server, "--timeout=3m")
	}
	for _, client := range []string{"deployment/vpn-shoot", "deployment/vpn-shoot-1"} {
		shoot.run(t, "-n", "kube-system", "rollout", "status", client, "--timeout=3m")
	}
	works()
	for _, server := range servers {
		seed.run(t, "-n", namespace, "scale", server, "--replicas=0")
		seed.eventually(t, time.Minute, equals("0"), "-n", namespace, "get", server, "-o",
			"go-template={{or .status.replicas 0}}")
		works()
		seed.run(t, "-n", namespace, "scale", server, "--replicas=1")
		seed.run(t, "-n", namespace, "rollout", "status", server, "--timeout=3m")
		works()
	}
}

// membersOfEtcd waits until an etcd has three members that are ready, as only those are that vote and know a leader,
// and serve, one of them as the leader. It returns the pods of that and of another member.
func (l *landscape) membersOfEtcd(t *testing.T, namespace, role string) (leader, other string) {
	t.Helper()
	seed, name := l.runtimeKubectl(), "etcd-"+role
	seed.eventually(t, 5*time.Minute, equals("3/3"), "-n", namespace, "get", "statefulset", name, "-o",
		"jsonpath={.status.readyReplicas}/{.spec.replicas}")
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		var leaders, others []string
		for i := range 3 {
			pod := fmt.Sprintf("%s-%d", name, i)
			leads, err := l.servesAndLeads(ctx, namespace, pod)
			if err != nil {
				return err
			}
			if leads {
				leaders = append(leaders, pod)
			} else {
				others = append(others, pod)
			}
		}
		if len(leaders) != 1 {
			return fmt.Errorf("%s of %s: %q lead, want one of three", name, namespace, leaders)
		}
		leader, other = leaders[0], others[0]
		return nil
	})
	return leader, other
}

// servesAndLeads asks the steward of a member, which has to serve, whether it leads.
func (l *landscape) servesAndLeads(ctx context.Context, namespace, pod string) (bool, error) {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/status", namespace, pod)
	out, err := l.runtimeKubectl().try(ctx, "", "get", "--raw", path)
	if err != nil {
		return false, err
	}
	if !strings.Contains(out, `"phase":"serving"`) {
		return false, fmt.Errorf("%s does not say that it serves: %s", path, out)
	}
	return strings.Contains(out, `"leads":true`), nil
}

// staysAway has a pod stay, ended, when it is deleted, so that no other one takes its place until comeBack is called.
func (l *landscape) staysAway(t *testing.T, namespace, pod string) (comeBack func()) {
	t.Helper()
	seed := l.runtimeKubectl()
	patch := func(finalizers string) []string {
		return []string{
			"-n", namespace, "patch", "pod", pod, "--type=merge", "-p",
			fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, finalizers),
		}
	}
	t.Cleanup(func() { _, _ = seed.try(context.Background(), "", patch("null")...) })
	seed.run(t, patch(`["e2e.trellis.garden/stays-away"]`)...)
	return func() {
		t.Helper()
		seed.run(t, patch("null")...)
	}
}

// evict asks for the eviction of a pod of the runtime cluster.
func (l *landscape) evict(t *testing.T, namespace, pod string) error {
	t.Helper()
	_, err := l.runtimeKubectl().try(t.Context(), fmt.Sprintf(
		`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":%q,"name":%q}}`, namespace, pod),
		"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod), "-f", "-")
	return err
}

// configMapsOfBefore are so many objects of the label test=growth.
func configMapsOfBefore(count int) string {
	var manifest strings.Builder
	for i := range count {
		fmt.Fprintf(&manifest,
			"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: before-%d, labels: {test: growth}}}\n", i)
	}
	return manifest.String()
}
