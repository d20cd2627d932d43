package growth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/apis"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/federation/growth/shoots"
)

const namespace = "garden-demo"

var (
	ctx  = context.Background()
	list = func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("110"),
		}
	}
)

// bed is a garden with a fleet and a shoot, and the fleet's API.
type bed struct {
	t             *testing.T
	garden, fleet client.Client
	now           time.Time
	// broken has the garden refuse writes.
	broken error
	name   string
}

func newBed(t *testing.T, allowed string, change ...func(*fleetv1alpha1.FleetGrowth)) *bed {
	b := &bed{t: t, now: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), name: "standard"}
	refuse := func() error { return b.broken }
	b.garden = interceptor.NewClient(fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			return errors.Join(refuse(), c.Patch(ctx, o, p, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if o.GetAnnotations()[gardencorev1beta1.ConfirmationDeletion] != "true" {
				t.Error("a shoot is deleted without the confirmation")
			}
			return c.Delete(ctx, o, options...)
		},
	})
	scheme := fleetscheme.Scheme()
	b.fleet = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&fleetv1alpha1.FleetGrowth{},
		&clusterv1alpha1.Cluster{}).Build()
	growth := &fleetv1alpha1.FleetGrowth{ObjectMeta: metav1.ObjectMeta{Name: b.name},
		Spec: fleetv1alpha1.FleetGrowthSpec{
			Machines: []fleetv1alpha1.GrowthMachine{
				{Type: "small", Capacity: list("4", "8Gi"), CostPerHour: resource.MustParse("0.2")},
			},
			Limits:   fleetv1alpha1.GrowthLimits{Machines: 6, CostPerHour: new(resource.MustParse("1"))},
			Pools:    []fleetv1alpha1.GrowthPools{{Maximum: 5}},
			GiveBack: &fleetv1alpha1.GrowthGiveBack{IdleSeconds: new(int32(300))}, CoolDownSeconds: new(int32(0)),
		}}
	for _, c := range change {
		c(growth)
	}
	b.create(b.garden, &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "fleet",
			Annotations: map[string]string{fleetv1alpha1.AllowGrowthAnnotation: allowed},
		},
	})
	b.create(b.garden, newShoot("member", nil))
	b.create(b.fleet, growth)
	b.join("member", 1, "4")
	b.demands()
	return b
}

func newShoot(name string, labels map[string]string) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{
		{Name: "w", Machine: gardencorev1beta1.Machine{Type: "small"}, Minimum: 1, Maximum: 2},
	}
	return s
}

func template(g *fleetv1alpha1.FleetGrowth) {
	g.Spec.Pools = nil
	g.Spec.Shoots = &fleetv1alpha1.GrowthShoots{Maximum: 2, NamePrefix: "extra",
		Template: fleetv1alpha1.GrowthShootTemplate{
			Labels: map[string]string{"tier": "burst"},
			Spec: runtime.RawExtension{
				Raw: []byte(`{"region":"r","provider":{"type":"local","workers":[{"name":"w","machine":{"type":"small"},"minimum":1,"maximum":2}]}}`),
			},
		}}
}

func (b *bed) create(c client.Client, object client.Object) {
	b.t.Helper()
	if err := c.Create(ctx, object); err != nil {
		b.t.Fatal(err)
	}
}

// join makes a shoot a member with that many nodes, each with so much CPU left.
func (b *bed) join(name string, nodes int32, free string) {
	b.t.Helper()
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1alpha1.ShootLabel: name}},
	}
	if err := client.IgnoreAlreadyExists(b.fleet.Create(ctx, c)); err != nil {
		b.t.Fatal(err)
	}
	if err := b.fleet.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
		b.t.Fatal(err)
	}
	sum := resource.MustParse(free)
	sum.Mul(int64(nodes))
	c.Status.NodeSummary = &clusterv1alpha1.NodeSummary{TotalNum: nodes, ReadyNum: nodes}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{
			"cpu": sum, "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("1000"),
		},
		NodeClasses: []clusterv1alpha1.NodeClass{
			{Count: nodes, Free: list(free, "8Gi"), Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: "w"}},
		},
	}
	if err := b.fleet.Status().Update(ctx, c); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) growth() *fleetv1alpha1.FleetGrowth {
	b.t.Helper()
	g := &fleetv1alpha1.FleetGrowth{}
	if err := b.fleet.Get(ctx, client.ObjectKey{Name: b.name}, g); err != nil {
		b.t.Fatal(err)
	}
	return g
}

