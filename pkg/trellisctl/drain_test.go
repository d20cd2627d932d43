package trellisctl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func fleetOf(t *testing.T, objects ...client.Object) *Fleet {
	t.Helper()
	scheme := fleetscheme.Scheme()
	return &Fleet{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// Drain says what it waits for, each number once, and in the end which objects stay and how to go back.
func TestWaitingForADrain(t *testing.T) {
	work := func(cluster, name string) client.Object {
		return &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: name},
		}
	}
	var said []string
	tell := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	fleet := fleetOf(t, work("one", "a"), work("one", "b"), work("two", "c"))
	err := fleet.waitDrained(t.Context(), "one", time.Millisecond, tell)
	if err == nil || !strings.Contains(err.Error(), "2 objects still in one after 1ms, for example the Works a, b") ||
		!strings.Contains(err.Error(), "`trellisctl uncordon one`") {
		t.Errorf("got %v", err)
	}
	if err := fleet.waitDrained(t.Context(), "three", time.Second, tell); err != nil {
		t.Errorf("got %v", err)
	}
	if strings.Join(said, ";") != "2 objects left in one;0 objects left in three" {
		t.Errorf("said %q", said)
	}
}

func TestTaintsOfAMember(t *testing.T) {
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoExecute}
	fleet := fleetOf(t, &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{own}},
	})
	taints := func() string {
		member := &clusterv1alpha1.Cluster{}
		if err := fleet.Client.Get(t.Context(), client.ObjectKey{Name: "one"}, member); err != nil {
			t.Fatal(err)
		}
		return taintsOf(member)
	}
	for _, step := range []struct {
		effect corev1.TaintEffect
		set    bool
		want   string
	}{
		{corev1.TaintEffectNoSchedule, true, "own:NoExecute," + clusterv1alpha1.TaintUnschedulable + ":NoSchedule"},
		{
			corev1.TaintEffectNoExecute, true,
			"own:NoExecute," + clusterv1alpha1.TaintUnschedulable + ":NoSchedule," +
				clusterv1alpha1.TaintUnschedulable + ":NoExecute",
		},
		{"", false, "own:NoExecute"},
	} {
		if err := fleet.setUnschedulable(t.Context(), "one", step.effect, step.set); err != nil {
			t.Fatal(err)
		}
		if got := taints(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
	err := fleet.setUnschedulable(t.Context(), "oen", corev1.TaintEffectNoSchedule, true)
	if err == nil || !strings.Contains(err.Error(), `the fleet has no member "oen"; `+"`trellisctl members`") {
		t.Errorf("got %v", err)
	}
}

// Room is rounded down: what is shown fits.
func TestRoundedDown(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "0", 1.999: "1.99", 12.999: "12.9", 123.9: "123", 1999.9: "1999", 0.999: "0.99", 4: "4",
	} {
		if got := roundedDown(amount); got != want {
			t.Errorf("%v: got %s, want %s", amount, got, want)
		}
	}
}

func TestStatesOfARollout(t *testing.T) {
	status := &workv1alpha2.RolloutStatus{
		Phase: workv1alpha2.RolloutProgressing, CurrentWave: 2, StableRevision: "old", UpdateRevision: "new",
		Waves: []workv1alpha2.RolloutWaveStatus{
			{Clusters: []string{"a"}}, {Clusters: []string{"b"}}, {}, {Clusters: []string{"c"}},
		},
	}
	waves := func() string {
		var states []string
		for i := range status.Waves {
			states = append(states, waveState(status, i))
		}
		return strings.Join(states, ", ")
	}
	for phase, want := range map[workv1alpha2.RolloutPhase]string{
		workv1alpha2.RolloutProgressing: "done, Progressing, no clusters, not yet",
		workv1alpha2.RolloutCompleted:   "done, done, no clusters, done",
		workv1alpha2.RolloutRolledBack:  "done, rolled back, no clusters, rolled back",
	} {
		status.Phase = phase
		if got := waves(); got != want {
			t.Errorf("%s: got %s", phase, got)
		}
	}
	for revision, want := range map[string][2]string{
		"old": {"in clusters whose wave has not come", "in all clusters, instead of the object's"},
		"new": {"the object's, being rolled out", "the object's, rolled back"}, "older": {"kept", "kept"},
	} {
		status.Phase = workv1alpha2.RolloutProgressing
		running := revisionState(status, revision)
		status.Phase = workv1alpha2.RolloutRolledBack
		if back := revisionState(status, revision); running != want[0] || back != want[1] {
			t.Errorf("%s: got %q, %q", revision, running, back)
		}
	}
}

