package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// world is a fleet with one object: it does what the shell and the members do.
type world struct {
	t        *testing.T
	strategy policyv1alpha1.RolloutStrategy
	control  workv1alpha2.RolloutControl
	template string
	now      time.Time
	clusters []Cluster
	// sick revisions are healthy nowhere.
	sick   map[string]bool
	status *workv1alpha2.RolloutStatus
	after  time.Duration
	// planError stands for a policy that cannot be understood.
	planError error
}

func newWorld(t *testing.T, strategy policyv1alpha1.RolloutStrategy, clusters ...string) *world {
	w := &world{
		t: t, strategy: strategy, template: "r1", now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
		sick: map[string]bool{},
	}
	for _, name := range clusters {
		w.join(name)
	}
	w.decide()
	w.settle()
	return w
}

// join adds a cluster; what stands before a dash is its region.
func (w *world) join(name string) {
	c := Cluster{}
	c.Name = name
	c.Region, _, _ = strings.Cut(name, "-")
	w.clusters = append(w.clusters, c)
}

func (w *world) cluster(name string) *Cluster {
	i := slices.IndexFunc(w.clusters, func(c Cluster) bool { return c.Name == name })
	return &w.clusters[i]
}

// decide once, and give the clusters what follows. They have not applied it yet.
func (w *world) decide() {
	in := Input{
		Control: &w.control, Previous: w.status, Template: w.template, TemplateGeneration: 7,
		Clusters: slices.Clone(w.clusters), Now: w.now,
		PlanError: w.planError,
	}
	if w.planError == nil {
		var err error
		if in.Plan, err = NewPlan(&w.strategy); err != nil {
			w.t.Fatal(err)
		}
	}
	decision := Decide(in)
	w.status, w.after = decision.Status, decision.After
	for i := range w.clusters {
		c := &w.clusters[i]
		if wanted := RevisionFor(w.status, c.Name); wanted != c.Revision {
			c.Revision, c.Applied, c.Healthy = wanted, false, false
		}
	}
}

// apply has the clusters that answer do what they are told.
func (w *world) apply() {
	for i := range w.clusters {
		if c := &w.clusters[i]; c.Away == "" {
			c.Applied, c.Healthy = true, !w.sick[c.Revision]
		}
	}
}

// settle goes on until nothing changes without time.
func (w *world) settle() {
	for range 100 {
		before := w.details()
		w.decide()
		w.apply()
		if w.details() == before {
			return
		}
	}
	w.t.Fatalf("nothing settles: %s", w.picture())
}

// picture shows which revision the clusters have, and the phase.
func (w *world) picture() string {
	var parts []string
	for _, c := range sorted(w.clusters) {
		parts = append(parts, c.Name+"="+c.Revision)
	}
	return strings.Join(parts, " ") + " " + string(w.status.Phase)
}

// details of what settles.
func (w *world) details() string {
	text := w.picture()
	for _, c := range w.clusters {
		text += fmt.Sprint(" ", c.Applied, c.Healthy)
	}
	return text
}

func (w *world) wants(picture string) {
	w.t.Helper()
	if got := w.picture(); got != picture {
		w.t.Fatalf("got  %s\nwant %s\n%s: %s", got, picture, w.status.Reason, w.status.Message)
	}
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.settle()
}

func (w *world) change(template string) {
	w.template = template
	w.settle()
}

func (w *world) resume() {
	w.control.Paused = false
	w.control.Resumed = &workv1alpha2.RolloutResumption{Number: w.status.Number, Stop: w.status.Stops}
	w.settle()
}

// run a part of a test.
func (w *world) run(name string, part func(t *testing.T)) {
	whole := w.t
	defer func() { w.t = whole }()
	whole.Run(name, func(t *testing.T) {
		w.t = t
		part(t)
	})
}

func region(name string) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
		MatchExpressions: []policyv1alpha1.FieldSelectorRequirement{
			{Key: policyv1alpha1.SpreadByFieldRegion, Operator: "In", Values: []string{name}},
		},
	}}
}

// canary is a plan with a cluster of eu that soaks, the rest of eu, and everything else.
func canary() policyv1alpha1.RolloutStrategy {
	return policyv1alpha1.RolloutStrategy{
		Waves: []policyv1alpha1.RolloutWave{
			{Name: "canary", ClusterAffinity: region("eu"), MaxClusters: new(intstr.FromInt32(1)), SoakSeconds: 60},
			{Name: "eu", ClusterAffinity: region("eu")},
		},
		ProgressDeadlineSeconds: new(int32(300)),
	}
}

