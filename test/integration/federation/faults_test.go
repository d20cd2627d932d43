package federation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// seedVariable repeats a run of the generated faults.
const seedVariable = "TRELLIS_TEST_SEED"

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this run", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// fuse ends a process at one of its writes to the fleet: before it is sent, or before its answer is heard. From then on
// nothing of the process reaches the fleet or hears from it, as if it had been killed with kill -9.
type fuse struct {
	after      int64
	beforeSent bool
	writes     atomic.Int64
	blown      chan struct{}
	once       sync.Once
}

func newFuse(after int64, beforeSent bool) *fuse {
	return &fuse{after: after, beforeSent: beforeSent, blown: make(chan struct{})}
}

var errKilled = errors.New("the process was killed")

func (f *fuse) isBlown() bool {
	select {
	case <-f.blown:
		return true
	default:
		return false
	}
}

func (f *fuse) blow() { f.once.Do(func() { close(f.blown) }) }

type fusedTransport struct {
	next http.RoundTripper
	fuse *fuse
}

func (t fusedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.fuse.isBlown() {
		return nil, errKilled
	}
	if request.Method == http.MethodGet {
		return t.next.RoundTrip(request)
	}
	last := t.fuse.writes.Add(1) == t.fuse.after
	if last && t.fuse.beforeSent {
		t.fuse.blow()
		return nil, errKilled
	}
	response, err := t.next.RoundTrip(request)
	if last {
		t.fuse.blow()
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errKilled
	}
	return response, err
}

// startFused runs the controllers until the fuse blows, and after that other ones until the test ends.
func (w *world) startFused(t *testing.T, f *fuse) (restarted <-chan struct{}) {
	t.Helper()
	kill := w.startFederationWith(t, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fusedTransport{next, f} })
	})
	done := make(chan struct{})
	var stopped sync.WaitGroup
	stopped.Go(func() {
		<-f.blown
		kill()
		close(done)
	})
	t.Cleanup(func() {
		f.blow()
		stopped.Wait()
	})
	return done
}

