package selector

import (
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

func TestBest(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web"}},
	}}
	of := func(change func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
		s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
		if change != nil {
			change(&s)
		}
		return s
	}
	app := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
	}
	tests := map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		namespace string
		want      Rank
	}{
		"kind only":                   {[]policyv1alpha1.ResourceSelector{of(nil)}, "shop", ByKind},
		"policy of another namespace": {[]policyv1alpha1.ResourceSelector{of(nil)}, "other", NoMatch},
		"cluster-wide policy":         {[]policyv1alpha1.ResourceSelector{of(nil)}, "", ByKind},
		"selector of another namespace": {
			[]policyv1alpha1.ResourceSelector{of(func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "other" })},
			"", NoMatch,
		},
		"labels": {
			[]policyv1alpha1.ResourceSelector{
				of(func(s *policyv1alpha1.ResourceSelector) { s.LabelSelector = app("web") }),
			}, "shop", ByLabels,
		},
		"other labels": {
			[]policyv1alpha1.ResourceSelector{
				of(func(s *policyv1alpha1.ResourceSelector) { s.LabelSelector = app("db") }),
			}, "shop", NoMatch,
		},
		"name": {
			[]policyv1alpha1.ResourceSelector{of(func(s *policyv1alpha1.ResourceSelector) { s.Name = "web" })}, "shop",
			ByName,
		},
		"name beats labels": {
			[]policyv1alpha1.ResourceSelector{
				of(func(s *policyv1alpha1.ResourceSelector) { s.Name = "web"; s.LabelSelector = app("db") }),
			}, "shop", ByName,
		},
		"other name": {
			[]policyv1alpha1.ResourceSelector{of(func(s *policyv1alpha1.ResourceSelector) { s.Name = "db" })}, "shop",
			NoMatch,
		},
		"the closest counts": {
			[]policyv1alpha1.ResourceSelector{of(nil), of(func(s *policyv1alpha1.ResourceSelector) { s.Name = "web" })},
			"shop", ByName,
		},
		"other version": {
			[]policyv1alpha1.ResourceSelector{
				of(func(s *policyv1alpha1.ResourceSelector) { s.APIVersion = "apps/v1beta1" }),
			}, "shop", NoMatch,
		},
	}
	for name, tc := range tests {
		if got := Best(tc.selectors, tc.namespace, object); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestSelectorsAreCompiledOnceAndForgottenWithTheirPolicy(t *testing.T) {
	count := func() (n int) {
		compilations.Range(func(any, any) bool { n++; return true })
		return n
	}
	before := count()
	func() {
		selectors := []policyv1alpha1.ResourceSelector{
			{
				APIVersion: "apps/v1", Kind: "Deployment",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		object := &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			},
		}
		for range 3 {
			if Best(selectors, "", object) != ByLabels {
				t.Error("the selector doesn't match")
			}
		}
		if got := count() - before; got != 1 {
			t.Errorf("%d selectors were compiled, want 1", got)
		}
		runtime.KeepAlive(selectors)
	}()
	for range 100 {
		runtime.GC()
		if count() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Error("the compiled selector outlives its policy")
}
