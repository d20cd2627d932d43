package managedresource

import (
	"errors"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}}
  volumeClaimTemplates: [{metadata: {name: data}}]
`

// claims are those of the namespace with their label app; only the first two are of pods of the StatefulSet.
var claims = map[string]string{
	"data-web-0": "web", "data-web-12": "web", "data-web-1": "other", "data-web-x": "web", "data-web-two-0": "web",
	"mine": "web",
}

func TestClaimsOfDeletedStatefulSets(t *testing.T) {
	leaves := func(s *scenario) { s.secret(manifests) }
	deleted := func(s *scenario) {
		if err := s.client.Delete(s.t.Context(), s.get()); err != nil {
			s.t.Fatal(err)
		}
	}
	all := slices.Sorted(maps.Keys(claims))
	others := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return name == "data-web-0" || name == "data-web-12"
	})
	for name, test := range map[string]struct {
		delete bool
		event  func(*scenario)
		want   []string
	}{
		"stay by default":                       {false, leaves, all},
		"go with what leaves the Secret":        {true, leaves, others},
		"go with the deleted ManagedResource":   {true, deleted, others},
		"stay while the StatefulSet is applied": {true, func(*scenario) {}, all},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.secret(statefulSet)
			s.change(func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Spec.DeletePersistentVolumeClaims = new(test.delete)
			})
			s.reconcile()
			s.createClaims()
			test.event(s)
			s.reconcile()
			s.reconcile()
			if got := s.claims(); !slices.Equal(got, test.want) {
				t.Errorf("claims are %v, want %v", got, test.want)
			}
		})
	}
}

// Somebody may still use a claim: it waits for its finalizer, and the StatefulSet for its pods.
func TestClaimsAreDeletedWhileTheStatefulSetWaitsForItsPods(t *testing.T) {
	s := newScenario(t)
	s.secret(statefulSet)
	s.change(func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = new(true) })
	s.reconcile()
	set := &appsv1.StatefulSet{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, set); err != nil {
		t.Fatal(err)
	}
	set.Finalizers = []string{metav1.FinalizerDeleteDependents}
	if err := errors.Join(s.client.Update(t.Context(), set), s.client.Delete(t.Context(), set)); err != nil {
		t.Fatal(err)
	}
	s.createClaims()
	s.secret(manifests)
	s.reconcile()
	if got := s.claims(); slices.Contains(got, "data-web-0") {
		t.Errorf("claims are %v", got)
	}
	if refs := s.get().Status.Resources; !slices.ContainsFunc(refs, func(ref resourcesv1alpha1.ObjectReference) bool {
		return ref.Kind == "StatefulSet"
	}) {
		t.Errorf("the StatefulSet is forgotten before it is gone: %v", refs)
	}
}

func (s *scenario) createClaims() {
	s.t.Helper()
	for name, app := range claims {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": app},
		}}
		if err := s.client.Create(s.t.Context(), claim); err != nil {
			s.t.Fatal(err)
		}
	}
}

// claims returns the names of the claims that are left, sorted.
func (s *scenario) claims() []string {
	s.t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, claim := range list.Items {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	return names
}
