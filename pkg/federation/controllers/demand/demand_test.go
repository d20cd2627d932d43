package demand

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

const divided = `{growth: standard, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`

func placement(t *testing.T, text string) *policyv1alpha1.Placement {
	t.Helper()
	p := &policyv1alpha1.Placement{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// waiting is the binding of a Deployment with replicas of 2 cores that found no room.
func waiting(t *testing.T, name string, replicas int32, place string,
	change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: name,
			},
			Replicas: replicas,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{
				ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("2")},
			},
			Placement: placement(t, place),
		}}
	b.Status.Conditions = []metav1.Condition{
		{
			Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse,
			Reason: workv1alpha2.ReasonUnschedulable,
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func scheduled(b *workv1alpha2.ResourceBinding) {
	b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionTrue, workv1alpha2.ReasonSuccess
}

// decided has the scheduler say in the binding itself what the status doesn't tell yet.
func decided(reason string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		karmada.SetDecided(b, karmada.Decided{Time: metav1.NewTime(time.Unix(10, 0)), Reason: reason})
	}
}

func standard() *fleetv1alpha1.FleetGrowth {
	return &fleetv1alpha1.FleetGrowth{ObjectMeta: metav1.ObjectMeta{Name: "standard", Generation: 3},
		Spec: fleetv1alpha1.FleetGrowthSpec{
			Machines: []fleetv1alpha1.GrowthMachine{
				{
					Type: "small", Capacity: corev1.ResourceList{
						"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
					},
				},
			},
		}}
}

func withTemplate(g *fleetv1alpha1.FleetGrowth) *fleetv1alpha1.FleetGrowth {
	g.Spec.Shoots = &fleetv1alpha1.GrowthShoots{Maximum: 1, NamePrefix: "extra",
		Template: fleetv1alpha1.GrowthShootTemplate{
			Labels: map[string]string{"tier": "burst"}, Spec: runtime.RawExtension{Raw: []byte(
				`{"region":"north","provider":{"type":"local","workers":[{"name":"w","machine":{"type":"small"},"minimum":1,"maximum":2,"zones":["a"]}]}}`)},
		}}
	return g
}

// members m1 and m2 have no room; both serve Deployments, m2 is in region south.
func members() core.Snapshot {
	apis := core.NewAPIs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	return core.NewSnapshot([]core.Cluster{
		{Name: "m1", Region: "north", APIs: apis, Room: &core.Room{}},
		{Name: "m2", Region: "south", APIs: apis, Room: &core.Room{}},
	})
}

func describe(i fleetv1alpha1.GrowthDemandItem) string {
	text := fmt.Sprintf("%s ×%d %s", i.Binding, i.Replicas, strings.Join(i.Clusters, ","))
	if i.NewShoot {
		text += " or a shoot"
	}
	if i.MaxClusters > 0 {
		text += fmt.Sprintf(" at most %d", i.MaxClusters)
	}
	return text
}

func TestItems(t *testing.T) {
	for name, tc := range map[string]struct {
		binding  *workv1alpha2.ResourceBinding
		template bool
		want     string
		useless  string
	}{
		"all members": {waiting(t, "a", 3, divided), false, "ns/a ×3 m1,m2", ""},
		"or a shoot":  {waiting(t, "a", 3, divided), true, "ns/a ×3 m1,m2 or a shoot", ""},
		"what is left": {waiting(t, "a", 3, divided, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
		}), false, "ns/a ×1 m1,m2", ""},
		"those of a label": {
			waiting(t, "a", 3,
				`{growth: standard, clusterAffinity: {labelSelector: {matchLabels: {tier: burst}}}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`), true, "ns/a ×3  or a shoot", "",
		},
		"those of a name": {
			waiting(t, "a", 3,
				`{growth: standard, clusterAffinity: {clusterNames: [m2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`), true, "ns/a ×3 m2", "",
		},
		"nothing helps": {
			waiting(t, "a", 3,
				`{growth: standard, clusterAffinity: {clusterNames: [gone]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`), true, "ns/a ×3 ", "also with more machines",
		},
		"one cluster": {
			waiting(t, "a", 3,
				`{growth: standard, spreadConstraints: [{spreadByField: cluster, maxGroups: 1, minGroups: 1}], replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`), false, "ns/a ×3 m1,m2 at most 1", "",
		},
		"too large for a machine of the template": {waiting(t, "a", 3, divided, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.ReplicaRequirements.ResourceRequest["cpu"] = resource.MustParse("5")
		}), true, "ns/a ×3 m1,m2", ""},
		"with its group": {waiting(t, "a", 3, divided, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=x"}
			b.Status.Decision = &workv1alpha2.PlacementDecision{Ranking: "m2\n"}
		}), true, "ns/a ×3 m2", ""},
		"with its group, which the status doesn't tell yet": {
			waiting(t, "a", 3, divided, func(b *workv1alpha2.ResourceBinding) {
				b.Status.Decision = &workv1alpha2.PlacementDecision{Ranking: "m1\n"}
				if _, err := karmada.SetReport(b, &workv1alpha2.PlacementDecision{Ranking: "m2\n"}); err != nil {
					t.Fatal(err)
				}
			}), false, "ns/a ×3 m2", "",
		},
		"no such cluster for a copy": {
			waiting(t, "a", 2, `{growth: standard, clusterAffinity: {labelSelector: {matchLabels: {tier: burst}}}}`),
			true, "ns/a ×2  or a shoot", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := standard()
			if tc.template {
				withTemplate(g)
			}
			item := newTrial(members(), g).item(tc.binding)
			if got := describe(item); got != tc.want || !strings.Contains(item.Useless, tc.useless) ||
				tc.useless == "" && item.Useless != "" {
				t.Errorf("got %q (%s), want %q (%s)", got, item.Useless, tc.want, tc.useless)
			}
		})
	}
}

