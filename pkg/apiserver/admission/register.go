package admission

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
)

// Order is the order of all plugins. Every plugin that changes objects runs before every plugin that only checks them;
// within each half this order holds. Our defaults come before webhooks, so that webhooks see complete objects, and our
// checks come before webhooks, so that these are only asked about what is well-formed.
var Order = []string{
	// NamespaceLifecycle refuses objects in namespaces that are not there or are being deleted.
	lifecycle.PluginName,

	// What completes objects.
	ProjectMutatorName,             // who created and who owns a project
	ShootMutatorName,               // versions, images, networks, tasks, from cloud profile and seed
	ShootTolerationRestrictionName, // tolerations from the project; checks that others are allowed there
	ShootExposureClassName,         // seed selector and tolerations of the exposure class
	ShootDNSName,                   // domain below the seed's default domain; checks that a domain is used once
	ShootResourceReservationName,   // resources kept back on nodes (off unless asked for)
	BastionName,                    // seed and provider of a bastion's shoot
	ShootQuotaValidatorName,        // expiration from quotas; checks that quotas are kept
	ExtensionLabelsName,            // labels that say which extensions an object uses

	// What checks them.
	DeletionConfirmationName,    // nothing valuable is deleted by a slip of the hand, or by one person alone
	FinalizerRemovalName,        // users leave the garden's finalizers alone
	SeedRestrictionName,         // gardenlets write what belongs to their seed
	ReferenceManagerName,        // what is referred to exists, may be read, and stays
	CustomVerbAuthorizerName,    // parts of objects that not everybody who may change the object may change
	ControllerRegistrationsName, // each kind and type of extension has one primary registration
	ExtensionValidatorName,      // extensions that are used are registered
	ProjectValidatorName,        // a namespace belongs to one project
	SeedValidatorName,           // what shoots on a seed need of it stays
	ManagedSeedName,             // shoots that are seeds
	ShootValidatorName,          // a shoot against project, cloud profile, credentials and seed

	mutatingadmissionpolicy.PluginName,
	mutatingwebhook.PluginName,
	validatingadmissionpolicy.PluginName,
	validatingwebhook.PluginName,

	// ResourceQuota comes last: what another plugin refuses is not counted.
	resourcequota.PluginName,
}

// DefaultOff names plugins that run only when asked for with --enable-admission-plugins: admission policies, since each
// costs watches on the garden's kube-apiserver, and what changes shoots in a way that not every garden wants.
var DefaultOff = []string{
	mutatingadmissionpolicy.PluginName, validatingadmissionpolicy.PluginName, ShootResourceReservationName,
}

// Register adds the plugins of this package, and ResourceQuota.
func Register(plugins *admission.Plugins) {
	resourcequota.Register(plugins)
	for name, plugin := range map[string]func() admission.Interface{
		BastionName:                    func() admission.Interface { return newBastion() },
		ControllerRegistrationsName:    func() admission.Interface { return newControllerRegistrations() },
		CustomVerbAuthorizerName:       func() admission.Interface { return newCustomVerbAuthorizer() },
		DeletionConfirmationName:       func() admission.Interface { return newDeletionConfirmation() },
		ExtensionLabelsName:            func() admission.Interface { return newExtensionLabels() },
		ExtensionValidatorName:         func() admission.Interface { return newExtensionValidator() },
		FinalizerRemovalName:           func() admission.Interface { return newFinalizerRemoval() },
		ManagedSeedName:                func() admission.Interface { return newManagedSeed() },
		ProjectMutatorName:             func() admission.Interface { return newProjectMutator() },
		ProjectValidatorName:           func() admission.Interface { return newProjectValidator() },
		ReferenceManagerName:           func() admission.Interface { return newReferenceManager() },
		SeedRestrictionName:            func() admission.Interface { return newSeedRestriction() },
		SeedValidatorName:              func() admission.Interface { return newSeedValidator() },
		ShootDNSName:                   func() admission.Interface { return newShootDNS() },
		ShootExposureClassName:         func() admission.Interface { return newShootExposureClass() },
		ShootMutatorName:               func() admission.Interface { return newShootMutator() },
		ShootQuotaValidatorName:        func() admission.Interface { return newShootQuotaValidator() },
		ShootTolerationRestrictionName: func() admission.Interface { return newShootTolerationRestriction() },
		ShootValidatorName:             func() admission.Interface { return newShootValidator() },
	} {
		plugins.Register(name, func(io.Reader) (admission.Interface, error) { return plugin(), nil })
	}
	plugins.Register(ShootResourceReservationName, func(config io.Reader) (admission.Interface, error) {
		return newShootResourceReservation(config)
	})
}
