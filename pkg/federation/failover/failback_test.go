package failover_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

func TestReturnable(t *testing.T) {
	away := func(reason string, at int) *workv1alpha2.ResourceBindingSpec {
		return &workv1alpha2.ResourceBindingSpec{BeforeFailover: &workv1alpha2.BeforeFailover{
			Failed: []workv1alpha2.FailedCluster{{Name: "m1", Reason: reason, Time: *stamp(at)}},
		}}
	}
	again := away(workv1alpha2.EvictionReasonApplicationFailure, 0)
	again.LastFailBack = &workv1alpha2.FailBack{Time: *stamp(900)}
	returned := away("R", 0)
	returned.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m2", Producer: workv1alpha2.EvictionProducerFailBack},
	}
	for _, test := range []struct {
		name   string
		spec   *workv1alpha2.ResourceBindingSpec
		steady map[string]time.Time
		want   []string
		next   time.Duration
	}{
		{"nothing left", &workv1alpha2.ResourceBindingSpec{}, map[string]time.Time{"m1": second(0)}, nil, 0},
		{"not welcome", away("R", 0), nil, nil, 0},
		{"the window is over", away("R", 0), map[string]time.Time{"m1": second(700)}, []string{"m1"}, 0},
		{"the window is not over", away("R", 0), map[string]time.Time{"m1": second(701)}, nil, time.Second},
		{"left a moment ago", away("R", 990), map[string]time.Time{"m1": second(0)}, nil, 290 * time.Second},
		{
			"an application that failed once", away(workv1alpha2.EvictionReasonApplicationFailure, 0),
			map[string]time.Time{"m1": second(0)}, []string{"m1"}, 0,
		},
		{"copies wait for others", returned, map[string]time.Time{"m1": second(0)}, nil, 0},
		{"an application that failed again", again, map[string]time.Time{"m1": second(0)}, nil, 3500 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, next := failover.Returnable(test.spec, test.steady, 300*time.Second, second(1000))
			if !slices.Equal(got, test.want) || next != test.next {
				t.Errorf("got %v and %s", got, next)
			}
		})
	}
}

// snapshot of clusters with room for ten pods each.
func snapshot(names ...string) core.Snapshot {
	var clusters []core.Cluster
	for _, name := range names {
		clusters = append(clusters, core.Cluster{
			Name: name, APIs: core.NewAPIs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}),
			Room: &core.Room{Free: core.Resources{Pods: 10}},
		})
	}
	return core.NewSnapshot(clusters)
}

func shares(pairs ...any) []workv1alpha2.TargetCluster {
	var result []workv1alpha2.TargetCluster
	for i := 0; i < len(pairs); i += 2 {
		result = append(result, workv1alpha2.TargetCluster{Name: pairs[i].(string), Replicas: int32(pairs[i+1].(int))})
	}
	return result
}

func TestReturn(t *testing.T) {
	dynamic := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		},
	}}
	for _, test := range []struct {
		name             string
		before, now      []workv1alpha2.TargetCluster
		replicas         int32
		released, failed []string
		want             []workv1alpha2.TargetCluster
		left             []string // clusters whose copy waits for the returned one
	}{
		{
			"as it was", shares("m1", 2, "m2", 2), shares("m2", 4), 4, []string{"m1"}, nil, shares("m1", 2, "m2", 2),
			[]string{"m2"},
		},
		{
			"a cluster that filled in is left", shares("m1", 2, "m2", 2), shares("m2", 2, "m3", 2), 4, []string{"m1"},
			nil, shares("m1", 2, "m2", 2), []string{"m3"},
		},
		{
			"one of two is still away", shares("m1", 2, "m2", 2), shares("m3", 4), 4, []string{"m1"}, []string{"m2"},
			shares("m1", 2, "m3", 2), []string{"m3"},
		},
		{
			"scaled up meanwhile", shares("m1", 2, "m2", 2), shares("m2", 8), 8, []string{"m1"}, nil,
			shares("m1", 4, "m2", 4), []string{"m2"},
		},
		{"no room at the moment", shares("m1", 20), shares("m2", 10, "m3", 10), 20, []string{"m1"}, nil, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Placement: dynamic,
				Clusters: test.now, Replicas: test.replicas,
				BeforeFailover: &workv1alpha2.BeforeFailover{
					Clusters: test.before, PlacementHash: karmada.PlacementHash(dynamic),
				},
			}
			for _, name := range append(test.released, test.failed...) {
				spec.BeforeFailover.Failed = append(spec.BeforeFailover.Failed, workv1alpha2.FailedCluster{Name: name})
			}
			plan, err := failover.Return(snapshot("m1", "m2", "m3"), spec, &workv1alpha2.ResourceBindingStatus{},
				test.released, second(0))
			if err != nil || (plan == nil) != (test.want == nil) {
				t.Fatalf("plan %+v, %v", plan, err)
			}
			if plan == nil {
				return
			}
			var left []string
			for _, task := range plan.Spec.GracefulEvictionTasks {
				left = append(left, task.FromCluster)
			}
			if !reflect.DeepEqual(plan.Spec.Clusters, test.want) || !slices.Equal(left, test.left) ||
				!slices.Equal(plan.Arrivals, test.released) {
				t.Errorf("clusters %v, left %v, arrivals %v", plan.Spec.Clusters, left, plan.Arrivals)
			}
			if (plan.Spec.BeforeFailover == nil) != (len(test.failed) == 0) {
				t.Errorf("remembers %+v", plan.Spec.BeforeFailover)
			}
		})
	}
}

