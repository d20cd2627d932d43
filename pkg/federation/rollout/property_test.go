package rollout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// choices are taken one after the other; a fuzzer writes them, or a seed does.
type choices struct {
	bytes []byte
	next  int
}

// of gives a number below n.
func (c *choices) of(n int) int {
	if c.next >= len(c.bytes) {
		return 0
	}
	c.next++
	return int(c.bytes[c.next-1]) % n
}

func (c *choices) left() bool { return c.next < len(c.bytes) }

func randomStrategy(c *choices) policyv1alpha1.RolloutStrategy {
	strategy := policyv1alpha1.RolloutStrategy{
		ProgressDeadlineSeconds: new(int32(1 + c.of(100))), RevisionHistoryLimit: new(int32(c.of(4))),
		OnFailure: policyv1alpha1.RolloutFailurePause,
	}
	if c.of(2) == 1 {
		strategy.OnFailure = policyv1alpha1.RolloutFailureRollback
	}
	for i := range c.of(4) {
		w := policyv1alpha1.RolloutWave{Name: fmt.Sprint("w", i), SoakSeconds: int32(c.of(3) * 20), Pause: c.of(4) == 1}
		switch c.of(4) {
		case 1:
			w.MaxClusters = new(intstr.FromInt32(int32(1 + c.of(3))))
		case 2:
			w.MaxClusters = new(intstr.FromString(fmt.Sprintf("%d%%", 1+c.of(100))))
		}
		if c.of(2) == 1 {
			w.ClusterAffinity = region([]string{"eu", "us"}[c.of(2)])
		}
		strategy.Waves = append(strategy.Waves, w)
	}
	return strategy
}

// TestProperties has random things happen, and looks at every step for what must always hold.
func TestProperties(t *testing.T) {
	const runs = 1000
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 40+random.IntN(120))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		play(t, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzDecide looks for a history that breaks what must always hold.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 100)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 2000 {
			play(t, script)
		}
	})
}

// play a history.
func play(t *testing.T, script []byte) {
	t.Helper()
	c := &choices{bytes: script}
	w := newWorld(t, randomStrategy(c), "eu-1", "eu-2", "eu-3", "us-1", "us-2", "us-3")
	for c.left() {
		happen(w, c)
		before := w.status.DeepCopy()
		had := map[string]Cluster{}
		for _, cluster := range w.clusters {
			had[cluster.Name] = cluster
		}
		w.decide()
		check(t, w, before, had)
		if t.Failed() {
			text, _ := json.Marshal(before)
			t.Fatalf("before:\n%s\nafter: %s %s", text, w.picture(), w.status.Message)
		}
	}
	ends(t, w)
}

// happen has one thing happen.
func happen(w *world, c *choices) {
	cluster := func() *Cluster {
		if len(w.clusters) == 0 {
			w.join("eu-0")
		}
		return &w.clusters[c.of(len(w.clusters))]
	}
	switch c.of(14) {
	case 0, 1, 2:
		w.apply()
	case 3:
		w.template = fmt.Sprint("r", 1+c.of(5))
	case 4:
		w.now = w.now.Add(time.Duration(c.of(130)) * time.Second / 2)
	case 5:
		one := cluster()
		one.Away = []string{"not ready", ""}[c.of(2)]
	case 6:
		w.sick[fmt.Sprint("r", 1+c.of(5))] = c.of(2) == 1
	case 7:
		w.control.Paused = c.of(2) == 1
	case 8:
		w.control.Resumed = &workv1alpha2.RolloutResumption{Number: w.status.Number, Stop: w.status.Stops}
	case 9:
		w.control.Undo = nil
		if c.of(2) == 1 {
			w.control.Undo = &workv1alpha2.RolloutUndo{
				Number: w.status.Number, Revision: w.status.Revisions[c.of(len(w.status.Revisions))].Revision,
			}
		}
	case 10:
		one := cluster()
		one.Applied, one.Healthy = c.of(2) == 1, c.of(2) == 1
	case 11:
		if c.of(3) == 1 {
			w.strategy = randomStrategy(c)
		}
	case 12:
		name := fmt.Sprint([]string{"eu", "us"}[c.of(2)], "-", c.of(6))
		if !slices.ContainsFunc(w.clusters, func(c Cluster) bool { return c.Name == name }) {
			w.join(name)
		}
	case 13:
		gone := cluster().Name
		w.clusters = slices.DeleteFunc(w.clusters, func(c Cluster) bool { return c.Name == gone })
	}
}