// faultPolicy divides by static weights, so that the model of what comes out is a few lines. A weight of 0 leaves the
// member out.
func faultPolicy(t *testing.T, weight1, weight2 int64) *unstructured.Unstructured {
	t.Helper()
	var weights []string
	for i, weight := range []int64{weight1, weight2} {
		if weight > 0 {
			weights = append(weights, fmt.Sprintf("{targetCluster: {clusterNames: [%s]}, weight: %d}", memberNames[i],
				weight))
		}
	}
	return parse(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: faults}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList: [%s]
`, strings.Join(weights, ", ")))[0]
}

// modelOfShares is what two clusters get of replicas by weights that divide them evenly; -1 for none.
func modelOfShares(replicas, weight1, weight2 int64) (int64, int64) {
	share := func(weight int64) int64 {
		if of := replicas * weight / (weight1 + weight2); of > 0 {
			return of
		}
		return -1
	}
	return share(weight1), share(weight2)
}

func scaled(t *testing.T, replicas int64) *unstructured.Unstructured {
	t.Helper()
	object := nginx(t)
	if err := unstructured.SetNestedField(object.Object, replicas, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	return object
}

// settledAs waits until the fleet says, and is, what the model says; then until nothing is left after the object's
// removal.
func (w *world) settledAs(t *testing.T, namespace string, share1, share2 int64) {
	t.Helper()
	w.replicasIn(t, namespace, share1, share2)
	targets := map[string]int64{}
	for i, share := range []int64{share1, share2} {
		if share > 0 {
			targets[memberNames[i]] = share
		}
	}
	eventually(t, "the binding says it", func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		got := map[string]int64{}
		for _, c := range b.Spec.Clusters {
			got[c.Name] = int64(c.Replicas)
		}
		if fmt.Sprint(got) != fmt.Sprint(targets) || len(b.Status.AggregatedStatus) != len(targets) ||
			b.Status.SchedulerObservedGeneration != b.Generation {
			return fmt.Errorf("spec.clusters %v, %d statuses, want %v", got, len(b.Status.AggregatedStatus), targets)
		}
		return nil
	})
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, "True", "")
	eventually(t, "one Work in each", func() error {
		var works workv1alpha1.WorkList
		if err := w.fleet.List(ctx, &works); err != nil {
			return err
		}
		count := 0
		for _, work := range works.Items {
			if work.Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
				count++
			}
		}
		if count != len(targets) {
			return fmt.Errorf("%d Works, want %d", count, len(targets))
		}
		return nil
	})
}

// TestKilledAtAnyWrite kills the controllers at writes that are drawn by chance, while an object is created, scaled,
// divided otherwise and removed; others take over, and all comes out as the model says.
func TestKilledAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	random := seeded(t)
	type step struct {
		name             string
		replicas         int64
		weight1, weight2 int64
	}
	steps := []step{
		{"create", 6, 1, 2}, {"scale up", 12, 1, 2}, {"divide otherwise", 12, 1, 0},
		{"divide again and scale down", 4, 1, 1},
	}
	for range 6 {
		// Writes to the fleet in a step: binding, Works, and their statuses.
		at, beforeSent := 1+random.Int64N(9), random.IntN(2) == 0
		first := random.IntN(len(steps))
		t.Run(fmt.Sprintf("%s, write %d, before sent %t", steps[first].name, at, beforeSent), func(t *testing.T) {
			namespace := w.newNamespace(t)
			if first > 0 {
				// What was before is undisturbed.
				before := steps[first-1]
				kill := w.startFederation(t)
				apply(t, w.fleet, namespace, faultPolicy(t, before.weight1, before.weight2), scaled(t, before.replicas))
				share1, share2 := modelOfShares(before.replicas, before.weight1, before.weight2)
				w.settledAs(t, namespace, share1, share2)
				kill()
			}
			f := newFuse(at, beforeSent)
			killed := w.startFused(t, f)
			s := steps[first]
			apply(t, w.fleet, namespace, faultPolicy(t, s.weight1, s.weight2), scaled(t, s.replicas))
			select {
			case <-killed:
			case <-time.After(5 * time.Second):
				// The step had fewer writes: it was killed when all was done.
				f.blow()
				<-killed
			}
			w.startFederation(t)
			share1, share2 := modelOfShares(s.replicas, s.weight1, s.weight2)
			w.settledAs(t, namespace, share1, share2)
			remove(t, w.fleet, in(namespace, nginx(t)))
			w.nothingLeft(t, namespace)
		})
	}
}

// TestFlappingMember cuts a member off and on again, faster and slower than its thresholds: no object is moved, removed
// or made anew.
func TestFlappingMember(t *testing.T) {
	w := newWorld(t)
	random := seeded(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, faultPolicy(t, 1, 2), scaled(t, 6))
	w.settledAs(t, namespace, 2, 4)
	uids := func() (result [2]string) {
		for i, name := range memberNames {
			object, err := deployment(w.member[name], namespace)
			if err != nil {
				t.Fatal(err)
			}
			result[i] = string(object.GetUID())
		}
		return result
	}
	before := uids()
	for range 6 {
		name := memberNames[random.IntN(2)]
		w.cutOff(t, name)
		// This is the fault itself: how long the line is cut.
		time.Sleep(time.Duration(random.IntN(900)) * time.Millisecond)
		w.reconnect(name)
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	w.membersAreReady(t)
	w.settledAs(t, namespace, 2, 4)
	if after := uids(); after != before {
		t.Errorf("objects were made anew: %v, then %v", before, after)
	}
	apply(t, w.fleet, namespace, scaled(t, 12))
	w.settledAs(t, namespace, 4, 8)
}

// contender is a policy in the model of who has an object.
type contender struct {
	name     string
	scope    int // 1 for namespaced ones
	priority int64
	preempts bool
	cluster  string
}

// modelOfClaim says who has the object after a change: who has it keeps it, unless it is gone or another one preempts;
// else the order of the documents counts: scope, priority, name.
func modelOfClaim(all []contender, holder string) string {
	better := func(a, b contender) bool {
		if a.scope != b.scope {
			return a.scope > b.scope
		}
		if a.priority != b.priority {
			return a.priority > b.priority
		}
		return a.name < b.name
	}
	var current, best *contender
	for i := range all {
		if all[i].name == holder {
			current = &all[i]
		}
	}
	for i := range all {
		c := &all[i]
		if current != nil && (c == current || !c.preempts || c.scope < current.scope ||
			c.scope == current.scope && c.priority <= current.priority) {
			continue
		}
		if best == nil || better(*c, *best) {
			best = c
		}
	}
	switch {
	case best != nil:
		return best.name
	case current != nil:
		return current.name
	}
	return ""
}

func (c contender) policy(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	kind, preemption := "PropagationPolicy", "Never"
	if c.scope == 0 {
		kind = "ClusterPropagationPolicy"
	}
	if c.preempts {
		preemption = "Always"
	}
	return parse(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: %s}
spec:
  priority: %d
  preemption: %s
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx, namespace: %s}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
`, kind, c.name, c.priority, preemption, namespace, c.cluster))[0]
}