// What comes back in a fleet of 400 replicas, of which 190 were in the member that failed, never makes more than 500 of
// them.
func TestReturnsInSteps(t *testing.T) {
	dynamic := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
	apis := core.NewAPIs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	room := &core.Room{Free: core.Resources{Pods: 1000}}
	clusters := core.NewSnapshot([]core.Cluster{
		{Name: "m1", APIs: apis, Room: room}, {Name: "m2", APIs: apis, Room: room},
		{Name: "m3", APIs: apis, Room: room},
	})
	for name, test := range map[string]struct {
		before, now []workv1alpha2.TargetCluster
		steps       [][]workv1alpha2.TargetCluster
	}{
		"one grew": {
			shares("m1", 190, "m2", 210), shares("m2", 400),
			[][]workv1alpha2.TargetCluster{shares("m1", 100, "m2", 300), shares("m1", 190, "m2", 210)},
		},
		"all of it was elsewhere": {
			shares("m1", 400), shares("m2", 300, "m3", 100),
			[][]workv1alpha2.TargetCluster{
				shares("m1", 100, "m2", 225, "m3", 75), shares("m1", 200, "m2", 150, "m3", 50),
				shares("m1", 300, "m2", 75, "m3", 25), shares("m1", 400),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Placement: dynamic,
				Clusters: test.now, Replicas: 400,
				BeforeFailover: &workv1alpha2.BeforeFailover{
					Clusters: test.before, PlacementHash: karmada.PlacementHash(dynamic),
					Failed: []workv1alpha2.FailedCluster{{Name: "m1", Time: *stamp(0)}},
				},
			}
			steady := map[string]time.Time{"m1": second(0)}
			for i, want := range test.steps {
				released, _ := failover.Returnable(spec, steady, time.Second, second(10))
				if len(released) != 1 {
					t.Fatalf("step %d: nothing returns", i)
				}
				plan, err := failover.Return(clusters, spec, &workv1alpha2.ResourceBindingStatus{}, released,
					second(10))
				if err != nil || plan == nil {
					t.Fatalf("step %d: %+v, %v", i, plan, err)
				}
				if !reflect.DeepEqual(plan.Spec.Clusters, want) || plan.Surplus > 100 ||
					plan.Partial != (i < len(test.steps)-1) || plan.Continues != (i > 0) {
					t.Errorf("step %d: %+v, clusters %v, want %v", i, plan, plan.Spec.Clusters, want)
				}
				if again, _ := failover.Returnable(plan.Spec, steady, time.Second, second(10)); len(again) > 0 {
					t.Errorf("step %d: the next one doesn't wait", i)
				}
				spec = plan.Spec
				spec.GracefulEvictionTasks = nil // The copies are healthy.
			}
			if spec.BeforeFailover != nil {
				t.Errorf("left: %+v", spec.BeforeFailover)
			}
		})
	}
}

