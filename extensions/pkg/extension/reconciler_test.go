package extension

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	technicalID    = "shoot--demo--one"
	ourFinalizer   = "extensions.gardener.cloud/infrastructure"
	otherFinalizer = "others.example/finalizer"
)

type infrastructure = extensionsv1alpha1.Infrastructure

// recorder is an actuator that notes what it is asked, and answers with err.
type recorder struct {
	calls []string
	err   error
	// work is done by each call.
	work func(*infrastructure)
}

func (r *recorder) record(call string, object *infrastructure) error {
	r.calls = append(r.calls, call)
	if r.work != nil {
		r.work(object)
	}
	return r.err
}

func (r *recorder) Reconcile(_ context.Context, _ logr.Logger, object *infrastructure, _ *cluster.Cluster) error {
	return r.record("reconcile", object)
}

func (r *recorder) Delete(_ context.Context, _ logr.Logger, object *infrastructure, _ *cluster.Cluster) error {
	return r.record("delete", object)
}

// mover is one that has something to take along, and can give up.
type mover struct{ recorder }

func (m *mover) Migrate(_ context.Context, _ logr.Logger, object *infrastructure, _ *cluster.Cluster) error {
	return m.record("migrate", object)
}

func (m *mover) Restore(_ context.Context, _ logr.Logger, object *infrastructure, _ *cluster.Cluster) error {
	return m.record("restore", object)
}

func (m *mover) ForceDelete(_ context.Context, _ logr.Logger, object *infrastructure, _ *cluster.Cluster) error {
	return m.record("force", object)
}

// reconcilerOf is one over an object, and the Cluster of its shoot.
func reconcilerOf(t *testing.T, actuator Actuator[*infrastructure], object *infrastructure,
	shoot *gardencorev1beta1.Shoot) *reconciler[*infrastructure] {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	owner := &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: technicalID},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, owner).WithStatusSubresource(object).Build()
	options := Options[*infrastructure]{
		Kind: extensionsv1alpha1.InfrastructureResource, Type: "local", Actuator: actuator,
	}
	options.setDefaults()
	return &reconciler[*infrastructure]{options: options, client: c, reader: c, log: logr.Discard()}
}

func asked(operation string, finalizers ...string) *infrastructure {
	object := &infrastructure{
		ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "one", Generation: 3, Finalizers: finalizers},
	}
	object.Spec.Type = "local"
	if operation != "" {
		object.Annotations = map[string]string{
			gardencorev1beta1.GardenerOperation: operation, gardencorev1beta1.GardenerTimestamp: "2026-01-01T00:00:00Z",
		}
	}
	return object
}

func deleted(finalizers ...string) *infrastructure {
	object := asked("", finalizers...)
	object.DeletionTimestamp = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	return object
}

// outcome reconciles once and reads what is stored then; nil when the object is gone.
func outcome(t *testing.T, r *reconciler[*infrastructure]) (reconcile.Result, *infrastructure, error) {
	t.Helper()
	key := client.ObjectKey{Namespace: technicalID, Name: "one"}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	stored := &infrastructure{}
	if getErr := r.client.Get(t.Context(), key, stored); apierrors.IsNotFound(getErr) {
		return result, nil, err
	} else if getErr != nil {
		t.Fatal(getErr)
	}
	return result, stored, err
}

// What gardenlet waits for after a success: the annotation gone, the generation seen, no error, and the time of the
// operation.
func TestASuccessIsReported(t *testing.T) {
	actuator := &recorder{work: func(o *infrastructure) { o.Status.EgressCIDRs = []string{"192.0.2.0/24"} }}
	_, stored, err := outcome(t, reconcilerOf(t, actuator, asked("reconcile"), &gardencorev1beta1.Shoot{}))
	if err != nil || !slices.Equal(actuator.calls, []string{"reconcile"}) {
		t.Fatalf("got %v, %v", err, actuator.calls)
	}
	last := stored.Status.LastOperation
	if last.State != succeeded || last.Type != create || last.Progress != 100 ||
		stored.Status.ObservedGeneration != 3 || stored.Status.LastError != nil {
		t.Errorf("got %+v", stored.Status)
	}
	if _, pending := stored.Annotations[gardencorev1beta1.GardenerOperation]; pending ||
		!slices.Equal(stored.Finalizers, []string{ourFinalizer}) {
		t.Errorf("got %v, %v", stored.Annotations, stored.Finalizers)
	}
	if !slices.Equal(stored.Status.EgressCIDRs, []string{"192.0.2.0/24"}) {
		t.Errorf("what the actuator wrote is lost: %v", stored.Status.EgressCIDRs)
	}
}

// An error is told to gardenlet with its codes, and the operation is tried again by the queue. A later success takes
// the error away.
func TestAnErrorIsReportedWithItsCodes(t *testing.T) {
	actuator := &recorder{err: WithCodes(errors.New("no such token"), gardencorev1beta1.ErrorInfraUnauthenticated)}
	r := reconcilerOf(t, actuator, asked("reconcile"), &gardencorev1beta1.Shoot{})
	_, stored, err := outcome(t, r)
	if err == nil || !strings.Contains(err.Error(), "Infrastructure shoot--demo--one/one: no such token") {
		t.Errorf("got %v", err)
	}
	failure := stored.Status.LastError
	if failure == nil || failure.Description != "Error reconciling Infrastructure: no such token" ||
		!slices.Equal(failure.Codes, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthenticated}) {
		t.Errorf("got %+v", failure)
	}
	if stored.Status.LastOperation.State != failing || stored.Status.ObservedGeneration != 3 {
		t.Errorf("got %+v", stored.Status.LastOperation)
	}
	actuator.err = nil
	if _, stored, err = outcome(t, r); err != nil || stored.Status.LastError != nil ||
		stored.Status.LastOperation.Type != create {
		t.Errorf("got %v, %+v", err, stored.Status)
	}
}