func TestWavesGoInOrder(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "eu-2", "us-1", "us-2")
	w.wants("eu-1=r1 eu-2=r1 us-1=r1 us-2=r1 Completed")
	w.template = "r2"
	w.decide()
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 us-2=r1 Progressing")
	if !strings.Contains(w.status.Message, "wave canary (1 of 3): waiting for eu-1: not applied yet") {
		t.Errorf("message %q", w.status.Message)
	}
	w.settle()
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 us-2=r1 Soaking")
	if w.after != time.Minute {
		t.Errorf("to be woken after %s", w.after)
	}
	w.pass(59 * time.Second)
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 us-2=r1 Soaking")
	w.now = w.now.Add(time.Second)
	w.decide()
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 us-2=r1 Progressing")
	w.apply()
	w.decide()
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 us-2=r2 Progressing")
	w.apply()
	w.decide()
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 us-2=r2 Completed")
	if w.after != 0 {
		t.Errorf("to be woken after %s", w.after)
	}
}

func TestAnUnhealthyWaveStopsIt(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "eu-2", "us-1")
	w.sick["r2"] = true
	w.change("r2")
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 Progressing")
	w.pass(299 * time.Second)
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 Progressing")
	w.pass(time.Second)
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 Failed")
	if !strings.Contains(w.status.Message, "eu-1: not healthy") {
		t.Errorf("message %q", w.status.Message)
	}

	w.run("nothing goes on by itself", func(t *testing.T) {
		w.sick["r2"] = false
		w.pass(time.Hour)
		w.wants("eu-1=r2 eu-2=r1 us-1=r1 Failed")
	})
	w.run("a new change begins with the first wave", func(t *testing.T) {
		w.change("r3")
		w.wants("eu-1=r3 eu-2=r1 us-1=r1 Soaking")
		w.pass(time.Minute)
		w.wants("eu-1=r3 eu-2=r3 us-1=r3 Completed")
	})
}

func TestResumeAfterFailure(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "us-1")
	w.sick["r2"] = true
	w.change("r2")
	w.pass(5 * time.Minute)
	w.resume()
	w.wants("eu-1=r2 us-1=r1 Progressing")
	w.pass(5 * time.Minute)
	w.wants("eu-1=r2 us-1=r1 Failed")
	w.sick["r2"] = false
	w.resume()
	w.pass(time.Minute)
	w.wants("eu-1=r2 us-1=r2 Completed")
}

func TestRollbackReachesAll(t *testing.T) {
	strategy := canary()
	strategy.OnFailure = policyv1alpha1.RolloutFailureRollback
	w := newWorld(t, strategy, "eu-1", "eu-2", "us-1")
	w.change("r2")
	w.pass(time.Minute)
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 Completed")
	w.change("r3")
	w.now = w.now.Add(time.Minute)
	w.decide() // eu-2 gets it now.
	w.sick["r3"] = true
	w.pass(0)
	w.wants("eu-1=r3 eu-2=r3 us-1=r2 Progressing")
	w.pass(5 * time.Minute)
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 RolledBack")
	w.pass(time.Hour)
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 RolledBack")

	w.run("a cluster that joins gets what the others have", func(t *testing.T) {
		w.join("eu-0")
		w.settle()
		w.wants("eu-0=r2 eu-1=r2 eu-2=r2 us-1=r2 RolledBack")
	})
	w.run("resuming tries again", func(t *testing.T) {
		w.sick["r3"] = false
		w.resume()
		w.wants("eu-0=r3 eu-1=r2 eu-2=r2 us-1=r2 Soaking")
		w.pass(time.Minute)
		w.wants("eu-0=r3 eu-1=r3 eu-2=r3 us-1=r3 Completed")
	})
}

