package memberapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
)

// resources are what the group version consists of: those of the custom resource definition, and the subresources that
// it lacks.
func resources() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: public,
		APIResources: []metav1.APIResource{
			{
				Name: "clusters", SingularName: "cluster", Kind: "Cluster", Categories: []string{"karmada-io"},
				Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			},
			{Name: "clusters/" + tunnel.Subresource, Kind: "Cluster", Verbs: metav1.Verbs{"create"}},
			{
				Name: "clusters/proxy", Kind: "Cluster",
				Verbs: metav1.Verbs{"create", "delete", "get", "patch", "update"},
			},
			{Name: "clusters/status", Kind: "Cluster", Verbs: metav1.Verbs{"get", "patch", "update"}},
		},
	}
}

// nothing is what the version consists of by which the kube-apiserver tries whether it reaches the server.
func nothing() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: trial.String(),
		APIResources: []metav1.APIResource{},
	}
}