// A rollout that failed ends the command with its reason; one that goes on does not end it.
func TestRolloutsThatEnded(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Name: "web"}
	for phase, test := range map[workv1alpha2.RolloutPhase]struct {
		done bool
		err  string
	}{
		workv1alpha2.RolloutProgressing: {false, ""}, workv1alpha2.RolloutCompleted: {true, ""},
		workv1alpha2.RolloutFailed:     {true, "rollout 3 of Deployment web: Failed: two pods crash"},
		workv1alpha2.RolloutRolledBack: {true, "rollout 3 of Deployment web: RolledBack: two pods crash"},
	} {
		done, err := ended(b, &workv1alpha2.RolloutStatus{Phase: phase, Number: 3, Message: "two pods crash"})
		if done != test.done || (err == nil) != (test.err == "") || (err != nil && err.Error() != test.err) {
			t.Errorf("%s: got %v, %v", phase, done, err)
		}
	}
}

// What a rollout is at, wave by wave, and what is not as the numbers say: a change that was not looked at, a policy
// that is wrong.
func TestPrintRollout(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Rollout = &policyv1alpha1.RolloutStrategy{}
	b.Status.Rollout = &workv1alpha2.RolloutStatus{
		Number: 4, Phase: workv1alpha2.RolloutSoaking, Reason: "Soaking", Message: "until 12:00",
		Since:          metav1.NewTime(today.Add(-time.Minute * 5)),
		StableRevision: "aaa", UpdateRevision: "bbb", CurrentWave: 1,
		Waves: []workv1alpha2.RolloutWaveStatus{
			{Name: "canary", Clusters: []string{"one"}, Updated: 1, Healthy: 1},
			{Name: "rest", Clusters: []string{"two", "three"}, Unavailable: 1},
		},
	}
	head := []string{"Deployment shop/web", "Policy: none", "Rollout: 4, Soaking (Soaking) for 5m"}
	waves := []string{
		"", "WAVE CLUSTERS UPDATED HEALTHY UNAVAILABLE STATE", "canary 1 1 1 - Soaking", "rest 2 0 0 1 not yet",
	}
	for name, test := range map[string]struct {
		stable, pending string
		want            []string
	}{
		"under way": {"aaa", "", []string{"Revision: bbb, of the object; aaa before", "Message: until 12:00"}},
		"not looked at": {"aaa", "the object was changed", []string{
			"Revision: bbb, of the object; aaa before", "Message: until 12:00", "But: the object was changed",
		}},
		"of one revision": {"bbb", "", []string{"Revision: bbb", "Message: until 12:00"}},
	} {
		b.Status.Rollout.StableRevision = test.stable
		var out bytes.Buffer
		err := printRollout(&out, b, test.pending, today)
		got := slices.DeleteFunc(lines(t, &out, err),
			func(line string) bool { return strings.HasPrefix(line, "Problem:") })
		check(t, name, got, slices.Concat(head, test.want, waves))
	}
}

func TestAmountsOfMembers(t *testing.T) {
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1536Mi"),
	}
	for want, name := range map[string]corev1.ResourceName{
		"1500m": corev1.ResourceCPU, "1.5Gi": corev1.ResourceMemory, "?": "nvidia.com/gpu",
	} {
		if got := amount(list, name); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	member := &clusterv1alpha1.Cluster{}
	if got := roomOf(member, corev1.ResourceCPU); got != "" {
		t.Errorf("a member that was not surveyed: %q", got)
	}
	member.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: list, Available: list}
	if got := roomOf(member, corev1.ResourceMemory); got != "1.5Gi / 1.5Gi / ?" {
		t.Errorf("got %q", got)
	}
}