// byWeight divides replicas by static weights.
func byWeight(weights map[string]int64) *policyv1alpha1.Placement {
	preference := &policyv1alpha1.ClusterPreferences{}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		preference.StaticWeightList = append(preference.StaticWeightList, policyv1alpha1.StaticClusterWeight{
			TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: weights[name],
		})
	}
	return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted, WeightPreference: preference,
	}}
}

// weighted is an object whose replicas are divided over clusters, by static weights mostly, some of which fail.
type weighted struct {
	clusters core.Snapshot
	spec     *workv1alpha2.ResourceBindingSpec
	steady   map[string]time.Time
}

// failing has so many of the clusters fail, and the others fill in.
func failing(t *testing.T, replicas int32, weights map[string]int64, fail int) (w *weighted,
	home []workv1alpha2.TargetCluster) {
	t.Helper()
	names := slices.Sorted(maps.Keys(weights))
	w = &weighted{clusters: snapshot(names...), steady: map[string]time.Time{}}
	w.spec = &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: replicas,
		Placement: byWeight(weights),
	}
	w.spec.Clusters = w.decide(t)
	home = w.spec.Clusters
	for _, name := range names[:fail] {
		failover.Evict(w.spec, failover.Eviction{Cluster: name, Remember: true}, second(0))
		w.steady[name] = second(0)
	}
	w.spec.Clusters = w.decide(t)
	w.spec.GracefulEvictionTasks = nil // Everything is replaced.
	return w, home
}

// decide as the scheduler does when it divides anew.
func (w *weighted) decide(t *testing.T) []workv1alpha2.TargetCluster {
	t.Helper()
	binding, err := karmada.Binding(w.spec, &workv1alpha2.ResourceBindingStatus{})
	if err != nil {
		t.Fatal(err)
	}
	decision := core.Decide(w.clusters, binding)
	if decision.Failure != nil {
		t.Fatal(decision.Failure)
	}
	return karmada.Targets(w.spec, decision.Targets)
}

// isDecidedAnew tells whether the scheduler, which has seen the spec, would divide the replicas anew.
func (w *weighted) isDecidedAnew(t *testing.T) bool {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{Spec: *w.spec}
	placement, err := json.Marshal(w.spec.Placement)
	if err != nil {
		t.Fatal(err)
	}
	bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, string(placement))
	karmada.SetDecided(b, karmada.Decided{Time: *stamp(1), Reason: workv1alpha2.ReasonSuccess})
	return karmada.NeedsDecision(b, w.clusters)
}

// step of the return, after which all copies are healthy. It gives how many replicas run meanwhile, and whether
// others follow.
func (w *weighted) step(t *testing.T) (runs int32, partial bool) {
	t.Helper()
	return w.take(t, func() (*failover.Plan, error) {
		released, _ := failover.Returnable(w.spec, w.steady, time.Second, second(10))
		return failover.Return(w.clusters, w.spec, &workv1alpha2.ResourceBindingStatus{}, released, second(10))
	})
}

func (w *weighted) take(t *testing.T, next func() (*failover.Plan, error)) (runs int32, partial bool) {
	t.Helper()
	plan, err := next()
	if err != nil || plan == nil {
		t.Fatalf("no return: %+v, %v", plan, err)
	}
	most := map[string]int32{}
	for _, c := range slices.Concat(w.spec.Clusters, plan.Spec.Clusters) {
		most[c.Name] = max(most[c.Name], c.Replicas)
	}
	for _, replicas := range most {
		runs += replicas
	}
	w.spec = plan.Spec
	w.spec.GracefulEvictionTasks = nil
	return runs, plan.Partial
}

// With static weights the return of 200 of 400 replicas goes in two steps as well, and the scheduler lets it.
func TestStaticWeightsReturnInSteps(t *testing.T) {
	w, home := failing(t, 400, map[string]int64{"m1": 2, "m2": 1, "m3": 1}, 1)
	for i, want := range [][]workv1alpha2.TargetCluster{shares("m1", 100, "m2", 150, "m3", 150), home} {
		runs, partial := w.step(t)
		if runs != 500 || partial != (i == 0) || !reflect.DeepEqual(w.spec.Clusters, want) {
			t.Errorf("step %d: %d run, others follow: %v, clusters %v", i, runs, partial, w.spec.Clusters)
		}
		if anew := w.isDecidedAnew(t); anew == partial {
			t.Errorf("step %d: decided anew: %v", i, anew)
		}
	}
	w, _ = failing(t, 400, map[string]int64{"m1": 2, "m2": 1, "m3": 1}, 1)
	w.step(t)
	if w.spec.Replicas = 500; !w.isDecidedAnew(t) {
		t.Error("more replicas are wanted, but they are not divided")
	}
}