// check what must hold of every step.
func check(t *testing.T, w *world, before *workv1alpha2.RolloutStatus, had map[string]Cluster) {
	t.Helper()
	s := w.status
	known := map[string]bool{}
	for _, r := range s.Revisions {
		known[r.Revision] = true
	}
	if !known[s.StableRevision] || !known[s.UpdateRevision] || s.UpdateRevision != w.template {
		t.Errorf("stable %s and update %s of %s are not all among %v", s.StableRevision, s.UpdateRevision, w.template,
			s.Revisions)
	}
	if pending := Pending(&w.control, s); pending != "" && w.planError == nil {
		t.Errorf("%s, asked for by %+v, was not looked at", pending, w.control)
	}
	if SeenGeneration(s) != 7 {
		t.Errorf("the object of generation 7 was not seen: %v", s.Revisions)
	}
	if int(s.CurrentWave) > len(s.Waves) || s.CurrentWave < 0 {
		t.Errorf("wave %d of %d", s.CurrentWave, len(s.Waves))
	}
	seen := map[string]int{}
	for _, wave := range s.Waves {
		for _, name := range wave.Clusters {
			seen[name]++
		}
	}
	for _, c := range w.clusters {
		if seen[c.Name] != 1 {
			t.Errorf("%s is in %d waves", c.Name, seen[c.Name])
		}
		if c.Revision != s.StableRevision && c.Revision != s.UpdateRevision {
			t.Errorf("%s has %s", c.Name, c.Revision)
		}
	}
	if len(seen) != len(w.clusters) {
		t.Errorf("%d clusters in waves, %d in the fleet", len(seen), len(w.clusters))
	}
	switch s.Phase {
	case workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutCompleted:
		for _, c := range w.clusters {
			if c.Revision != s.StableRevision {
				t.Errorf("%s has %s, although it is %s", c.Name, c.Revision, s.Phase)
			}
		}
	default:
		ordered(t, w, before, had)
	}
	again(t, w)
}

// ordered: a wave has the new revision only when those before it were done, and what has it keeps it.
func ordered(t *testing.T, w *world, before *workv1alpha2.RolloutStatus, had map[string]Cluster) {
	t.Helper()
	s := w.status
	same := before.Number == s.Number
	for i, wave := range s.Waves {
		for _, name := range wave.Clusters {
			has := RevisionFor(s, name) == s.UpdateRevision && s.UpdateRevision != s.StableRevision
			if has != (i < int(s.CurrentWave) && s.UpdateRevision != s.StableRevision) {
				t.Errorf("%s of wave %d has %s while wave %d is current", name, i+1, RevisionFor(s, name),
					s.CurrentWave)
			}
			old, existed := had[name]
			if same && existed && !has && old.Revision == s.UpdateRevision && s.UpdateRevision != s.StableRevision &&
				RevisionFor(before, name) == s.UpdateRevision {
				t.Errorf("%s goes back from %s to %s", name, old.Revision, RevisionFor(s, name))
			}
		}
	}
	if !same || before.PlanHash != s.PlanHash || s.CurrentWave <= 1 {
		return
	}
	for i := range s.CurrentWave - 1 {
		if i+1 < before.CurrentWave {
			continue
		}
		for _, name := range s.Waves[i].Clusters {
			if c := had[name]; c.Away == "" && (c.Revision != s.UpdateRevision || !c.Applied || !c.Healthy) {
				t.Errorf("wave %d came although %s of wave %d has %+v", s.CurrentWave, name, i+1, c)
			}
		}
	}
}

// again: the same observations give the same decision, whatever was forgotten in between.
func again(t *testing.T, w *world) {
	t.Helper()
	text, err := json.Marshal(w.status)
	if err != nil {
		t.Fatal(err)
	}
	var stored workv1alpha2.RolloutStatus
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(&w.strategy)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(w.clusters)
	decide := func(previous *workv1alpha2.RolloutStatus) *workv1alpha2.RolloutStatus {
		return Decide(Input{
			Plan: plan, Control: &w.control, Previous: previous, Template: w.template, TemplateGeneration: 7,
			Clusters: w.clusters, Now: w.now,
		}).Status
	}
	one, two := decide(w.status), decide(&stored)
	a, _ := json.Marshal(one)
	b, _ := json.Marshal(two)
	if string(a) != string(b) {
		t.Errorf("after a restart:\n%s\nwithout one:\n%s", b, a)
	}
	if !SameRevisions(w.status, one) || !reflect.DeepEqual(w.status.Phase, one.Phase) {
		t.Errorf("deciding again changes %s (%s, wave %d) to %s (%s, wave %d)",
			w.status.Phase, w.status.Reason, w.status.CurrentWave, one.Phase, one.Reason, one.CurrentWave)
	}
}

// ends: with healthy clusters and nobody who wants otherwise, every rollout is completed.
func ends(t *testing.T, w *world) {
	t.Helper()
	w.sick, w.control = map[string]bool{}, workv1alpha2.RolloutControl{}
	for i := range w.clusters {
		w.clusters[i].Away = ""
	}
	for range 30 {
		w.settle()
		if w.status.Phase == workv1alpha2.RolloutCompleted {
			return
		}
		w.resume()
		w.pass(time.Minute)
	}
	t.Errorf("never ends: %s %s", w.picture(), w.status.Message)
}