// What takes its time is no error: nobody is alarmed, and the object is looked at when the actuator said.
func TestWaitingIsNoError(t *testing.T) {
	actuator := &recorder{err: &RequeueAfter{After: 7 * time.Second, Cause: errors.New("the network is being made")}}
	result, stored, err := outcome(t, reconcilerOf(t, actuator, asked("reconcile"), &gardencorev1beta1.Shoot{}))
	if err != nil || result.RequeueAfter != 7*time.Second || stored.Status.LastError != nil ||
		stored.Status.LastOperation.State != working {
		t.Errorf("got %v, %v, %+v", result, err, stored.Status)
	}
	if want := "Reconciling the Infrastructure: the network is being made"; stored.Status.LastOperation.Description !=
		want {
		t.Errorf("got %q", stored.Status.LastOperation.Description)
	}
	if stored.Status.ObservedGeneration == 3 {
		t.Error("gardenlet would take the operation for finished")
	}
}

// The finalizer goes when all is gone, and not before; those of others stay.
func TestDeletion(t *testing.T) {
	actuator := &recorder{err: errors.New("still used")}
	r := reconcilerOf(t, actuator, deleted(ourFinalizer, otherFinalizer), &gardencorev1beta1.Shoot{})
	if _, stored, err := outcome(t, r); err == nil || !slices.Contains(stored.Finalizers, ourFinalizer) {
		t.Errorf("got %v, %v", err, stored.Finalizers)
	}
	actuator.err = nil
	if _, stored, err := outcome(t, r); err != nil || !slices.Equal(stored.Finalizers, []string{otherFinalizer}) {
		t.Errorf("got %v, %v", err, stored.Finalizers)
	}
	if _, _, err := outcome(t, r); err != nil || !slices.Equal(actuator.calls, []string{"delete", "delete"}) {
		t.Errorf("after its finalizer is gone: %v, %v", err, actuator.calls)
	}
}

// Which function of an actuator is called for what gardenlet asks.
func TestWhatIsCalled(t *testing.T) {
	forced := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		DeletionTimestamp: &metav1.Time{Time: time.Now()},
		Annotations:       map[string]string{gardencorev1beta1.AnnotationConfirmationForceDeletion: "true"},
	}}
	failed := &gardencorev1beta1.Shoot{}
	failed.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateFailed}
	plain := &gardencorev1beta1.Shoot{}
	for name, test := range map[string]struct {
		object *infrastructure
		shoot  *gardencorev1beta1.Shoot
		simple bool
		want   []string
	}{
		"migration":                                {asked("migrate", ourFinalizer), plain, false, []string{"migrate"}},
		"migration, with nothing to take along":    {asked("migrate", ourFinalizer), plain, true, nil},
		"restoration":                              {asked("restore"), plain, false, []string{"restore"}},
		"restoration without a state":              {asked("restore"), plain, true, []string{"reconcile"}},
		"deletion":                                 {deleted(ourFinalizer), plain, false, []string{"delete"}},
		"forced deletion":                          {deleted(ourFinalizer), forced, false, []string{"force"}},
		"forced deletion that it does not know":    {deleted(ourFinalizer), forced, true, []string{"delete"}},
		"a shoot that failed for good":             {asked("reconcile"), failed, false, nil},
		"the deletion of one that failed":          {deleted(ourFinalizer), failed, false, []string{"delete"}},
		"the deletion of what was never begun":     {deleted(otherFinalizer), plain, false, nil},
		"a state that is not there to be restored": {asked("wait-for-state"), plain, false, nil},
	} {
		full := &mover{}
		var actuator Actuator[*infrastructure] = full
		calls := func() []string { return full.calls }
		if test.simple {
			simple := &recorder{}
			actuator, calls = simple, func() []string { return simple.calls }
		}
		if _, _, err := outcome(t, reconcilerOf(t, actuator, test.object, test.shoot)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(calls(), test.want) {
			t.Errorf("%s: called %v, want %v", name, calls(), test.want)
		}
	}
}

// After a migration the object here is let go of, and its deletion touches nothing.
func TestAMigratedObjectIsReleased(t *testing.T) {
	actuator := &mover{
		recorder{work: func(o *infrastructure) { o.Status.State = &runtime.RawExtension{Raw: []byte(`{"a":1}`)} }},
	}
	r := reconcilerOf(t, actuator, asked("migrate", ourFinalizer, otherFinalizer), &gardencorev1beta1.Shoot{})
	_, stored, err := outcome(t, r)
	if err != nil || !slices.Equal(stored.Finalizers, []string{otherFinalizer}) ||
		stored.Annotations[gardencorev1beta1.GardenerOperation] != "" {
		t.Fatalf("got %v, %v, %v", err, stored.Finalizers, stored.Annotations)
	}
	if stored.Status.State == nil || stored.Status.LastOperation.Type != migrate ||
		stored.Status.LastOperation.State != succeeded {
		t.Errorf("got %+v", stored.Status)
	}
	if err := r.client.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if _, _, err := outcome(t, r); err != nil || !slices.Equal(actuator.calls, []string{"migrate"}) {
		t.Errorf("got %v, %v", err, actuator.calls)
	}
}

func TestFinalizerNames(t *testing.T) {
	for kind, want := range map[string]string{
		"Infrastructure": "infrastructure", "Extension": "federation",
		"OperatingSystemConfig": "operatingsystemconfigs", "BackupBucket": "backupbucket",
	} {
		if got := finalizerName(kind, "federation"); got != want {
			t.Errorf("%s: got %s", kind, got)
		}
	}
}