func (b *bed) shoot(name string) *gardencorev1beta1.Shoot {
	b.t.Helper()
	s := &gardencorev1beta1.Shoot{}
	if err := b.garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// demands has the fleet's controllers say what waits.
func (b *bed) demands(items ...fleetv1alpha1.GrowthDemandItem) {
	b.t.Helper()
	g := b.growth()
	g.Status.Demand = &fleetv1alpha1.GrowthDemand{
		ObservedTime: metav1.NewTime(b.now), ObservedGeneration: g.Generation, Items: items,
	}
	if err := b.fleet.Status().Update(ctx, g); err != nil {
		b.t.Fatal(err)
	}
}

func item(replicas int32, cpu string, clusters ...string) fleetv1alpha1.GrowthDemandItem {
	return fleetv1alpha1.GrowthDemandItem{
		Binding: "ns/web", Replicas: replicas, Request: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		Clusters: clusters, NewShoot: len(clusters) == 0,
	}
}

// sync lets time pass and looks once.
func (b *bed) sync(after time.Duration) {
	b.t.Helper()
	b.now = b.now.Add(after)
	g := b.growth()
	if g.Status.Demand != nil {
		g.Status.Demand.ObservedTime = metav1.NewTime(b.now)
		if err := b.fleet.Status().Update(ctx, g); err != nil {
			b.t.Fatal(err)
		}
	}
	b.look()
}

func (b *bed) look() {
	b.t.Helper()
	r := &Reconciler{Garden: b.garden, Now: func() time.Time { return b.now }}
	if _, err := r.Sync(ctx, b.fleet, client.ObjectKey{Namespace: namespace, Name: "fleet"}); err != nil {
		b.t.Fatal(err)
	}
}

// limits of the pool, with whether there is a record.
func (b *bed) limits(name string) string {
	b.t.Helper()
	s := b.shoot(name)
	records, err := shoots.Records(s)
	if err != nil {
		b.t.Fatal(err)
	}
	w := s.Spec.Provider.Workers[0]
	text := fmt.Sprintf("%d-%d", w.Minimum, w.Maximum)
	if len(records) > 0 {
		text += " recorded"
	}
	return text
}

func (b *bed) want(what, name, limits, condition string) {
	b.t.Helper()
	if got := b.limits(name); got != limits {
		b.t.Errorf("%s: pool of %s has %s, want %s; decisions %+v", what, name, got, limits,
			b.growth().Status.Decisions)
	}
	b.satisfied(what, condition)
}

func (b *bed) satisfied(what, condition string) {
	b.t.Helper()
	c := meta.FindStatusCondition(b.growth().Status.Conditions, fleetv1alpha1.GrowthSatisfied)
	if c == nil || !strings.Contains(string(c.Status)+" "+c.Reason+" "+c.Message, condition) {
		b.t.Errorf("%s: condition %+v, want %q", what, c, condition)
	}
}

func TestPoolsAreEnlargedAndGivenBack(t *testing.T) {
	b := newBed(t, "pools")
	b.sync(0)
	b.want("nothing waits", "member", "1-2", "True NothingWaits")
	b.join("member", 1, "1")
	b.demands(item(4, "2", "member"))
	b.sync(time.Minute)
	b.want("four wait, two fit on a machine", "member", "3-3 recorded", "Growing")
	if status := b.growth().Status; status.Machines != 2 || status.CostPerHour.String() != "400m" ||
		status.Decisions[0].Machines != 2 {
		t.Errorf("status %+v", status)
	}
	b.sync(time.Minute)
	b.want("they are on their way", "member", "3-3 recorded", "machines for 4 replicas")
	b.join("member", 3, "0")
	b.demands()
	b.sync(time.Minute)
	b.want("placed", "member", "3-3 recorded", "NothingWaits")
	b.sync(5 * time.Minute)
	b.want("the autoscaler may remove what is not used", "member", "1-3 recorded", "NothingWaits")
	b.sync(time.Hour)
	b.want("all are used", "member", "1-3 recorded", "NothingWaits")
	b.join("member", 2, "0")
	b.sync(time.Minute)
	b.want("as before", "member", "1-2", "NothingWaits")
	if status := b.growth().Status; status.Machines != 0 || len(status.Decisions) != 3 {
		t.Errorf("status %+v", status)
	}
}

func TestLimitsAndReasonsAreToldInStatus(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "0")
	b.demands(item(40, "2", "member"))
	b.sync(0)
	b.want("as many as may be", "member", "5-5 recorded",
		"Refused ns/web: no machines for 32 of 40 replicas: pool member/w may have 5 machines")
	if len(b.growth().Status.Refused) != 1 {
		t.Errorf("refused %v", b.growth().Status.Refused)
	}
}