// However replicas are weighted: a return never has more of them run than it may, and ends where the weights say.
func TestStaticWeightsReturnWithinTheBound(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		weights := map[string]int64{}
		for i := range 2 + r.IntN(6) {
			weights[fmt.Sprintf("m%d", i)] = 1 + r.Int64N(9)
		}
		replicas := 1 + r.Int32N(2000)
		w, home := failing(t, replicas, weights, 1+r.IntN(len(weights)-1))
		steps := 0
		for ; w.spec.BeforeFailover != nil && steps < 10; steps++ {
			runs, partial := w.step(t)
			if surplus := runs - replicas; surplus > max(10, (replicas+3)/4) {
				t.Fatalf("seed %d: %d more than %d replicas run", seed, surplus, replicas)
			}
			if partial && w.isDecidedAnew(t) {
				t.Fatalf("seed %d: the scheduler takes back the step to %v", seed, w.spec.Clusters)
			}
		}
		if steps > 5 || !reflect.DeepEqual(w.spec.Clusters, home) || !reflect.DeepEqual(w.decide(t), home) {
			t.Fatalf("seed %d: %v after %d steps, want %v", seed, w.spec.Clusters, steps, home)
		}
	}
}

// inTerms has the clusters of each term, in the order of their names, each with room for 10,000 replicas.
func inTerms(t *testing.T, placement *policyv1alpha1.Placement, replicas int32,
	terms map[string][]string) *weighted {
	t.Helper()
	w := &weighted{steady: map[string]time.Time{}}
	var clusters []core.Cluster
	placement.ClusterAffinities = nil
	for _, term := range slices.Sorted(maps.Keys(terms)) {
		placement.ClusterAffinities = append(placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{
			AffinityName: term, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: terms[term]},
		})
		for _, name := range terms[term] {
			clusters = append(clusters, core.Cluster{
				Name: name, Room: &core.Room{Free: core.Resources{Pods: 10_000}},
				APIs: core.NewAPIs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}),
			})
			w.steady[name] = second(0)
		}
	}
	w.clusters = core.NewSnapshot(clusters)
	w.spec = &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: replicas,
		Placement: placement,
	}
	return w
}

// divided by free room, over few clusters.
func divided() *policyv1alpha1.Placement {
	return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
}

// toEarlierTerm is the first step to a term before the given one.
func (w *weighted) toEarlierTerm(t *testing.T, term string) (runs int32, partial bool) {
	t.Helper()
	return w.take(t, func() (*failover.Plan, error) {
		return failover.ReturnToEarlierTerm(w.clusters, w.spec,
			&workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: term, LastScheduledTime: stamp(1)},
			second(10))
	})
}

// What was in the second of two terms goes back to the first in steps as well, be it there because that lacked room or
// because it failed, and the scheduler lets it.
func TestReturnsToAnEarlierTermInSteps(t *testing.T) {
	terms := map[string][]string{"1-near": {"n0"}, "2-far": {"f0", "f1"}}
	steps := [][]workv1alpha2.TargetCluster{
		shares("f0", 150, "f1", 150, "n0", 100), shares("f0", 100, "f1", 100, "n0", 200),
		shares("f0", 50, "f1", 50, "n0", 300), shares("n0", 400),
	}
	for name, placement := range map[string]func() *policyv1alpha1.Placement{
		"by room": divided, "by weight": func() *policyv1alpha1.Placement { return byWeight(map[string]int64{"n0": 1}) },
	} {
		for _, failed := range []bool{false, true} {
			w := inTerms(t, placement(), 400, terms)
			w.spec.Clusters = shares("f0", 200, "f1", 200)
			if failed {
				w.spec.BeforeFailover = &workv1alpha2.BeforeFailover{
					Clusters: shares("n0", 400), AffinityName: "1-near",
					PlacementHash: karmada.PlacementHash(w.spec.Placement),
					Failed:        []workv1alpha2.FailedCluster{{Name: "n0", Time: *stamp(0)}},
				}
			}
			for i, want := range steps {
				var runs int32
				var partial bool
				if i == 0 && !failed {
					runs, partial = w.toEarlierTerm(t, "2-far")
				} else {
					runs, partial = w.step(t)
				}
				last := i == len(steps)-1
				if runs != 500 || partial == last || !reflect.DeepEqual(w.spec.Clusters, want) {
					t.Fatalf("%s, failed %t, step %d: %d run, others follow: %t, clusters %v", name, failed, i, runs,
						partial, w.spec.Clusters)
				}
				if !last && w.isDecidedAnew(t) {
					t.Errorf("%s, failed %t, step %d: decided anew", name, failed, i)
				}
				if back := w.spec.LastFailBack; back.AffinityName != "1-near" {
					t.Errorf("%s, failed %t, step %d: the term is %q", name, failed, i, back.AffinityName)
				}
			}
			if w.spec.BeforeFailover != nil {
				t.Errorf("%s, failed %t: left %+v", name, failed, w.spec.BeforeFailover)
			}
		}
	}
}

