package care

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	etcdstatus "github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

const testNamespace = "shoot--demo--one"

// landscape is a garden with one shoot, and its seed with etcds that tell what a test has them tell.
type landscape struct {
	care         *Reconciler
	garden, seed client.Client
	main, events *etcdstatus.Status
	// others are the members of etcd-main beside the first.
	others [2]*etcdstatus.Status
}

// newLandscape has a shoot that is well, on a seed with a store of backups.
func newLandscape(t *testing.T) *landscape {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(addHealthSchemes(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &landscape{main: telling(), events: telling()}
	l.events.Store = nil
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one", UID: "1234"},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: new("seed")},
		Status: gardencorev1beta1.ShootStatus{
			TechnicalID: testNamespace, SeedName: new("seed"),
			LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded},
		},
	}
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "seed"},
		Spec:       gardencorev1beta1.SeedSpec{Backup: &gardencorev1beta1.Backup{}},
	}
	l.garden = fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, seed).
		WithStatusSubresource(shoot).Build()
	l.seed = healthyControlPlane(scheme, testNamespace)
	l.runEtcd(t, "etcd-main-0", "10.0.0.1")
	l.runEtcd(t, "etcd-events-0", "10.0.0.2")
	configuration := &config.Configuration{SeedConfig: &config.SeedConfig{}}
	configuration.SeedConfig.Name = "seed"
	configuration.Controllers.ShootCare.SyncPeriod = &metav1.Duration{Duration: time.Minute}
	l.care = &Reconciler{
		Garden: l.garden, Seed: l.seed, Seeds: l.garden, Config: configuration,
		Now: func() time.Time { return now.Time },
		Ask: func(_ context.Context, address string) (*etcdstatus.Status, error) {
			told := map[string]*etcdstatus.Status{
				"10.0.0.1:8080": l.main, "10.0.0.2:8080": l.events, "10.0.0.3:8080": l.others[0],
				"10.0.0.4:8080": l.others[1],
			}[address]
			if told == nil {
				return nil, errors.New("connection refused\x1b")
			}
			return told, nil
		},
	}
	return l
}

// newLandscapeOfMembers is as newLandscape, with three members of etcd-main. The last one leads.
func newLandscapeOfMembers(t *testing.T) *landscape {
	t.Helper()
	l := newLandscape(t)
	set := &appsv1.StatefulSet{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "etcd-main"}, set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Replicas = new(int32(3))
	if err := l.seed.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set.Status = appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3}
	if err := l.seed.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	l.runEtcd(t, "etcd-main-1", "10.0.0.3")
	l.runEtcd(t, "etcd-main-2", "10.0.0.4")
	l.others = [2]*etcdstatus.Status{telling(), telling()}
	l.main.Store, l.others[0].Store, l.others[1].Leads = &etcdstatus.Store{}, &etcdstatus.Store{}, true
	return l
}

// runEtcd adds the pod of a member.
func (l *landscape) runEtcd(t *testing.T, name, address string) {
	t.Helper()
	l.create(t, l.seed, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name},
		Status: corev1.PodStatus{
			PodIP: address, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	})
}

// telling is what an etcd tells that serves and is backed up.
func telling() *etcdstatus.Status {
	return &etcdstatus.Status{
		Time: now.Time, Phase: etcdstatus.Serving, PhaseSince: now.Add(-time.Hour),
		Store: &etcdstatus.Store{Delta: etcdstatus.Operation{Succeeded: now.Add(-time.Minute), Revision: 7}},
	}
}

func (l *landscape) create(t *testing.T, in client.Client, object client.Object) {
	t.Helper()
	if err := in.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// look has gardenlet look, and returns what the Shoot then says.
func (l *landscape) look(t *testing.T) *gardencorev1beta1.Shoot {
	t.Helper()
	key := client.ObjectKey{Namespace: "garden-demo", Name: "one"}
	if _, err := l.care.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := l.garden.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	return shoot
}

// eventsOf are those in the garden.
func (l *landscape) eventsOf(t *testing.T) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := l.garden.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// check checks a condition or constraint, of which the message is to have some text.
func check(t *testing.T, list []gardencorev1beta1.Condition, kind gardencorev1beta1.ConditionType,
	status gardencorev1beta1.ConditionStatus, reason, text string) {
	t.Helper()
	got := conditions.Get(list, kind)
	if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, text) {
		t.Errorf("%s is %+v, want %s, %s, %q", kind, got, status, reason, text)
	}
}
