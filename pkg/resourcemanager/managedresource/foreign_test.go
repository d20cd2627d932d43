package managedresource

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

func TestLabelsAndAnnotationsOfOthers(t *testing.T) {
	const state, theirs = "pv.kubernetes.io/bind-completed", "example.com/theirs"
	ours := []string{
		"example.com/ours", resourcesv1alpha1.DescriptionAnnotation, resourcesv1alpha1.OriginAnnotation,
		resourcesv1alpha1.ManagedBy,
	}
	for name, test := range map[string]struct {
		spec resourcesv1alpha1.ManagedResourceSpec
		// foreignLabel and foreignAnnotation say whether what others set stays.
		foreignLabel, foreignAnnotation bool
	}{
		"stay":           {resourcesv1alpha1.ManagedResourceSpec{}, true, true},
		"labels go":      {resourcesv1alpha1.ManagedResourceSpec{ForceOverwriteLabels: new(true)}, false, true},
		"annotations go": {resourcesv1alpha1.ManagedResourceSpec{ForceOverwriteAnnotations: new(true)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.secret(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","namespace":"default",` +
				`"labels":{"example.com/ours":"1"},"annotations":{"example.com/ours":"1"}}}`)
			s.change(func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Spec.ForceOverwriteLabels = test.spec.ForceOverwriteLabels
				mr.Spec.ForceOverwriteAnnotations = test.spec.ForceOverwriteAnnotations
			})
			s.reconcile()
			object := s.first()
			object.Labels[theirs], object.Annotations[theirs], object.Annotations[state] = "1", "1", "yes"
			if err := s.client.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			s.clock.Step(time.Minute)
			s.reconcile()

			object = s.first()
			if _, stays := object.Labels[theirs]; stays != test.foreignLabel {
				t.Errorf("labels are %v", object.Labels)
			}
			if _, stays := object.Annotations[theirs]; stays != test.foreignAnnotation {
				t.Errorf("annotations are %v", object.Annotations)
			}
			all := maps.Clone(object.Annotations)
			maps.Copy(all, object.Labels)
			for _, key := range append(ours, state) {
				if !slices.Contains(slices.Collect(maps.Keys(all)), key) {
					t.Errorf("%s is gone", key)
				}
			}
		})
	}
}

// change updates the ManagedResource.
func (s *scenario) change(change func(*resourcesv1alpha1.ManagedResource)) {
	s.t.Helper()
	mr := s.get()
	change(mr)
	if err := s.client.Update(s.t.Context(), mr); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) first() *corev1.ConfigMap {
	s.t.Helper()
	object := &corev1.ConfigMap{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: "first"}, object); err != nil {
		s.t.Fatal(err)
	}
	return object
}
