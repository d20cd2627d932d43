package registration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// EncryptedResources are the resources of garden-apiserver that hold secrets, or state and configuration of extensions
// that may: whoever sets up a garden has them encrypted in etcd.
func EncryptedResources() []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, name := range []string{
		"controllerdeployments", "controllerregistrations", "internalsecrets", "shootstates",
	} {
		resources = append(resources, gardencorev1beta1.SchemeGroupVersion.WithResource(name))
	}
	return resources
}