// When more replicas are wanted between two steps, what is divided by room stays where it is, and the return goes on.
func TestAReturnToAnEarlierTermGoesOnWithMoreReplicas(t *testing.T) {
	w := inTerms(t, divided(), 400, map[string][]string{"1-near": {"n0"}, "2-far": {"f0", "f1"}})
	w.spec.Clusters = shares("f0", 200, "f1", 200)
	w.toEarlierTerm(t, "2-far")
	w.spec.Replicas = 440
	if !w.isDecidedAnew(t) {
		t.Error("more replicas are wanted, but they are not divided")
	}
	w.spec.Clusters = w.decide(t)
	if want := shares("f0", 150, "f1", 150, "n0", 140); !reflect.DeepEqual(w.spec.Clusters, want) {
		t.Errorf("clusters %v, want %v", w.spec.Clusters, want)
	}
	if runs, partial := w.step(t); runs != 550 || !partial {
		t.Errorf("%d run, others follow: %t", runs, partial)
	}
}

// What the earlier term lacks room for as a whole does not begin to return.
func TestAReturnToAnEarlierTermNeedsRoomForAll(t *testing.T) {
	w := inTerms(t, divided(), 20_000, map[string][]string{"1-near": {"n0"}, "2-far": {"f0", "f1"}})
	w.spec.Clusters = shares("f0", 10_000, "f1", 10_000)
	plan, err := failover.ReturnToEarlierTerm(w.clusters, w.spec,
		&workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: "2-far"}, second(10))
	if plan != nil || err != nil {
		t.Errorf("got %+v, %v", plan, err)
	}
}

// However many terms and clusters there are, and however replicas are divided: a return to an earlier term never has
// more of them run than it may, never fewer than are wanted, and ends in that term.
func TestReturnsToEarlierTermsWithinTheBound(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		terms, weights := map[string][]string{}, map[string]int64{}
		for i := range 2 + r.IntN(2) {
			term := fmt.Sprintf("t%d", i)
			for j := range 1 + r.IntN(4) {
				name := fmt.Sprintf("%s-m%d", term, j)
				terms[term], weights[name] = append(terms[term], name), 1+r.Int64N(9)
			}
		}
		placement := divided()
		if r.IntN(2) == 0 {
			placement = byWeight(weights)
		}
		replicas := 1 + r.Int32N(2000)
		w := inTerms(t, placement, replicas, terms)
		last := fmt.Sprintf("t%d", len(terms)-1)
		w.spec.LastFailBack = &workv1alpha2.FailBack{AffinityName: last}
		w.spec.Clusters = w.decide(t)
		runs, partial := w.toEarlierTerm(t, last)
		for steps := 1; ; steps++ {
			if surplus := runs - replicas; surplus > max(10, (replicas+3)/4) || steps > 5 {
				t.Fatalf("seed %d, step %d: %d more than %d replicas run", seed, steps, surplus, replicas)
			}
			if !partial {
				break
			}
			if w.isDecidedAnew(t) {
				t.Fatalf("seed %d: the scheduler takes back the step to %v", seed, w.spec.Clusters)
			}
			runs, partial = w.step(t)
		}
		weighs := placement.ReplicaScheduling.WeightPreference != nil
		if w.spec.BeforeFailover != nil || w.isDecidedAnew(t) != weighs ||
			!reflect.DeepEqual(w.decide(t), w.spec.Clusters) {
			t.Fatalf("seed %d: %v, and %+v is left", seed, w.spec.Clusters, w.spec.BeforeFailover)
		}
		for _, c := range w.spec.Clusters {
			if !slices.Contains(terms["t0"], c.Name) {
				t.Fatalf("seed %d: %v, want clusters of %v only", seed, w.spec.Clusters, terms["t0"])
			}
		}
	}
}