// object to remove.
func (c contender) object(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	if c.scope == 0 {
		return c.policy(t, namespace)
	}
	return in(namespace, c.policy(t, namespace))
}

func in(namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetNamespace(namespace)
	return object
}

// TestPoliciesFightForOneObject adds, changes and removes policies for one object, drawn by chance. After each change
// it is where the model says, whose only policy it is.
func TestPoliciesFightForOneObject(t *testing.T) {
	w := newWorld(t)
	random := seeded(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, nginx(t))
	var all []contender
	holder := ""
	t.Cleanup(func() {
		for _, c := range all {
			if c.scope == 0 {
				remove(t, w.fleet, c.object(t, namespace))
			}
		}
	})
	for range 14 {
		number := random.IntN(4)
		name := fmt.Sprintf("%s-fight-%d", namespace, number)
		known := -1
		for i := range all {
			if all[i].name == name {
				known = i
			}
		}
		c := contender{
			name: name, scope: number % 2, priority: random.Int64N(3), preempts: random.IntN(2) == 0,
			cluster: memberNames[number/2],
		}
		switch {
		case known >= 0 && random.IntN(2) == 0:
			remove(t, w.fleet, c.object(t, namespace))
			all = append(all[:known], all[known+1:]...)
			t.Logf("removed %s", name)
		case known >= 0:
			all[known] = c
			apply(t, w.fleet, namespace, c.policy(t, namespace))
			t.Logf("changed %+v", c)
		default:
			all = append(all, c)
			apply(t, w.fleet, namespace, c.policy(t, namespace))
			t.Logf("added %+v", c)
		}
		holder = modelOfClaim(all, holder)
		w.hasPolicy(t, namespace, holder, all)
	}
}

// hasPolicy waits until the object has this policy, and is in its cluster alone.
func (w *world) hasPolicy(t *testing.T, namespace, holder string, all []contender) {
	t.Helper()
	if holder == "" {
		w.nothingLeft(t, namespace)
		return
	}
	eventually(t, "the object's policy is "+holder, func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		a := b.Annotations
		got := a["propagationpolicy.karmada.io/name"] + a["clusterpropagationpolicy.karmada.io/name"]
		if got != holder || b.DeletionTimestamp != nil {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	want := []int64{-1, -1}
	for _, c := range all {
		for i, name := range memberNames {
			if c.name == holder && c.cluster == name {
				want[i] = 2
			}
		}
	}
	w.replicasIn(t, namespace, want...)
}