func TestPauses(t *testing.T) {
	strategy := canary()
	strategy.Waves[0].Pause, strategy.Waves[1].Pause, strategy.Waves[0].SoakSeconds = true, true, 0
	w := newWorld(t, strategy, "eu-1", "eu-2", "us-1")
	w.change("r2")
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 Paused")
	w.pass(time.Hour)
	w.wants("eu-1=r2 eu-2=r1 us-1=r1 Paused")
	w.resume()
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 Paused")
	w.pass(time.Hour)
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 Paused")

	w.run("what became sick meanwhile is waited for", func(t *testing.T) {
		w.sick["r2"] = true
		w.settle()
		w.resume()
		w.wants("eu-1=r2 eu-2=r2 us-1=r1 Progressing")
		w.sick["r2"] = false
		w.settle()
		w.wants("eu-1=r2 eu-2=r2 us-1=r2 Completed")
	})
	w.run("a user's pause holds the first wave", func(t *testing.T) {
		w.control.Paused = true
		w.change("r3")
		w.wants("eu-1=r2 eu-2=r2 us-1=r2 Paused")
		w.control.Paused = false
		w.settle()
		w.wants("eu-1=r3 eu-2=r2 us-1=r2 Paused")
	})
	w.run("the policy's pause holds the next", func(t *testing.T) {
		w.strategy.Paused = true
		w.resume()
		w.wants("eu-1=r3 eu-2=r2 us-1=r2 Paused")
		if w.status.Reason != workv1alpha2.RolloutReasonPolicyPause {
			t.Errorf("reason %s", w.status.Reason)
		}
		w.strategy.Paused = false
		w.settle()
		w.wants("eu-1=r3 eu-2=r3 us-1=r2 Paused")
	})
	w.run("a pause that the policy gives up is over", func(t *testing.T) {
		w.strategy.Waves[1].Pause = false
		w.settle()
		w.resume() // The clusters that have it are the first wave now, which has a pause.
		w.wants("eu-1=r3 eu-2=r3 us-1=r3 Completed")
	})
	w.run("the deadline doesn't run in a pause", func(t *testing.T) {
		w.sick["r4"] = true
		w.change("r4")
		w.pass(200 * time.Second)
		w.control.Paused = true
		w.settle()
		w.pass(time.Hour)
		w.control.Paused = false
		w.settle()
		w.pass(99 * time.Second)
		w.wants("eu-1=r4 eu-2=r3 us-1=r3 Progressing")
		w.pass(time.Second)
		w.wants("eu-1=r4 eu-2=r3 us-1=r3 Failed")
	})
}

func TestUndo(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "us-1")
	w.change("r2")
	w.pass(time.Minute)
	w.change("r3")
	w.wants("eu-1=r3 us-1=r2 Soaking")
	w.control.Undo = &workv1alpha2.RolloutUndo{Number: w.status.Number, Revision: "r2"}
	w.settle()
	w.wants("eu-1=r2 us-1=r2 RolledBack")
	w.control.Undo.Revision = "r1"
	w.settle()
	w.wants("eu-1=r1 us-1=r1 RolledBack")

	w.run("taken back", func(t *testing.T) {
		w.control.Undo = nil
		w.settle()
		w.wants("eu-1=r3 us-1=r1 Soaking")
		w.pass(time.Minute)
		w.wants("eu-1=r3 us-1=r3 Completed")
	})
	w.run("after completion", func(t *testing.T) {
		w.control.Undo = &workv1alpha2.RolloutUndo{Number: w.status.Number, Revision: "r2"}
		w.settle()
		w.wants("eu-1=r2 us-1=r2 RolledBack")
	})
	w.run("until the object changes", func(t *testing.T) {
		w.change("r4")
		w.wants("eu-1=r4 us-1=r2 Soaking")
		w.pass(time.Minute)
		w.change("r3")
		w.pass(time.Minute)
		w.wants("eu-1=r3 us-1=r3 Completed")
	})
	w.run("to an unknown revision does nothing", func(t *testing.T) {
		w.control.Undo = &workv1alpha2.RolloutUndo{Number: w.status.Number, Revision: "r99"}
		w.settle()
		w.wants("eu-1=r3 us-1=r3 Completed")
	})
}

func TestTheObjectIsPutBack(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "us-1")
	w.sick["r2"] = true
	w.change("r2")
	w.change("r1")
	w.wants("eu-1=r1 us-1=r1 Completed")
	if w.status.Reason != workv1alpha2.RolloutReasonReverted || w.status.Number != 3 {
		t.Errorf("rollout %d: %s", w.status.Number, w.status.Reason)
	}
}

func TestClustersThatAreAway(t *testing.T) {
	strategy := canary()
	strategy.Waves[0].MaxClusters = new(intstr.FromString("60%"))
	w := newWorld(t, strategy, "eu-1", "eu-2", "us-1")
	w.cluster("eu-1").Away = "not ready"
	w.change("r2")
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 Soaking")
	if got := w.status.Waves[0]; got.Unavailable != 1 || got.Updated != 1 || got.Healthy != 1 {
		t.Errorf("wave %+v", got)
	}
	w.pass(time.Minute)
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 Completed")
	if !strings.Contains(w.status.Message, "but 1 that are not available") {
		t.Errorf("message %q", w.status.Message)
	}
	w.run("a wave of which none is there waits", func(t *testing.T) {
		w.cluster("eu-2").Away = "not ready"
		w.change("r3")
		w.wants("eu-1=r3 eu-2=r3 us-1=r2 Progressing")
		w.pass(5 * time.Minute)
		w.wants("eu-1=r3 eu-2=r3 us-1=r2 Failed")
		if !strings.Contains(w.status.Message, "eu-1: not ready; eu-2: not ready") {
			t.Errorf("message %q", w.status.Message)
		}
	})
}

