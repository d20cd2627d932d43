package federation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/growth"
	"github.com/trellis-garden/trellis/pkg/apis"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/growth/shoots"
)

const growing = `
apiVersion: fleet.trellis.garden/v1alpha1
kind: FleetGrowth
metadata:
  name: standard
spec:
  machines:
  - type: small
    capacity: {cpu: "4", memory: 8Gi}
    costPerHour: "0.2"
  limits: {machines: 5, costPerHour: "1"}
  coolDownSeconds: 0
  pools:
  - clusterSelector: {matchLabels: {pools: may-grow}}
    names: [w]
    maximum: 4
  giveBack: {idleSeconds: 60}
`

const growingWorkload = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
spec:
  replicas: 3
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers:
      - name: nginx
        image: nginx
        resources: {requests: {memory: 4Gi}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    growth: standard
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
`

// project is a garden in which member1 is a shoot, with a pool of one machine.
type project struct {
	t      *testing.T
	world  *world
	garden client.Client
}

func (w *world) newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, world: w, garden: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build()}
	owner := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-demo", Name: "fleet",
		Annotations: map[string]string{fleetv1alpha1.AllowGrowthAnnotation: fleetv1alpha1.GrowPools},
	}}
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{
		{Name: "w", Machine: gardencorev1beta1.Machine{Type: "small"}, Minimum: 1, Maximum: 2},
	}
	if err := errors.Join(p.garden.Create(ctx, owner), p.garden.Create(ctx, shoot)); err != nil {
		t.Fatal(err)
	}
	return p
}

// look does what the extension does from time to time; nothing is kept in memory between two times.
func (p *project) look() error {
	r := &growth.Reconciler{Garden: p.garden, Now: time.Now}
	_, err := r.Sync(ctx, p.world.fleet, types.NamespacedName{Namespace: "garden-demo", Name: "fleet"})
	return err
}

func (p *project) shoot() (*gardencorev1beta1.Shoot, error) {
	s := &gardencorev1beta1.Shoot{}
	return s, p.garden.Get(ctx, types.NamespacedName{Namespace: "garden-demo", Name: "member1"}, s)
}

// has waits until the pool has limits, and the FleetGrowth a condition.
func (p *project) has(limits, condition string) {
	p.t.Helper()
	eventually(p.t, "the pool has "+limits+", and the growth is "+condition, func() error {
		if err := p.look(); err != nil {
			return err
		}
		s, err := p.shoot()
		if err != nil {
			return err
		}
		g := &fleetv1alpha1.FleetGrowth{}
		if err := p.world.fleet.Get(ctx, types.NamespacedName{Name: "standard"}, g); err != nil {
			return err
		}
		w := s.Spec.Provider.Workers[0]
		c := meta.FindStatusCondition(g.Status.Conditions, fleetv1alpha1.GrowthSatisfied)
		if got := fmt.Sprintf("%d-%d", w.Minimum, w.Maximum); got != limits || c == nil ||
			!strings.Contains(c.Reason+" "+c.Message, condition) {
			return fmt.Errorf("%s, %+v, demand %+v", got, c, g.Status.Demand)
		}
		return nil
	})
}

// longAgo has the fleet believe that it changed the pool two minutes ago.
func (p *project) longAgo() {
	p.t.Helper()
	s, err := p.shoot()
	if err != nil {
		p.t.Fatal(err)
	}
	records, err := shoots.Records(s)
	if err != nil || len(records) != 1 {
		p.t.Fatal(records, err)
	}
	record := records["w"]
	record.Since = metav1.NewTime(time.Now().Add(-2 * time.Minute))
	text, err := yaml.Marshal(map[string]fleetv1alpha1.PoolRecord{"w": record})
	if err != nil {
		p.t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		p.t.Fatal(err)
	}
	s.Annotations[fleetv1alpha1.GrownPoolsAnnotation] = string(text)
	if err := p.garden.Update(ctx, s); err != nil {
		p.t.Fatal(err)
	}
}

// label member1 as the shoot that it is.
func (w *world) labelMember(t *testing.T) {
	t.Helper()
	set := func(value any) error {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}}
		labels := map[string]any{clusterv1alpha1.ShootLabel: value, "pools": value}
		if value != nil {
			labels["pools"] = "may-grow"
		}
		patch, err := yaml.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		if err != nil {
			return err
		}
		if patch, err = yaml.YAMLToJSON(patch); err != nil {
			return err
		}
		return w.fleet.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch))
	}
	if err := set("member1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(nil); err != nil {
			t.Error(err)
		}
	})
}

// addPoolNode gives member1 a node that pods may run on, as the controllers of a real cluster would say.
func (w *world) addPoolNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := addNode(t, w.member["member1"], name, "4", "8Gi")
	if err := w.member["member1"].Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	before := node.DeepCopy()
	node.Spec.Taints = nil
	node.Labels[gardencorev1beta1.LabelWorkerPool] = "w"
	if err := w.member["member1"].Patch(ctx, node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return node
}

// What has no place gets machines, also if everything is killed in between, and they are given back when it has gone.
func TestFleetsGrow(t *testing.T) {
	w := newWorld(t)
	kill := w.startFederation(t)
	w.labelMember(t)
	p := w.newProject(t)
	w.addPoolNode(t, "first")
	eventually(t, "the fleet knows the node", func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.fleet.Get(ctx, types.NamespacedName{Name: "member1"}, c); err != nil {
			return err
		}
		if s := c.Status.ResourceSummary; s == nil || len(s.NodeClasses) != 1 || len(s.NodeClasses[0].Taints) > 0 ||
			s.NodeClasses[0].Labels[gardencorev1beta1.LabelWorkerPool] != "w" {
			return fmt.Errorf("summary %+v", s)
		}
		return nil
	})
	for _, object := range parse(t, growing) {
		if err := w.fleet.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	p.has("1-2", "NothingWaits")

	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, growingWorkload)...)
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse, "")
	p.has("2-2", "Growing")
	kill()
	_ = w.startFederation(t)
	p.has("2-2", "Growing")
	w.addPoolNode(t, "second")
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "")
	w.replicasIn(t, namespace, 3, -1)
	p.has("2-2", "NothingWaits")

	// More than the limits: 20 replicas need ten machines, and the pool may have four.
	w.wants(t, namespace, 20)
	p.has("4-4", "pool member1/w may have 4 machines")
	w.wants(t, namespace, 3)
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "")
	p.has("4-4", "NothingWaits")

	p.longAgo()
	p.has("1-4", "NothingWaits")
	if s, err := p.shoot(); err != nil || s.Annotations[fleetv1alpha1.GrownPoolsAnnotation] == "" {
		t.Errorf("the record is gone too early: %v", err)
	}
	p.has("1-2", "NothingWaits")
	if err := w.fleet.Delete(ctx, &fleetv1alpha1.FleetGrowth{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"},
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the FleetGrowth is gone", func() error {
		if err := p.look(); err != nil {
			return err
		}
		return wantGone(w.fleet.Get(ctx, types.NamespacedName{Name: "standard"}, &fleetv1alpha1.FleetGrowth{}))
	})
}

func (w *world) wants(t *testing.T, namespace string, replicas int) {
	t.Helper()
	object, err := deployment(w.fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if err := w.fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