func TestUsersChangeWins(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "0")
	b.demands(item(2, "2", "member"))
	b.sync(0)
	b.want("enlarged", "member", "2-2 recorded", "Growing")
	s := b.shoot("member")
	s.Spec.Provider.Workers[0].Maximum = 7
	if err := b.garden.Update(ctx, s); err != nil {
		t.Fatal(err)
	}
	b.demands()
	b.sync(time.Hour)
	b.want("somebody sets a maximum", "member", "2-7", "NothingWaits")
	if d := b.growth().Status.Decisions[0]; d.Action != "LeavePool" {
		t.Errorf("decision %+v", d)
	}
}

func TestNothingWithoutLeave(t *testing.T) {
	b := newBed(t, "")
	b.join("member", 1, "0")
	b.demands(item(2, "2", "member"))
	b.sync(0)
	b.want("not allowed", "member", "1-2", "Unknown NotAllowed")
	if c := meta.FindStatusCondition(b.growth().Status.Conditions, fleetv1alpha1.GrowthAllowed); c == nil ||
		c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "federation.trellis.garden/growth=pools") {
		t.Errorf("condition %+v", c)
	}
	b = newBed(t, "pools", template)
	b.demands(item(2, "2"))
	b.sync(0)
	if b.shoot("extra-1") != nil {
		t.Error("a shoot is created although only pools may be enlarged")
	}
}

func TestNothingByOldDemand(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "0")
	b.demands(item(2, "2", "member"))
	b.now = b.now.Add(demandTimeout + time.Second)
	b.look()
	b.want("the fleet's controllers are away", "member", "1-2", "DemandUnknown")
}

func TestFailuresAreToldAndTriedAgain(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "0")
	b.demands(item(2, "2", "member"))
	b.broken = errors.New("the garden says no")
	b.sync(0)
	b.sync(time.Minute)
	if d := b.growth().Status.Decisions; len(d) != 1 || !strings.Contains(d[0].Error, "the garden says no") {
		t.Errorf("decisions %+v", d)
	}
	b.broken = nil
	s := b.shoot("member")
	s.Spec.Provider.Workers[0].Minimum, s.Spec.Provider.Workers[0].Maximum = 1, 2
	s.Annotations = nil
	if err := b.garden.Update(ctx, s); err != nil {
		t.Fatal(err)
	}
	b.sync(time.Minute)
	b.want("tried again", "member", "2-2 recorded", "Growing")
}