func TestAnEarlierWaveMustStayHealthy(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "eu-2", "us-1")
	w.change("r2")
	w.now = w.now.Add(time.Minute)
	w.decide()
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 Progressing")
	w.apply()
	w.cluster("eu-1").Healthy = false
	w.decide()
	w.wants("eu-1=r2 eu-2=r2 us-1=r1 Progressing")
	w.settle()
	w.wants("eu-1=r2 eu-2=r2 us-1=r2 Completed")
}

func TestClustersComeAndGo(t *testing.T) {
	w := newWorld(t, canary(), "eu-2", "us-1")
	w.change("r2")
	w.wants("eu-2=r2 us-1=r1 Soaking")
	w.join("eu-1") // Comes before eu-2 by name, but the wave is full.
	w.join("us-0")
	w.settle()
	w.wants("eu-1=r1 eu-2=r2 us-0=r1 us-1=r1 Soaking")
	w.clusters = slices.DeleteFunc(w.clusters, func(c Cluster) bool { return c.Name == "eu-2" })
	w.settle()
	w.wants("eu-1=r2 us-0=r1 us-1=r1 Soaking") // It takes the place that is free.
	w.pass(time.Minute)
	w.wants("eu-1=r2 us-0=r2 us-1=r2 Completed")
	w.join("us-9")
	w.settle()
	w.wants("eu-1=r2 us-0=r2 us-1=r2 us-9=r2 Completed")
}

func TestAWaveWhoseClustersLoseTheObject(t *testing.T) {
	strategy := canary()
	strategy.Waves[0].ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu-1"}}
	w := newWorld(t, strategy, "eu-1", "eu-2", "us-1")
	w.sick["r2"] = true
	w.change("r2")
	// Its unhealthy copy was moved away.
	w.clusters = slices.DeleteFunc(w.clusters, func(c Cluster) bool { return c.Name == "eu-1" })
	w.settle()
	w.wants("eu-2=r1 us-1=r1 Progressing")
	w.pass(5 * time.Minute)
	w.wants("eu-2=r1 us-1=r1 Failed")
	if !strings.Contains(w.status.Message, "all lost the object") {
		t.Errorf("message %q", w.status.Message)
	}
	w.sick["r2"] = false
	w.resume()
	w.wants("eu-2=r2 us-1=r2 Completed")
}

func TestAPlanThatCannotBeUnderstood(t *testing.T) {
	w := newWorld(t, canary(), "eu-1", "us-1")
	w.planError = errors.New("spec.rollout.waves[0].clusterAffinity: wrong")
	w.change("r2")
	w.wants("eu-1=r1 us-1=r1 Paused")
	if !strings.Contains(w.status.Message, "spec.rollout.waves[0]") {
		t.Errorf("message %q", w.status.Message)
	}
	w.planError = nil
	w.settle()
	w.wants("eu-1=r2 us-1=r1 Soaking")

	strategy := canary()
	strategy.Waves[1].ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
	}}
	if _, err := NewPlan(&strategy); err == nil ||
		!strings.Contains(err.Error(), "spec.rollout.waves[1].clusterAffinity.labelSelector") {
		t.Errorf("error %v", err)
	}
	strategy = canary()
	strategy.Waves[0].MaxClusters = new(intstr.FromString("many"))
	if _, err := NewPlan(&strategy); err == nil || !strings.Contains(err.Error(), "spec.rollout.waves[0].maxClusters") {
		t.Errorf("error %v", err)
	}
}

func TestHistory(t *testing.T) {
	strategy := policyv1alpha1.RolloutStrategy{RevisionHistoryLimit: new(int32(2))}
	w := newWorld(t, strategy, "eu-1")
	for _, template := range []string{"r2", "r3", "r4", "r5", "r3"} {
		w.change(template)
		w.wants("eu-1=" + template + " Completed")
	}
	var got []string
	for _, r := range w.status.Revisions {
		got = append(got, r.Revision)
	}
	if want := []string{"r4", "r5", "r3"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if last := w.status.Revisions[2]; last.Number != 6 || last.TemplateGeneration != 7 {
		t.Errorf("last %+v", last)
	}
}
