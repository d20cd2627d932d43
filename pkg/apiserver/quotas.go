package apiserver

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/kubernetes"
)

// resourceQuotas completes the admission plugin ResourceQuota: all kinds of the garden are counted, and nothing of them
// but their number.
type resourceQuotas struct {
	// client writes what is used to ResourceQuotas, in the garden's kube-apiserver.
	client kubernetes.Interface
}

// Initialize implements admission.PluginInitializer.
func (r resourceQuotas) Initialize(plugin admission.Interface) {
	quotas, ok := plugin.(interface {
		initializer.WantsQuotaConfiguration
		initializer.WantsExternalKubeClientSet
	})
	if !ok {
		return
	}
	quotas.SetExternalKubeClientSet(r.client)
	// For each kind without an evaluator of its own the plugin makes one that counts objects.
	quotas.SetQuotaConfiguration(generic.NewConfiguration(nil, nil))
}
