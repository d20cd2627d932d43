package admission

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
)

// Order is the order of all plugins: our defaults come before webhooks, so that webhooks see complete objects.
var Order = []string{
	lifecycle.PluginName,
	ProjectMutatorName,
	ShootMutatorName,
	DeletionConfirmationName,
	ReferenceManagerName,
	ShootValidatorName,
	mutatingadmissionpolicy.PluginName,
	mutatingwebhook.PluginName,
	validatingadmissionpolicy.PluginName,
	validatingwebhook.PluginName,
}

// DefaultOff names plugins that run only when asked for: each costs watches on the garden's kube-apiserver.
var DefaultOff = []string{mutatingadmissionpolicy.PluginName, validatingadmissionpolicy.PluginName}

// Register adds the plugins of this package.
func Register(plugins *admission.Plugins) {
	register := func(name string, plugin func() admission.Interface) {
		plugins.Register(name, func(io.Reader) (admission.Interface, error) { return plugin(), nil })
	}
	register(ProjectMutatorName, func() admission.Interface { return newProjectMutator() })
	register(ShootMutatorName, func() admission.Interface { return newShootMutator() })
	register(DeletionConfirmationName, func() admission.Interface { return newDeletionConfirmation() })
	register(ReferenceManagerName, func() admission.Interface { return newReferenceManager() })
	register(ShootValidatorName, func() admission.Interface { return newShootValidator() })
}
