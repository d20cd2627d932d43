package controllers

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestManifestsAreOfTheObjectThatTheWorkWasMadeFor(t *testing.T) {
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		result := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		result.SetNamespace(namespace)
		result.SetName(name)
		return result
	}
	namespaced := map[string]string{
		workv1alpha2.NamespaceAnnotation: "shop", workv1alpha2.NameAnnotation: "prize-configmap",
	}
	byHand := map[string]string{workv1alpha2.NamespaceAnnotation: "shop", workv1alpha2.NameAnnotation: "any-name"}
	clusterWide := map[string]string{workv1alpha2.ClusterNameAnnotation: "reader-clusterrole"}
	tests := map[string]struct {
		annotations map[string]string
		manifest    *unstructured.Unstructured
		good        bool
	}{
		"its object":                       {namespaced, object("ConfigMap", "shop", "prize"), true},
		"of a binding with a name":         {byHand, object("ConfigMap", "shop", "prize"), true},
		"a cluster-wide object":            {clusterWide, object("ClusterRole", "", "reader"), true},
		"written by people":                {nil, object("ClusterRoleBinding", "", "any"), true},
		"another kind":                     {namespaced, object("Secret", "shop", "prize"), false},
		"another name":                     {namespaced, object("ConfigMap", "shop", "other"), false},
		"another namespace":                {namespaced, object("ConfigMap", "kube-system", "prize"), false},
		"cluster-wide":                     {namespaced, object("ClusterRoleBinding", "", "prize"), false},
		"a namespace for the cluster-wide": {clusterWide, object("ClusterRole", "shop", "reader"), false},
	}
	for name, tc := range tests {
		work := &workv1alpha1.Work{}
		work.Name, work.Annotations = workName(object("ConfigMap", "shop", "prize")), tc.annotations
		if err := isOf(work, tc.manifest); (err == nil) != tc.good || err != nil && !errors.Is(err, errAnother) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
