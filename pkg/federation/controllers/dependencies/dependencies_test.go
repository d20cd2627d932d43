package dependencies

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// sourceOf is a Source that says the same of every object.
type sourceOf []configv1alpha1.DependentObjectReference

func (r sourceOf) Dependencies(context.Context,
	*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return r, nil
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

// referrer gives the ConfigMap that refers to others, and its binding.
func referrer(name string, change func(*workv1alpha2.ResourceBindingSpec), clusters ...string) []client.Object {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: bindings.Name(name, "ConfigMap")},
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
	b.Spec.PropagateDeps, b.Spec.Placement = true, &policyv1alpha1.Placement{}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	if change != nil {
		change(&b.Spec)
	}
	return []client.Object{configMap("shop", name, nil), b}
}

type fixture struct {
	client.Client
	t          *testing.T
	controller *dependencies
	watched    []schema.GroupVersionKind
}

func newFixture(t *testing.T, source references.Source, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&workv1alpha2.ResourceBinding{}, requiredByIndex, indexRequiredBy).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, requiredByIndex, indexRequiredBy).Build()}
	f.controller = &dependencies{
		client: f.Client, events: events.NewFakeRecorder(10), source: source, index: newIndex(),
		watch:   func(gvk schema.GroupVersionKind) error { f.watched = append(f.watched, gvk); return nil },
		skipped: func(object *unstructured.Unstructured) bool { return object.GetName() == "skipped" },
	}
	return f
}

func (f *fixture) reconcile(names ...string) {
	f.t.Helper()
	for _, name := range names {
		key := types.NamespacedName{Namespace: "shop", Name: bindings.Name(name, "ConfigMap")}
		if _, err := f.controller.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) binding(name string) *workv1alpha2.ResourceBinding {
	f.t.Helper()
	b, err := bindings.Get(f.t.Context(), f.Client,
		types.NamespacedName{Namespace: "shop", Name: bindings.Name(name, "ConfigMap")})
	if err != nil {
		f.t.Fatal(err)
	}
	if b == nil {
		return nil
	}
	return b.(*workv1alpha2.ResourceBinding)
}

// required tells, as "referrer:cluster", who needs the ConfigMap where.
func (f *fixture) required(name string) []string {
	f.t.Helper()
	b := f.binding(name)
	if b == nil {
		return nil
	}
	var all []string
	for _, s := range b.Spec.RequiredBy {
		for _, c := range s.Clusters {
			all = append(all, s.Name+":"+c.Name)
		}
	}
	return all
}

func (f *fixture) want(name string, want ...string) {
	f.t.Helper()
	if got := f.required(name); !slices.Equal(got, want) {
		f.t.Errorf("%s is required by %v, want %v", name, got, want)
	}
}

func named1(name string) configv1alpha1.DependentObjectReference {
	return configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func TestDependencyFollowsItsReferrers(t *testing.T) {
	objects := slices.Concat(referrer("a", nil, "m1", "m2"), referrer("b", nil, "m2", "m3"),
		[]client.Object{configMap("shop", "settings", nil)})
	f := newFixture(t, sourceOf{named1("settings"), named1("absent"), named1("a"), named1("b")}, objects...)
	f.reconcile("a", "b")
	f.want("settings", "a-configmap:m1", "a-configmap:m2", "b-configmap:m2", "b-configmap:m3")
	f.want("a", "b-configmap:m2", "b-configmap:m3") // Not by itself.
	attached := f.binding("settings")
	if attached.Spec.Placement != nil || attached.Spec.Resource.Name != "settings" ||
		!slices.Contains(attached.Finalizers, workv1alpha2.Finalizer) ||
		attached.Labels[workv1alpha2.PermanentIDLabel] == "" {
		t.Errorf("binding %+v", attached)
	}
	targets := bindings.Targets(&attached.Spec)
	if len(targets) != 3 || targets[0].Name != "m1" || targets[2].Name != "m3" {
		t.Errorf("targets %v", targets)
	}

	b := f.binding("b")
	b.Spec.PropagateDeps = false
	if err := f.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f.reconcile("b")
	f.want("settings", "a-configmap:m1", "a-configmap:m2")
	if err := f.Delete(t.Context(), f.binding("a")); err != nil {
		t.Fatal(err)
	}
	f.reconcile("a")
	f.want("settings")
}

func TestWhatAppearsLaterIsAttached(t *testing.T) {
	f := newFixture(t, sourceOf{named1("settings")}, referrer("a", nil, "m1")...)
	f.reconcile("a")
	f.want("settings")
	if !slices.Contains(f.watched, configMapKind) {
		t.Errorf("watched %v", f.watched)
	}
	object := &unstructured.Unstructured{}
	object.SetNamespace("shop")
	object.SetName("settings")
	if got := f.controller.index.referrers(configMapKind, object); len(got) != 1 || got[0].Name != "a-configmap" {
		t.Errorf("wakes %v", got)
	}
	if err := f.Create(t.Context(), configMap("shop", "settings", nil)); err != nil {
		t.Fatal(err)
	}
	f.reconcile("a")
	f.want("settings", "a-configmap:m1")
}

func TestSelectors(t *testing.T) {
	selector := configv1alpha1.DependentObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
	}
	objects := append(referrer("a", nil, "m1"), configMap("shop", "one", map[string]string{"app": "shop"}),
		configMap("shop", "two", nil),
		configMap("elsewhere", "three", map[string]string{"app": "shop"}),
		configMap("shop", "skipped", map[string]string{"app": "shop"}))
	f := newFixture(t, sourceOf{selector}, objects...)
	f.reconcile("a")
	f.want("one", "a-configmap:m1")
	f.want("two")
	f.want("skipped")
	object := &unstructured.Unstructured{}
	object.SetNamespace("shop")
	object.SetLabels(map[string]string{"app": "shop"})
	if got := f.controller.index.referrers(configMapKind, object); len(got) != 1 {
		t.Errorf("wakes %v", got)
	}
}

func TestOwnPolicyStaysInCharge(t *testing.T) {
	overwrite := func(s *workv1alpha2.ResourceBindingSpec) { s.ConflictResolution = policyv1alpha1.ConflictOverwrite }
	own := referrer("settings", func(s *workv1alpha2.ResourceBindingSpec) {
		s.PropagateDeps, s.ConflictResolution = false, policyv1alpha1.ConflictAbort
	}, "m9")
	f := newFixture(t, sourceOf{named1("settings")}, append(referrer("a", overwrite, "m1"), own...)...)
	f.reconcile("a")
	f.want("settings", "a-configmap:m1")
	b := f.binding("settings")
	if b.Spec.ConflictResolution != policyv1alpha1.ConflictAbort || len(bindings.Targets(&b.Spec)) != 2 {
		t.Errorf("spec %+v", b.Spec)
	}
}