func TestComponentsOfAUnitAreItems(t *testing.T) {
	const one = `{growth: standard, spreadConstraints: [{spreadByField: cluster, maxGroups: 1, minGroups: 1}], replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`
	parts := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil
		b.Spec.Components = []workv1alpha2.Component{
			{
				Name: "master", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
					ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")},
				},
			},
			{Name: "worker", Replicas: 4, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
				ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("2")},
				NodeClaim:       &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "fast"}},
			}},
		}
	}
	item := newTrial(members(), standard()).item(waiting(t, "a", 0, one, parts))
	if got := describe(item); got != "ns/a ×1 m1,m2 at most 1" || item.Request != nil {
		t.Errorf("got %q, requesting %v", got, item.Request)
	}
	var got []string
	for _, c := range item.Components {
		claim := ""
		if c.NodeClaim != nil {
			claim = fmt.Sprint(c.NodeClaim.NodeSelector)
		}
		got = append(got, fmt.Sprintf("%s ×%d %s %s", c.Name, c.Replicas, c.Request.Cpu(), claim))
	}
	if want := "master ×1 1 |worker ×4 2 map[disk:fast]"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func newDemand(t *testing.T, now *time.Time, writes *int, objects ...client.Object) *demand {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1alpha1.AddToScheme, workv1alpha2.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).WithStatusSubresource(&fleetv1alpha1.FleetGrowth{}).Build()
	counted := interceptor.NewClient(c, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			*writes++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	return &demand{
		client: counted, snapshot: func(context.Context) (core.Snapshot, error) { return members(), nil },
		now: func() time.Time { return *now },
	}
}

func TestDemandIsWrittenWhenItChangesAndFromTimeToTime(t *testing.T) {
	now, writes := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 0
	other := waiting(t, "other", 1, `{growth: another}`)
	placed := waiting(t, "placed", 1, divided, scheduled)
	fewer := waiting(t, "fewer", 1, divided, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
	})
	b := waiting(t, "b", 2, divided)
	d := newDemand(t, &now, &writes, standard(), other, placed, fewer, b)
	reconciled := func(want int, binding string) {
		t.Helper()
		result, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "standard"}})
		if err != nil || result.RequeueAfter != look {
			t.Fatal(result, err)
		}
		g := &fleetv1alpha1.FleetGrowth{}
		if err := d.client.Get(t.Context(), client.ObjectKey{Name: "standard"}, g); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range g.Status.Demand.Items {
			names = append(names, i.Binding)
		}
		if got := strings.Join(names, ","); got != binding || writes != want ||
			g.Status.Demand.ObservedGeneration != 3 {
			t.Errorf("%q, %d writes, want %q, %d", got, writes, binding, want)
		}
	}
	reconciled(1, "ns/b")
	now = now.Add(look)
	reconciled(1, "ns/b")
	now = now.Add(renew)
	reconciled(2, "ns/b")
	if err := d.client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	reconciled(3, "")
	if _, err := d.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}}); err != nil {
		t.Error(err)
	}
}

// What waits is told by the binding itself: its status follows later.
func TestDemandFollowsTheDecisionNotTheStatus(t *testing.T) {
	now, writes := time.Now(), 0
	d := newDemand(t, &now, &writes,
		waiting(t, "new", 1, divided, scheduled, decided(workv1alpha2.ReasonUnschedulable)),
		waiting(t, "first", 1, divided, decided(workv1alpha2.ReasonNoClusterFit),
			func(b *workv1alpha2.ResourceBinding) { b.Status.Conditions = nil }),
		waiting(t, "over", 1, divided, decided(workv1alpha2.ReasonSuccess)))
	found, err := d.find(t.Context(), standard())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range found.Items {
		names = append(names, i.Binding)
	}
	if got := strings.Join(names, ","); got != "ns/first,ns/new" {
		t.Errorf("%q wait", got)
	}
}

func TestDemandIsBounded(t *testing.T) {
	now, writes := time.Now(), 0
	objects := []client.Object{standard()}
	for i := range fleetv1alpha1.MaxGrowthDemand + 7 {
		objects = append(objects, waiting(t, fmt.Sprintf("b%03d", i), 1, divided))
	}
	d := newDemand(t, &now, &writes, objects...)
	found, err := d.find(t.Context(), standard())
	if err != nil || len(found.Items) != fleetv1alpha1.MaxGrowthDemand || found.Omitted != 7 ||
		found.Items[0].Binding != "ns/b000" {
		t.Errorf("%d items, %d omitted, %v", len(found.Items), found.Omitted, err)
	}
}

// A created shoot is used when replicas were divided to it. Copies that every cluster gets don't count.
func TestUsedShoots(t *testing.T) {
	now, writes := time.Now(), 0
	on := func(cluster string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			scheduled(b)
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster, Replicas: 1}}
		}
	}
	cluster := func(name, growth string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fleetv1alpha1.GrownForLabel: growth}},
		}
	}
	d := newDemand(t, &now, &writes, cluster("extra-1", "standard"), cluster("extra-2", "standard"),
		cluster("extra-3", "another"),
		waiting(t, "divided", 1, divided, on("extra-1")), waiting(t, "copy", 1, `{}`, on("extra-2")),
		waiting(t, "elsewhere", 1, divided, on("extra-3")))
	found, err := d.find(t.Context(), standard())
	if err != nil || strings.Join(found.Used, ",") != "extra-1" {
		t.Errorf("used %v, %v", found.Used, err)
	}
}