func TestReturns(t *testing.T) {
	limits := failover.Limits{PerHour: 3, PerClusterPerHour: 2}
	var returns failover.Returns
	returns.Note([]string{"m1"}, second(0))
	returns.Note([]string{"m1"}, second(60))
	for _, test := range []struct {
		cluster string
		at      int
		want    time.Duration
	}{{"m1", 100, 3500 * time.Second}, {"m2", 100, 0}, {"m1", 3600, 0}} {
		if got := returns.Wait([]string{test.cluster}, limits, second(test.at)); got != test.want {
			t.Errorf("%s at %d waits %s, want %s", test.cluster, test.at, got, test.want)
		}
	}
	returns.Note([]string{"m2"}, second(120))
	returns.Note([]string{"m2"}, second(130))
	if got := returns.Wait([]string{"m3"}, limits, second(140)); got != 3520*time.Second {
		t.Errorf("the fleet's limit: %s", got)
	}
	if got := returns.Wait([]string{"m3"}, failover.Limits{}, second(140)); got != 0 {
		t.Errorf("no limit: %s", got)
	}
}

func TestSteady(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{}
	ready := func(status metav1.ConditionStatus, at int) {
		cluster.Status.Conditions = []metav1.Condition{
			{Type: clusterv1alpha1.ConditionReady, Status: status, LastTransitionTime: *stamp(at)},
		}
	}
	note := func(at int) {
		cluster.Annotations = map[string]string{
			clusterv1alpha1.SteadySinceAnnotation: failover.SteadyNote(cluster, second(at)),
		}
	}
	want := func(what string, at int) {
		t.Helper()
		if since, known := failover.SteadySince(cluster); known != (at >= 0) || known && !since.Equal(second(at)) {
			t.Errorf("%s: since %s, %v", what, since, known)
		}
	}
	want("never looked at", -1)
	ready(metav1.ConditionTrue, 0)
	note(10)
	note(20)
	want("nothing changed", 10)
	ready(metav1.ConditionFalse, 30)
	want("not ready", -1)
	ready(metav1.ConditionTrue, 40)
	want("a flap that nobody noted", 40)
	cluster.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
	want("a new taint", -1)
	note(50)
	want("noted", 50)
	cluster.Spec.Taints[0].TimeAdded = stamp(55)
	want("only its time changed", 50)
}

func TestAwayTaints(t *testing.T) {
	other := corev1.Taint{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}
	ours := corev1.Taint{
		Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: stamp(100),
	}
	away := &failover.Away{Taint: clusterv1alpha1.TaintUnreachable, Since: second(0)}
	for _, test := range []struct {
		name   string
		taints []corev1.Taint
		away   *failover.Away
		limit  time.Duration
		spare  bool
		want   []corev1.Taint
		next   time.Duration
	}{
		{"ready", []corev1.Taint{other, ours}, nil, time.Minute, false, []corev1.Taint{other}, 0},
		{
			"away for a while", []corev1.Taint{other}, away, 2 * time.Minute, false, []corev1.Taint{other},
			20 * time.Second,
		},
		{"away for long", []corev1.Taint{other}, away, time.Minute, false, []corev1.Taint{other, ours}, 0},
		{"turned off", []corev1.Taint{other}, away, 0, false, []corev1.Taint{other}, 0},
		{"most are away", []corev1.Taint{other}, away, time.Minute, true, []corev1.Taint{other}, 0},
		{
			"tainted already", []corev1.Taint{ours},
			&failover.Away{Taint: clusterv1alpha1.TaintNotReady, Since: second(0)}, time.Minute, false,
			[]corev1.Taint{ours}, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, next := failover.AwayTaints(test.taints, test.away, test.limit, test.spare, second(100))
			if !reflect.DeepEqual(got, test.want) || next != test.next {
				t.Errorf("got %v and %s", got, next)
			}
		})
	}
}

