package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version by which Trellis itself reads and writes the kinds in this package. The
	// fleet's kube-apiserver always serves it by itself.
	GroupVersion = schema.GroupVersion{Group: "cluster.karmada.io", Version: "v1"}
	// KarmadaGroupVersion is the version that people know, with the same fields. The federation process serves it while
	// it runs, with the subresource clusters/proxy.
	KarmadaGroupVersion = schema.GroupVersion{Group: "cluster.karmada.io", Version: "v1alpha1"}
)

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Cluster{}, &ClusterList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
