package terminal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

var now = time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)

func TestObjects(t *testing.T) {
	for name, within := range map[string]string{"shoot": "", "controlplane": "shoot--b--one"} {
		namespace := namespaceFor("terminal-x", "alice", now.Add(lease))
		namespace.UID = "uid"
		p := place{target: target{within: within}, image: "terminal:v1", namespace: namespace, ends: now.Add(lifetime),
			now: func() time.Time { return now }}
		golden.Check(t, name, []client.Object{
			namespace, serviceAccount("terminal-x"), keepersBinding(namespace).object, p.job(),
			usersBinding(namespace, within).object,
		}...)
	}
}

// aPlace is one in a cluster, as an administrator of it.
func aPlace(t *testing.T) (*place, *gardentest.Cluster) {
	t.Helper()
	garden, cluster := gardentest.New(t), gardentest.NewCluster(t, "admin-token")
	garden.Users["alice-token"] = gardentest.User{Name: "alice"}
	garden.Kubeconfig = func(level, _, _ string) []byte { return cluster.KubeconfigFor(level + "-token") }
	all, err := clusters.New(clusters.Options{Server: garden.Server.URL, CA: garden.CA(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	as, err := all.Administrator(t.Context(), session.Credential{Token: "alice-token"}, "garden-b", "one", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &place{
		cluster: as, user: "alice", image: "terminal:v1", ends: now.Add(lifetime), now: func() time.Time { return now },
		renewEvery: time.Millisecond, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newName()}},
	}, cluster
}

// A lease is short, is renewed while there is a server, and never goes beyond the end.
func TestLeasesAreRenewed(t *testing.T) {
	p, cluster := aPlace(t)
	path := "api/v1/namespaces/" + p.namespace.Name
	if err := p.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	expires := func() string {
		return cluster.Object(path)["metadata"].(map[string]any)["annotations"].(map[string]any)[ExpiresAnnotation].(string)
	}
	for _, test := range []struct{ passed, wanted time.Duration }{
		{0, lease}, {time.Minute, time.Minute + lease}, {lifetime - time.Second, lifetime}, {2 * lifetime, lifetime},
	} {
		p.now = func() time.Time { return now.Add(test.passed) }
		if err := p.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := expires(); got != expiresAt(now.Add(test.wanted)) {
			t.Errorf("after %s it expires at %s", test.passed, got)
		}
	}
}

// Whoever stops while a terminal is made leaves rights only where there is a pod that takes them away.
func TestRightsComeLast(t *testing.T) {
	for _, within := range []string{"", "shoot--b--one"} {
		p, cluster := aPlace(t)
		p.within = within
		cluster.Refuse["jobs"] = "Forbidden"
		if err := p.make(t.Context()); err == nil {
			t.Fatal("there is a Job")
		}
		own := "apis/rbac.authorization.k8s.io/v1/namespaces/" + p.namespace.Name + "/rolebindings/" + p.namespace.Name
		for _, path := range cluster.Paths() {
			if strings.Contains(path, "rolebindings") && path != own {
				t.Errorf("there are rights without a keeper: %s", path)
			}
		}
		if cluster.Object(own) == nil {
			t.Errorf("the pod could not remove the terminal: %v", cluster.Paths())
		}
	}
}

// A terminal that somebody removes in the cluster ends for its page, too.
func TestRemovedTerminalsEnd(t *testing.T) {
	p, _ := aPlace(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	p.keep(&socket{ctx: ctx, cancel: cancel}) // It was never made.
	if cause := context.Cause(ctx); cause == nil || cause.Error() != "somebody has removed it" {
		t.Errorf("it ended as %v", cause)
	}
}

// What servers and pods left that are gone is removed by the next terminal; what is alive, or no terminal, stays.
func TestLostTerminalsAreSwept(t *testing.T) {
	p, cluster := aPlace(t)
	put := func(name, label, expires, created string) {
		cluster.Keep(t, "api/v1/namespaces/"+name, gardentest.Object{"metadata": map[string]any{
			"name": name, "labels": map[string]any{Label: label}, "creationTimestamp": created,
			"annotations": map[string]any{ExpiresAnnotation: expires},
		}})
	}
	old, young := now.Add(-2*lifetime).Format(time.RFC3339), now.Format(time.RFC3339)
	put("terminal-over", "true", expiresAt(now), old)
	put("terminal-alive", "true", expiresAt(now.Add(time.Second)), old)
	put("terminal-of-somebody", "false", expiresAt(now.Add(-time.Hour)), old)
	put("kube-system", "true", expiresAt(now.Add(-time.Hour)), old)
	put("terminal-mute", "true", "", old)
	put("terminal-mute-and-young", "true", "x", young)
	if err := p.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wanted := []string{"api/v1/namespaces/terminal-mute", "api/v1/namespaces/terminal-over"}
	if removed := cluster.Removed(); !slices.Equal(slices.Sorted(slices.Values(removed)), wanted) {
		t.Errorf("removed is %v", removed)
	}
}

// The pod removes its terminal when the lease has ended, or is gone; not while it cannot tell.
func TestKeepersRemoveWhatIsOver(t *testing.T) {
	for what, test := range map[string]struct {
		answer  string
		removes bool
	}{
		"alive": {"echo 99999999999", false}, "over": {"echo 1000", true}, "not renewed any more": {"echo", true},
		"the API is away": {"exit 1", false},
	} {
		dir := t.TempDir()
		for name, script := range map[string]string{
			// The third pause ends the loop.
			"sleep":   "echo >>" + dir + "/pauses; [ $(wc -l <" + dir + "/pauses) -lt 3 ]",
			"kubectl": "echo \"$@\" >>" + dir + "/calls\n[ $1 = delete ] || " + test.answer,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), "/bin/sh", "-c", keeper)
		command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "TERMINAL=terminal-x"}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", what, err, out)
		}
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(calls), "delete namespace terminal-x --wait=false\n"); got != test.removes {
			t.Errorf("%s: it calls\n%s", what, calls)
		}
		if !strings.HasPrefix(string(calls), "get namespace terminal-x -o jsonpath={.metadata.annotations."+
			strings.ReplaceAll(strings.TrimSuffix(ExpiresAnnotation, "/expires"), ".", `\.`)+"/expires}\n") {
			t.Errorf("%s: it reads\n%s", what, calls)
		}
	}
}

func TestStatesOfPods(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no"}}
	for wanted, pod := range map[string]*corev1.Pod{
		"Pending":         {Status: corev1.PodStatus{Phase: corev1.PodPending}},
		"ErrImagePull no": {Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: waiting}}}},
		"Unschedulable 0/3": {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3",
		}}}},
		"": {Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}},
	} {
		if awaited, runs := stateOf(pod); awaited != wanted || runs != (wanted == "") {
			t.Errorf("got %q %t, want %q", awaited, runs, wanted)
		}
	}
}
