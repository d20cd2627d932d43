package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerDeployment says how the controllers of an extension are deployed.
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Helm chart that deploys the controllers.
	// +optional
	Helm *HelmControllerDeployment `json:"helm,omitempty" protobuf:"bytes,2,opt,name=helm"`
	// Whether pods get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty" protobuf:"bytes,3,opt,name=injectGardenKubeconfig"`
	// Secrets and ConfigMaps of the garden's namespace that the chart's values may quote, as in
	// {{ .resources.<name>.data.<key> }}.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,opt,name=resources"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerDeploymentList is a list of ControllerDeployment objects.
type ControllerDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []ControllerDeployment `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// HelmControllerDeployment is a Helm chart with values. The chart is given itself, or where to pull it from.
type HelmControllerDeployment struct {
	// The chart: a gzipped tar archive, base64 in JSON.
	// +optional
	RawChart []byte `json:"rawChart,omitempty" protobuf:"bytes,1,opt,name=rawChart"`
	// Values for the chart.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty" protobuf:"bytes,2,opt,name=values"`
	// Where to pull the chart from.
	// +optional
	OCIRepository *OCIRepository `json:"ociRepository,omitempty" protobuf:"bytes,3,opt,name=ociRepository"`
}

// OCIRepository names an artifact in a registry: by ref, or by repository with tag or digest.
type OCIRepository struct {
	// The whole reference, such as registry.example.com/charts/extension:v1.0.0. Excludes repository, tag and digest.
	// +optional
	Ref *string `json:"ref,omitempty" protobuf:"bytes,1,opt,name=ref"`
	// Repository with its registry, such as registry.example.com/charts/extension.
	// +optional
	Repository *string `json:"repository,omitempty" protobuf:"bytes,2,opt,name=repository"`
	// Tag of the artifact.
	// +optional
	Tag *string `json:"tag,omitempty" protobuf:"bytes,3,opt,name=tag"`
	// Digest of the artifact, sha256:<hash>. Is used rather than the tag.
	// +optional
	Digest *string `json:"digest,omitempty" protobuf:"bytes,4,opt,name=digest"`
	// Secret in the garden's namespace with credentials for the registry, of type kubernetes.io/dockerconfigjson.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty" protobuf:"bytes,5,opt,name=pullSecretRef"`
	// Secret in the garden's namespace whose key bundle.crt holds the CAs (PEM) that the registry is verified with.
	// Defaults to the CAs of the system.
	// +optional
	CABundleSecretRef *corev1.LocalObjectReference `json:"caBundleSecretRef,omitempty" protobuf:"bytes,6,opt,name=caBundleSecretRef"`
}

// URL returns the reference of the artifact without a scheme, or "" when nothing is named.
func (o *OCIRepository) URL() string {
	reference := ""
	switch {
	case o.Ref != nil:
		reference = *o.Ref
	case o.Repository == nil:
	case o.Digest != nil:
		reference = *o.Repository + "@" + *o.Digest
	case o.Tag != nil:
		reference = *o.Repository + ":" + *o.Tag
	default:
		reference = *o.Repository
	}
	return strings.TrimPrefix(reference, "oci://")
}