func TestPolicyTaints(t *testing.T) {
	is := func(kind string, operator policyv1alpha1.MatchConditionOperator,
		values ...metav1.ConditionStatus) policyv1alpha1.MatchCondition {
		return policyv1alpha1.MatchCondition{ConditionType: kind, Operator: operator, StatusValues: values}
	}
	conditions := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse}, {Type: "Net", Status: metav1.ConditionTrue},
	}
	wanted := policyv1alpha1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute, Value: "v"}
	theirs := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	ours := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute, Value: "v", TimeAdded: stamp(0)}
	for i, test := range []struct {
		add, remove  []policyv1alpha1.MatchCondition
		taints, want []corev1.Taint
	}{
		{nil, nil, []corev1.Taint{theirs}, []corev1.Taint{theirs}},
		{
			[]policyv1alpha1.MatchCondition{is("Ready", "In", "False", "Unknown")}, nil, []corev1.Taint{theirs},
			[]corev1.Taint{theirs, ours},
		},
		{[]policyv1alpha1.MatchCondition{is("Ready", "In", "False"), is("Net", "In", "False")}, nil, nil, nil},
		{[]policyv1alpha1.MatchCondition{is("Ready", "NotIn", "True")}, nil, nil, []corev1.Taint{ours}},
		{[]policyv1alpha1.MatchCondition{is("Other", "NotIn", "True")}, nil, nil, nil},
		{
			nil, []policyv1alpha1.MatchCondition{is("Net", "In", "True")}, []corev1.Taint{ours, theirs},
			[]corev1.Taint{theirs},
		},
		{nil, []policyv1alpha1.MatchCondition{is("Net", "In", "False")}, []corev1.Taint{ours}, []corev1.Taint{ours}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			spec := &policyv1alpha1.ClusterTaintPolicySpec{
				AddOnConditions: test.add, RemoveOnConditions: test.remove, Taints: []policyv1alpha1.Taint{wanted},
			}
			if got := failover.PolicyTaints(test.taints, spec, conditions, second(0)); len(got) != len(test.want) ||
				len(got) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestApplications(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters: targets("m1", "m2"),
		Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}},
	}
	status := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
		{
			ClusterName: "m1", Health: workv1alpha2.ResourceUnhealthy,
			Status: &runtime.RawExtension{Raw: []byte(`{"phase":"Failed","list":[{"id":7}]}`)},
		},
		{ClusterName: "m2", Health: workv1alpha2.ResourceHealthy},
		{ClusterName: "m3", Health: workv1alpha2.ResourceUnhealthy},
	}}
	status.UnhealthyCopies = failover.NoteUnhealthy(spec, status, second(0))
	if again := failover.NoteUnhealthy(spec, status, second(100)); len(again) != 1 || again[0].ClusterName != "m1" ||
		!again[0].Since.Equal(stamp(0)) {
		t.Errorf("noted %v", again)
	}
	if clusters, next := failover.Unbearable(spec, status.UnhealthyCopies, second(299)); len(clusters) != 0 ||
		next != time.Second {
		t.Errorf("at 299: %v %s", clusters, next)
	}
	if clusters, _ := failover.Unbearable(spec, status.UnhealthyCopies, second(300)); !slices.Equal(clusters,
		[]string{"m1"}) {
		t.Errorf("at 300: %v", clusters)
	}
	rules := &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{
		{AliasLabelName: "phase", JSONPath: "{.phase}"}, {AliasLabelName: "id", JSONPath: "{ .list[0].id }"},
		{AliasLabelName: "none", JSONPath: "{.missing}"},
	}}
	labels, err := failover.PreservedLabels(rules, status.AggregatedStatus, "m1")
	if err != nil || !reflect.DeepEqual(labels, map[string]string{"phase": "Failed", "id": "7"}) {
		t.Errorf("labels %v %v", labels, err)
	}
	rules.Rules[0].JSONPath = "{.a[}"
	if _, err := failover.PreservedLabels(rules, status.AggregatedStatus, "m1"); err == nil {
		t.Error("a broken path is accepted")
	}
	status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
	if left := failover.NoteUnhealthy(spec, status, second(100)); len(left) != 0 {
		t.Errorf("the clock of a healthy copy runs: %v", left)
	}
}
