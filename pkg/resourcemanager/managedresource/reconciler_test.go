package managedresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const manifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: default}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second, namespace: default}
`

func TestObjectsAreAppliedPutBackAndRemoved(t *testing.T) {
	s := newScenario(t)
	s.reconcile()
	s.expect("first", true)
	s.expect("second", true)
	mr := s.get()
	if !conditions.IsTrue(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied) ||
		!conditions.IsTrue(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy) {
		t.Errorf("conditions are %+v", mr.Status.Conditions)
	}
	if len(mr.Status.Resources) != 2 || len(mr.Finalizers) != 1 {
		t.Errorf("status has %v, finalizers are %v", mr.Status.Resources, mr.Finalizers)
	}

	// Someone deletes an object: the next sync puts it back, but not before.
	s.delete("first")
	s.clock.Step(30 * time.Second)
	s.reconcile()
	s.expect("first", false)
	s.clock.Step(30 * time.Second)
	s.reconcile()
	s.expect("first", true)

	// An object leaves the Secret: it is deleted at once, the other stays.
	s.secret(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","namespace":"default"}}`)
	s.reconcile()
	s.expect("first", true)
	s.expect("second", false)
	s.reconcile()
	if got := len(s.get().Status.Resources); got != 1 {
		t.Errorf("status still has %d objects", got)
	}

	// The ManagedResource is deleted, and with it the rest.
	if err := s.client.Delete(t.Context(), s.get()); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.reconcile()
	s.expect("first", false)
	if err := s.client.Get(t.Context(), s.key, &resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ManagedResource is still there (%v)", err)
	}
}

func TestObjectsOfOthersAreNotDeleted(t *testing.T) {
	s := newScenario(t)
	s.reconcile()
	object := &corev1.ConfigMap{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "second"}, object); err != nil {
		t.Fatal(err)
	}
	object.Annotations[resourcesv1alpha1.OriginAnnotation] = "seed:garden/other"
	if err := s.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	s.secret(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","namespace":"default"}}`)
	s.reconcile()
	s.expect("second", true)
}

func TestKeepObjects(t *testing.T) {
	s := newScenario(t)
	s.reconcile()
	mr := s.get()
	mr.Spec.KeepObjects = new(true)
	if err := s.client.Update(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.expect("first", true)
	s.expect("second", true)
}

func TestBrokenManifestsAreReported(t *testing.T) {
	s := newScenario(t)
	s.secret("a: [")
	if _, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key}); err == nil {
		t.Error("no error")
	}
	condition := conditions.Get(s.get().Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if condition == nil || condition.Reason != resourcesv1alpha1.ConditionDecodingFailed {
		t.Errorf("condition is %+v", condition)
	}
}

func TestWithoutTargetNothingHappens(t *testing.T) {
	s := newScenario(t)
	mr := s.get()
	mr.Spec.Class = nil
	if err := s.client.Update(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.expect("first", false)
}

// scenario is a ManagedResource of class seed in a fake cluster that is its own target.
type scenario struct {
	t          *testing.T
	client     client.Client
	clock      *clocktesting.FakeClock
	reconciler *Reconciler
	key        client.ObjectKey
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "mr"},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: new(resourcesv1alpha1.ClassSeed), SecretRefs: []corev1.LocalObjectReference{{Name: "mr"}},
		},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "mr"}, Data: map[string][]byte{"x": []byte(manifests)},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mr, secret).WithStatusSubresource(mr).Build()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &scenario{
		t: t, client: c, clock: clock, key: client.ObjectKeyFromObject(mr),
		reconciler: &Reconciler{
			Client: c, Reader: c, Targets: target.NewStaticRegistry(c), ClusterID: "seed", SyncPeriod: time.Minute,
			Clock: clock,
		},
	}
}

func (s *scenario) reconcile() {
	s.t.Helper()
	if _, err := s.reconciler.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: s.key}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) get() *resourcesv1alpha1.ManagedResource {
	s.t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := s.client.Get(s.t.Context(), s.key, mr); err != nil {
		s.t.Fatal(err)
	}
	return mr
}

func (s *scenario) secret(content string) {
	s.t.Helper()
	secret := &corev1.Secret{}
	if err := s.client.Get(s.t.Context(), s.key, secret); err != nil {
		s.t.Fatal(err)
	}
	secret.Data = map[string][]byte{"x": []byte(content)}
	if err := s.client.Update(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) delete(name string) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) expect(name string, there bool) {
	s.t.Helper()
	err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	if (err == nil) != there {
		s.t.Errorf("ConfigMap %s: got %v, want it there: %v", name, err, there)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