func TestShootsAreCreatedAndGivenBack(t *testing.T) {
	b := newBed(t, "pools,shoots", template)
	b.demands(item(2, "2"))
	b.sync(0)
	s := b.shoot("extra-1")
	if s == nil || s.Labels["tier"] != "burst" || s.Labels[fleetv1alpha1.GrownByLabel] != "fleet" ||
		s.Spec.Region != "r" {
		t.Fatalf("shoot %+v; %+v", s, b.growth().Status)
	}
	s.CreationTimestamp = metav1.NewTime(b.now)
	if err := b.garden.Update(ctx, s); err != nil {
		t.Fatal(err)
	}
	b.sync(time.Minute)
	b.satisfied("on its way", "Growing")
	if b.shoot("extra-2") != nil || b.growth().Status.Shoots != 1 {
		t.Error("a second shoot is created while the first one comes")
	}
	b.join("extra-1", 1, "4")
	b.demands()
	used := func(names ...string) {
		g := b.growth()
		g.Status.Demand.Used = names
		if err := b.fleet.Status().Update(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	used("extra-1")
	b.sync(time.Hour)
	if len(b.growth().Status.Unused) != 0 {
		t.Error("a shoot that is used counts as unused")
	}
	used()
	b.sync(time.Minute)
	b.sync(5 * time.Minute)
	if !leaving(b, "extra-1") {
		t.Error("the unused shoot is not closed")
	}
	used("extra-1")
	b.sync(time.Second)
	if leaving(b, "extra-1") {
		t.Error("the shoot is used again and still closed")
	}
	used()
	b.sync(time.Second)
	b.sync(6 * time.Minute)
	b.sync(30 * time.Second)
	if b.shoot("extra-1") == nil {
		t.Error("the shoot is deleted before it was closed for a minute")
	}
	b.sync(time.Minute)
	if b.shoot("extra-1") != nil {
		t.Errorf("the shoot is still there: %+v", b.growth().Status)
	}
}

func leaving(b *bed, name string) bool {
	b.t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := b.fleet.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
		b.t.Fatal(err)
	}
	return !leavingSince(c).IsZero()
}

func TestDeletedGrowthGivesEverythingBack(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "0")
	b.demands(item(2, "2", "member"))
	b.sync(0)
	if err := b.fleet.Delete(ctx, b.growth()); err != nil {
		t.Fatal(err)
	}
	b.sync(time.Second)
	if got := b.limits("member"); got != "1-2" {
		t.Errorf("the pool has %s", got)
	}
	err := b.fleet.Get(ctx, client.ObjectKey{Name: b.name}, &fleetv1alpha1.FleetGrowth{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the FleetGrowth is still there: %v", err)
	}
}

func TestObservedCapacity(t *testing.T) {
	b := newBed(t, "pools")
	b.join("member", 1, "3500m")
	b.demands(item(1, "4", "member"))
	b.sync(0)
	b.want("an empty node has less than it should", "member", "1-2", "cannot run it on an empty node")
	if o := b.growth().Status.Observed; len(o) != 1 || o[0].Capacity.Cpu().String() != "3500m" {
		t.Errorf("observed %+v", o)
	}
	b.join("member", 1, "4")
	b.sync(time.Second)
	if o := b.growth().Status.Observed; len(o) != 0 {
		t.Errorf("a node has all of it, and observed is %+v", o)
	}
}

func TestInvalidTemplate(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "provider.workers", `[]`: "cannot unmarshal",
		`{"seedName":"s","provider":{"workers":[{"name":"w","maximum":1}]}}`:                        "seedName",
		`{"resources":[{"name":"x"}],"provider":{"workers":[{"name":"w","maximum":1}]}}`:            "resources",
		`{"provider":{"workers":[{"name":"w","minimum":2,"maximum":1}]}}`:                           "maximum",
		`{"provider":{"workers":[{"name":"w","minimum":1,"maximum":1,"machine":{"type":"huge"}}]}}`: `machine type "huge"`,
	} {
		b := newBed(t, "pools,shoots", template,
			func(g *fleetv1alpha1.FleetGrowth) { g.Spec.Shoots.Template.Spec.Raw = []byte(text) })
		b.demands(item(1, "1"))
		b.sync(0)
		b.satisfied(text, want)
	}
}
