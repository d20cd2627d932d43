package deletions

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
)

var ctx = context.Background()

// start is a full second: the API keeps no parts of it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type scene struct {
	t      *testing.T
	client client.Client
	gate   *Gate
	now    time.Time
}

// newScene has a member with so many Works, each of a binding with the same number.
func newScene(t *testing.T, works int) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}
	for i := range works {
		objects = append(objects, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.ExecutionNamespace("m1"), Name: workName(i), UID: types.UID(workName(i)),
			Finalizers: []string{workv1alpha1.Finalizer},
			Annotations: map[string]string{
				workv1alpha2.NamespaceAnnotation: "ns", workv1alpha2.NameAnnotation: workName(i),
			},
		}})
	}
	s := &scene{t: t, now: start}
	s.client = fake.NewClientBuilder().
		WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&workv1alpha1.Work{},
		&clusterv1alpha1.Cluster{}).Build()
	s.restart()
	return s
}

func workName(i int) string { return fmt.Sprintf("w%02d", i) }

// restart the process: it knows only what the API knows.
func (s *scene) restart() {
	settings := budget.Default()
	settings.AtLeast = 10
	s.gate = &Gate{
		client: s.client, events: events.NewFakeRecorder(100), now: func() time.Time { return s.now },
		settings: settings,
		recent:   map[string]budget.Recent{}, passed: map[types.UID]bool{}, unsaved: map[string]bool{},
		counts: map[string]budget.Count{},
	}
}

func (s *scene) work(i int) *workv1alpha1.Work {
	s.t.Helper()
	work := &workv1alpha1.Work{}
	if err := s.client.Get(ctx, types.NamespacedName{
		Namespace: clusterv1alpha1.ExecutionNamespace("m1"), Name: workName(i),
	}, work); err != nil {
		s.t.Fatal(err)
	}
	return work
}

func (s *scene) cluster() *clusterv1alpha1.Cluster {
	s.t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := s.client.Get(ctx, types.NamespacedName{Name: "m1"}, cluster); err != nil {
		s.t.Fatal(err)
	}
	return cluster
}

func (s *scene) annotate(object client.Object, key, value string) {
	s.t.Helper()
	object.SetAnnotations(merged(object.GetAnnotations(), key, value))
	if err := s.client.Update(ctx, object); err != nil {
		s.t.Fatal(err)
	}
}

func merged(annotations map[string]string, key, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

func (s *scene) deleteWorks(from, to int) {
	s.t.Helper()
	for i := from; i < to; i++ {
		if err := s.client.Delete(ctx, s.work(i)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) ask(i int) Answer {
	s.t.Helper()
	s.now = s.now.Add(countsLast)
	answer, err := s.gate.Ask(ctx, s.work(i), s.cluster())
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func TestFewDeletionsPass(t *testing.T) {
	s := newScene(t, 30)
	s.deleteWorks(0, 10)
	for i := range 10 {
		if !s.ask(i).Go {
			t.Fatalf("deletion %d does not pass", i)
		}
	}
	if !s.ask(0).Go {
		t.Error("what has passed once passes again")
	}
	s.deleteWorks(10, 11)
	if s.ask(10).Go {
		t.Error("the eleventh of 30 passes")
	}
}

// Deletions that are asked for one by one, faster than all Works are counted anew, add up all the same.
func TestDeletionsBetweenCounts(t *testing.T) {
	s := newScene(t, 30)
	s.deleteWorks(0, 1)
	s.ask(0)
	passed := 1
	for i := 1; i < 20; i++ {
		s.deleteWorks(i, i+1)
		s.now = s.now.Add(-countsLast)
		if s.ask(i).Go {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d deletions pass, want 10", passed)
	}
}

func TestManyDeletionsWait(t *testing.T) {
	s := newScene(t, 30)
	s.deleteWorks(0, 20)
	for i := range 20 {
		if answer := s.ask(i); answer.Go || answer.Keep {
			t.Fatalf("deletion %d passes", i)
		}
	}
	s.gate.report(ctx)
	if c := meta.FindStatusCondition(s.cluster().Status.Conditions, clusterv1alpha1.ConditionDeletionHeld); c == nil ||
		c.Status != metav1.ConditionTrue {
		t.Errorf("the cluster doesn't say so: %+v", c)
	}
	s.now = s.now.Add(time.Hour)
	s.restart()
	if s.ask(0).Go {
		t.Error("neither time nor a new process confirms anything")
	}
	t.Run("confirmed one by one", func(t *testing.T) {
		s.annotate(s.work(0), workv1alpha1.ConfirmDeletionAnnotation, workv1alpha1.ConfirmDeletionYes)
		if !s.ask(0).Go || s.ask(1).Go {
			t.Error("one was confirmed")
		}
	})
	t.Run("kept", func(t *testing.T) {
		s.annotate(s.work(1), workv1alpha1.ConfirmDeletionAnnotation, workv1alpha1.ConfirmDeletionKeep)
		if !s.ask(1).Keep {
			t.Error("it was to be kept")
		}
	})
	t.Run("wanted again", func(t *testing.T) {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: workName(2)}}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
		if err := s.client.Create(ctx, b); err != nil {
			t.Fatal(err)
		}
		if !s.ask(2).Keep {
			t.Error("the binding wants the object in the cluster")
		}
	})
	t.Run("confirmed for the cluster", func(t *testing.T) {
		asked := s.work(3).DeletionTimestamp.Time
		s.annotate(s.cluster(), clusterv1alpha1.ConfirmDeletionAnnotation,
			asked.Add(-time.Second).UTC().Format(time.RFC3339))
		if s.ask(3).Go {
			t.Error("the confirmation is older than the deletion")
		}
		s.annotate(s.cluster(), clusterv1alpha1.ConfirmDeletionAnnotation,
			asked.Add(time.Second).UTC().Format(time.RFC3339))
		if !s.ask(3).Go {
			t.Error("the confirmation is newer than the deletion")
		}
	})
}

func TestEvictionsAndSleepNeedNoConfirmation(t *testing.T) {
	s := newScene(t, 30)
	s.deleteWorks(0, 20)
	s.annotate(s.work(0), workv1alpha1.ConfirmDeletionAnnotation, workv1alpha1.ConfirmDeletionEvicted)
	if !s.ask(0).Go || s.ask(1).Go {
		t.Error("one was evicted")
	}
	s.annotate(s.cluster(), clusterv1alpha1.HibernatedAnnotation, "true")
	if !s.ask(2).Go {
		t.Error("the cluster sleeps")
	}
}

func TestRecentDeletionsAreRemembered(t *testing.T) {
	s := newScene(t, 30)
	s.deleteWorks(0, 8)
	for i := range 8 {
		s.ask(i)
		work := s.work(i)
		work.Finalizers = nil
		if err := s.client.Update(ctx, work); err != nil {
			t.Fatal(err)
		}
	}
	s.gate.report(ctx)
	s.restart()
	s.deleteWorks(8, 11)
	if s.ask(8).Go {
		t.Error("8 were deleted a moment ago, 3 more are too many")
	}
}
