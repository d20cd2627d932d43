//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// All credentials of member2 are rotated, while gardenlet is killed once. A client with a kubeconfig of before works
// until the rotation is completed; one of the time between works on; pods use their service account tokens all the
// while; the fleet keeps its member. A web server in the shoot answers all requests although its machine is replaced,
// and no client is without the API for long.
func rotateCredentials(t *testing.T) {
	l := open(t)
	l.explainShoot(t, "member2")
	l.waitForShoot(t, "member2", "", 5*time.Minute)
	before := l.shoot(t, "member2")
	before.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	before.apply(t, "{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {gold: much}}")
	before.run(t, "delete", "deployment/caller", "--ignore-not-found") // of a run that failed
	before.run(t, "create", "deployment", "caller", "--image=nginx")
	before.callFromPod(t)
	web := l.probeWeb(t, "member2", "pool", before)

	between := l.startRotation(t, before)
	l.completeRotation(t, before, between)
	web.stop(t, between).allAnswered(t, "web server, in a rotation")
	l.fleet(t).eventually(t, 2*time.Minute, equals("True"), "get", "clusters.cluster.karmada.io", "member2", "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	between.run(t, "delete", "deployment/caller", "secret/treasure", "--wait=false")
}

// startRotation does the first half of the rotation, in which a kubeconfig of before is good for the API. It returns
// one of the time after it.
func (l *landscape) startRotation(t *testing.T, before kubectl) (between kubectl) {
	t.Helper()
	node := before.run(t, "get", "nodes", "-o", "name")
	api := probeAPI(t, before)
	l.operate(t, "member2", "rotate-credentials-start")
	l.waitForProgress(t, "member2", 40)
	l.killGardenlet(t)
	// The machines are replaced; a flow that fails half way begins again only after a while.
	l.waitForPhase(t, "member2", "certificateAuthorities", "Prepared", 15*time.Minute)
	l.waitForPhase(t, "member2", "serviceAccountKey", "Prepared", time.Second)
	l.waitForPhase(t, "member2", "etcdEncryptionKey", "Completed", 3*time.Minute)
	before.eventually(t, time.Minute, contains("much"), "get", "secret", "treasure", "-o",
		"go-template={{.data.gold | base64decode}}")
	if now := before.run(t, "get", "nodes", "-o", "name"); now == node {
		t.Errorf("the machine was not replaced: %s", now)
	}
	before.callFromPod(t)
	between = l.shoot(t, "member2")
	between.run(t, "get", "nodes")
	api.stop().counted(t, "kube-apiserver, in the first half of a rotation, with a kubeconfig of before")
	return between
}

// completeRotation does the second half of the rotation, after which only a kubeconfig of the time between is good.
func (l *landscape) completeRotation(t *testing.T, before, between kubectl) {
	t.Helper()
	api := probeAPI(t, between)
	l.operate(t, "member2", "rotate-credentials-complete")
	l.waitForPhase(t, "member2", "certificateAuthorities", "Completed", 4*time.Minute)
	l.waitForPhase(t, "member2", "serviceAccountKey", "Completed", time.Second)
	between.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	between.callFromPod(t)
	if out, err := before.try(t.Context(), "", "get", "nodes"); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("the kubeconfig of before the rotation gives %q, %v; want it to be of no use", out, err)
	}
	api.stop().counted(t, "kube-apiserver, in the second half of a rotation, with a kubeconfig of the time between")
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
