package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// workIn is a Work for a Deployment in a member; of says of which binding it was made.
func workIn(member, name string, of ...string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.ExecutionNamespace(member), Name: name},
	}
	manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":%q}}`, name)
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	if len(of) > 0 {
		work.Annotations = map[string]string{
			workv1alpha2.NamespaceAnnotation: "shop", workv1alpha2.NameAnnotation: of[0],
		}
	}
	return work
}

// Drain says what it waits for, each number once, and in the end which objects stay and how to go back.
func TestWaitingForADrain(t *testing.T) {
	var said []string
	tell := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	fleet := fleetOf(t, workIn("one", "a"), workIn("one", "b"), workIn("two", "c"))
	err := fleet.waitDrained(t.Context(), "one", time.Millisecond, tell)
	if err == nil || !strings.Contains(err.Error(), "2 objects still in one after 1ms: Deployment shop/a (somebody "+
		"wrote its Work a by hand), Deployment shop/b (") ||
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

// What holds up a drain is told for each object: who has to do something about it is another one each time.
func TestWhatHoldsUpADrain(t *testing.T) {
	bound := func(name string, change func(*workv1alpha2.ResourceBinding)) client.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		change(b)
		return b
	}
	deleted := func(work *workv1alpha1.Work, held metav1.ConditionStatus) *workv1alpha1.Work {
		work.Finalizers, work.DeletionTimestamp = []string{"a/b"}, new(metav1.NewTime(today))
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionDeletionHeld, Status: held}}
		return work
	}
	fleet := fleetOf(t, deleted(workIn("one", "held"), metav1.ConditionTrue),
		deleted(workIn("one", "going"), metav1.ConditionFalse),
		workIn("one", "tolerates", "tolerates"), workIn("one", "evicted", "evicted"), workIn("one", "nowhere", "nowhere"),
		workIn("one", "placed", "placed"), workIn("one", "lost", "lost"),
		bound("tolerates", func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{
				{Key: clusterv1alpha1.TaintUnschedulable, Operator: corev1.TolerationOpExists},
			}}
		}),
		bound("evicted", func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "two"}, {FromCluster: "one"}}
		}),
		bound("nowhere", func(b *workv1alpha2.ResourceBinding) {
			b.Status.Conditions = []metav1.Condition{
				{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Message: "no\nroom"},
			}
		}),
		bound("placed", func(*workv1alpha2.ResourceBinding) {}))
	works := &workv1alpha1.WorkList{}
	if err := fleet.Client.List(t.Context(), works); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range works.Items {
		got = append(got, fleet.whatStays(t.Context(), "one", works.Items[i:i+1]))
	}
	slices.Sort(got)
	check(t, "what stays", got, []string{
		"Deployment shop/evicted (its replacement is not healthy elsewhere yet)",
		"Deployment shop/going (is being deleted there, for which the member must answer)",
		"Deployment shop/held (its deletion waits for `trellisctl deletions confirm --cluster one`)",
		"Deployment shop/lost (no decision on it can be read)",
		"Deployment shop/nowhere (fits nowhere else: no room)",
		"Deployment shop/placed (its decision still has it there; see `trellisctl explain`)",
		"Deployment shop/tolerates (its policy tolerates the taint)",
	})
	if all := fleet.whatStays(t.Context(), "one", works.Items); !strings.HasSuffix(all, ", and 2 more") {
		t.Errorf("got %s", all)
	}
	d := &draining{fleet: fleet, member: "one", tell: func(string, ...any) {}}
	if done, err := d.look(t.Context()); done || err != nil || d.told !=
		"7 objects left in one, 1 of which waits for a confirmation: trellisctl deletions --cluster one" {
		t.Errorf("got %t, %v, told %q", done, err, d.told)
	}
}

// A fleet that does not answer for a while ends no drain; one that refuses to does.
func TestADrainWithoutConnection(t *testing.T) {
	answers := []error{errors.New("connection refused"), errors.New("connection refused"), nil}
	functions := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList,
		...client.ListOption) error {
		err := answers[0]
		answers = answers[1:]
		return err
	}}
	fleet := &Fleet{
		Client: fake.NewClientBuilder().WithScheme(fleetscheme.Scheme()).WithInterceptorFuncs(functions).Build(),
	}
	var said []string
	tell := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	synctest.Test(t, func(t *testing.T) {
		if err := fleet.waitDrained(t.Context(), "one", time.Minute, tell); err != nil {
			t.Error(err)
		}
	})
	check(t, "said", said, []string{
		"No connection to the fleet, trying again: connection refused", "0 objects left in one",
	})
	answers = []error{apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "", errors.New("no rights"))}
	err := fleet.waitDrained(t.Context(), "one", time.Minute, tell)
	if err == nil || !strings.Contains(err.Error(), "listing what is left in one, which stays tainted: ") {
		t.Errorf("got %v", err)
	}
}

// What others write meanwhile is kept, and a fleet with much to do is asked again; for ever it is not.
func TestTaintsBesideOthers(t *testing.T) {
	busy := []error{
		apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "one", nil),
		apierrors.NewTooManyRequests("much to do", 0), nil,
	}
	functions := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object,
		patch client.Patch, options ...client.PatchOption) error {
		err := busy[0]
		if len(busy) > 1 {
			busy = busy[1:]
		}
		if err != nil {
			return err
		}
		return c.Patch(ctx, object, patch, options...)
	}}
	fleet := &Fleet{Client: fake.NewClientBuilder().WithScheme(fleetscheme.Scheme()).WithInterceptorFuncs(functions).
		WithObjects(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}).Build()}
	if err := fleet.setUnschedulable(t.Context(), "one", corev1.TaintEffectNoExecute, true); err != nil {
		t.Fatal(err)
	}
	busy = []error{apierrors.NewTooManyRequests("much to do", 0)}
	err := fleet.setUnschedulable(t.Context(), "one", corev1.TaintEffectNoExecute, false)
	if err == nil || !strings.Contains(err.Error(), "try again in a moment") {
		t.Errorf("got %v", err)
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
