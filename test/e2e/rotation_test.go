//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// All credentials of member2 are rotated. A web server in the shoot answers all requests although its machine is
// replaced, and no client is without the API for long. The fleet keeps its member.
func rotateCredentials(t *testing.T) {
	l := open(t)
	l.explainShoot(t, "member2")
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	before := l.shoot(t, "member2")
	before.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	web := l.probeWeb(t, "member2", "pool", before)
	between := l.rotate(t, "member2", before, probes.answeredInTime)
	web.stop(t, between).allAnswered(t, "web server, in a rotation")
	l.fleet(t).eventually(t, 2*time.Minute, equals("True"), "get", "clusters.cluster.karmada.io", "member2", "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
}

// judge says whether API servers have answered as they should.
type judge func(counted probes, t *testing.T, whom string)

// rotate rotates all credentials of a shoot, while gardenlet is killed once. A client with a kubeconfig of before works
// until the rotation is completed; one of the time between, which it returns, works on; pods use their service account
// tokens all the while.
func (l *landscape) rotate(t *testing.T, name string, before kubectl, api judge) (between kubectl) {
	t.Helper()
	before.apply(t, "{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {gold: much}}")
	before.run(t, "delete", "deployment/caller", "--ignore-not-found") // of a run that failed
	before.run(t, "create", "deployment", "caller", "--image=nginx")
	before.callFromPod(t)
	between = l.startRotation(t, name, before, api)
	l.completeRotation(t, name, before, between, api)
	between.run(t, "delete", "deployment/caller", "secret/treasure", "--wait=false")
	return between
}

// startRotation does the first half of the rotation, in which a kubeconfig of before is good for the API. It returns
// one of the time after it.
func (l *landscape) startRotation(t *testing.T, name string, before kubectl, api judge) (between kubectl) {
	t.Helper()
	node := before.run(t, "get", "nodes", "-o", "name")
	prober := probeAPI(t, before)
	l.operate(t, name, "rotate-credentials-start")
	// Half of the tasks are done when the API server is ready. The start of a gardenlet would slow down that of etcd.
	l.waitForProgress(t, name, 55)
	l.killGardenlet(t)
	// The machines are replaced; a flow that fails half way begins again only after a while.
	l.waitForPhase(t, name, "certificateAuthorities", "Prepared", 15*time.Minute)
	l.waitForPhase(t, name, "serviceAccountKey", "Prepared", time.Second)
	l.waitForPhase(t, name, "etcdEncryptionKey", "Completed", 3*time.Minute)
	before.eventually(t, time.Minute, contains("much"), "get", "secret", "treasure", "-o",
		"go-template={{.data.gold | base64decode}}")
	if now := before.run(t, "get", "nodes", "-o", "name"); now == node {
		t.Errorf("the machine was not replaced: %s", now)
	}
	before.callFromPod(t)
	between = l.shoot(t, name)
	between.run(t, "get", "nodes")
	api(prober.stop(), t, "kube-apiserver, in the first half of a rotation, with a kubeconfig of before")
	return between
}

// completeRotation does the second half of the rotation, after which only a kubeconfig of the time between is good.
func (l *landscape) completeRotation(t *testing.T, name string, before, between kubectl, api judge) {
	t.Helper()
	prober := probeAPI(t, between)
	l.operate(t, name, "rotate-credentials-complete")
	l.waitForPhase(t, name, "certificateAuthorities", "Completed", 4*time.Minute)
	l.waitForPhase(t, name, "serviceAccountKey", "Completed", time.Second)
	between.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	between.callFromPod(t)
	if out, err := before.try(t.Context(), "", "get", "nodes"); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("the kubeconfig of before the rotation gives %q, %v; want it to be of no use", out, err)
	}
	api(prober.stop(), t, "kube-apiserver, in the second half of a rotation, with a kubeconfig of the time between")
}

// callFromPod has a pod ask the API server with its service account's token.
func (k kubectl) callFromPod(t *testing.T) {
	t.Helper()
	const script = `wget -q -O - --no-check-certificate --header "Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" https://kubernetes.default.svc/version`
	k.eventually(t, 2*time.Minute, contains("gitVersion"), "exec", "deploy/caller", "--", "sh", "-c", script)
}

// operate asks for operations on a shoot.
func (l *landscape) operate(t *testing.T, name, operations string) {
	t.Helper()
	l.gardenKubectl().run(t, "-n", "garden-demo", "annotate", "shoot", name, "gardener.cloud/operation="+operations)
}

// waitForPhase waits until a rotation is so far.
func (l *landscape) waitForPhase(t *testing.T, name, credential, phase string, timeout time.Duration) {
	t.Helper()
	l.gardenKubectl().eventually(t, timeout, func(out string) error {
		if reached, _, _ := strings.Cut(out, " "); reached != phase {
			return fmt.Errorf("%s of %s: %s, want %s", credential, name, out, phase)
		}
		return nil
	}, "-n", "garden-demo", "get", "shoot", name, "-o",
		"jsonpath={.status.credentials.rotation."+credential+
			".phase} ({.status.lastOperation.progress}%: {.status.lastOperation.description})")
}
