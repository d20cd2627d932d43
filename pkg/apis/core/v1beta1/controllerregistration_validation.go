package v1beta1

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// extensionKind is the only kind of extension object with settings of its own in a ControllerRegistration.
const extensionKind = "Extension"

var (
	extensionKinds = []string{
		"BackupBucket", "BackupEntry", "Bastion", "ContainerRuntime", "ControlPlane", "DNSRecord", extensionKind,
		"Infrastructure",
		"Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker",
	}
	lifecycleStrategies = []ControllerResourceLifecycleStrategy{BeforeKubeAPIServer, AfterKubeAPIServer, AfterWorker}
	deploymentPolicies  = []ControllerDeploymentPolicy{
		ControllerDeploymentPolicyOnDemand, ControllerDeploymentPolicyAlways,
		ControllerDeploymentPolicyAlwaysExceptNoShoots,
	}
	clusterTypes = []ClusterType{ClusterTypeShoot, ClusterTypeSeed}
)

// ValidateControllerRegistration checks a ControllerRegistration on its own.
func ValidateControllerRegistration(registration *ControllerRegistration) field.ErrorList {
	errs := validateMeta(&registration.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	spec, path := &registration.Spec, field.NewPath("spec")
	resources := path.Child("resources")
	errs = append(errs, validateUnique(spec.Resources, keyOf, resources.Index)...)
	for i := range spec.Resources {
		errs = append(errs, validateControllerResource(&spec.Resources[i], resources.Index(i))...)
	}
	if spec.Deployment != nil {
		errs = append(errs, validateRegistrationDeployment(spec, path.Child("deployment"))...)
	}
	return errs
}

// ValidateControllerRegistrationUpdate checks a change of a ControllerRegistration.
func ValidateControllerRegistrationUpdate(registration, old *ControllerRegistration) field.ErrorList {
	errs := validateMetaUpdate(&registration.ObjectMeta, &old.ObjectMeta)
	primary := map[kindAndType]bool{}
	for _, resource := range old.Spec.Resources {
		primary[keyOf(resource)] = isPrimary(resource)
	}
	for i, resource := range registration.Spec.Resources {
		if before, ok := primary[keyOf(resource)]; ok && before != isPrimary(resource) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "resources").Index(i).Child("primary"),
				isPrimary(resource), fmt.Sprintf("cannot be changed; it was %t", before)))
		}
	}
	return append(errs, ValidateControllerRegistration(registration)...)
}

// kindAndType is what tells the resources of a ControllerRegistration apart.
// +k8s:openapi-gen=false
type kindAndType struct{ kind, typ string }

func keyOf(resource ControllerResource) kindAndType { return kindAndType{resource.Kind, resource.Type} }

func isPrimary(resource ControllerResource) bool { return resource.Primary == nil || *resource.Primary }

func validateControllerResource(resource *ControllerResource, path *field.Path) field.ErrorList {
	errs := validateSupported(resource.Kind, extensionKinds, path.Child("kind"))
	errs = append(errs, validateRequired(resource.Type, path.Child("type"),
		"name the type, as Shoots and Seeds will")...)
	errs = append(errs, validateClusterTypes(resource.AutoEnable, path.Child("autoEnable"))...)
	errs = append(errs, validateClusterTypes(resource.ClusterCompatibility, path.Child("clusterCompatibility"))...)
	errs = append(errs, refuseIf(deref(resource.ContinuousEndpointUpdate), path.Child("continuousEndpointUpdate"),
		"the endpoint of a control plane is its DNS name and does not move", "set it to false or leave it out")...)
	errs = append(errs, validatePositive(resource.ReconcileTimeout, path.Child("reconcileTimeout"))...)
	if resource.Kind != extensionKind {
		errs = append(errs, validateNoExtensionSettings(resource, path)...)
	} else {
		errs = append(errs, validateAutoEnable(resource, path.Child("autoEnable"))...)
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		at := path.Child("lifecycle")
		errs = append(errs, validateLifecycleStrategy(lifecycle.Reconcile, at.Child("reconcile"))...)
		errs = append(errs, validateLifecycleStrategy(lifecycle.Delete, at.Child("delete"))...)
		errs = append(errs, validateLifecycleStrategy(lifecycle.Migrate, at.Child("migrate"))...)
	}
	return errs
}

// validateAutoEnable: an extension can only be enabled where it can be used.
func validateAutoEnable(resource *ControllerResource, path *field.Path) field.ErrorList {
	compatible := resource.CompatibleClusters()
	var errs field.ErrorList
	for i, cluster := range resource.AutoEnable {
		if slices.Contains(clusterTypes, cluster) && !slices.Contains(compatible, cluster) {
			errs = append(errs, field.Invalid(path.Index(i), cluster, "must be in clusterCompatibility too"))
		}
	}
	return errs
}

func validateNoExtensionSettings(resource *ControllerResource, path *field.Path) field.ErrorList {
	const why = "only kind " + extensionKind + " has this setting"
	errs := validateNotSet(resource.Lifecycle, path.Child("lifecycle"), why)
	errs = append(errs, validateNotSet(resource.ReconcileTimeout, path.Child("reconcileTimeout"), why)...)
	if len(resource.AutoEnable) > 0 {
		errs = append(errs, field.Forbidden(path.Child("autoEnable"), why))
	}
	if len(resource.ClusterCompatibility) > 0 {
		errs = append(errs, field.Forbidden(path.Child("clusterCompatibility"), why))
	}
	return errs
}

func validateLifecycleStrategy(strategy *ControllerResourceLifecycleStrategy, path *field.Path) field.ErrorList {
	if strategy == nil {
		return nil
	}
	return validateSupported(*strategy, lifecycleStrategies, path)
}

func validateClusterTypes(types []ClusterType, path *field.Path) field.ErrorList {
	errs := validateUnique(types, itself, path.Index)
	for i, one := range types {
		errs = append(errs, validateSupported(one, clusterTypes, path.Index(i))...)
	}
	return errs
}

func validateRegistrationDeployment(spec *ControllerRegistrationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	deployment := spec.Deployment
	if deployment.Policy != nil {
		errs = append(errs, validateSupported(*deployment.Policy, deploymentPolicies, path.Child("policy"))...)
	}
	errs = append(errs, validateSelector(deployment.SeedSelector, path.Child("seedSelector"))...)
	if deployment.SeedSelector != nil && slices.ContainsFunc(spec.Resources, isPrimary) {
		errs = append(errs, field.Forbidden(path.Child("seedSelector"),
			"only possible when primary is false for all resources: every seed needs the primary controller"))
	}
	if len(deployment.DeploymentRefs) > 1 {
		errs = append(errs, field.TooMany(path.Child("deploymentRefs"), len(deployment.DeploymentRefs), 1))
	}
	for i, ref := range deployment.DeploymentRefs {
		errs = append(errs, validateRequired(ref.Name, path.Child("deploymentRefs").Index(i).Child("name"),
			"name the ControllerDeployment")...)
	}
	return errs
}

// ValidateControllerDeployment checks a ControllerDeployment on its own.
func ValidateControllerDeployment(deployment *ControllerDeployment) field.ErrorList {
	errs := validateMeta(&deployment.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	return append(errs, validateRequired(deployment.Type, field.NewPath("type"), "such as helm")...)
}

// ValidateControllerDeploymentUpdate checks a change of a ControllerDeployment.
func ValidateControllerDeploymentUpdate(deployment, old *ControllerDeployment) field.ErrorList {
	errs := validateMetaUpdate(&deployment.ObjectMeta, &old.ObjectMeta)
	return append(errs, ValidateControllerDeployment(deployment)...)
}

// ValidateNewControllerInstallation checks a ControllerInstallation that is to be created.
func ValidateNewControllerInstallation(installation *ControllerInstallation) field.ErrorList {
	return append(ValidateControllerInstallation(installation), selfHostedNotOffered(installation.Spec.ShootRef)...)
}

// ValidateControllerInstallation checks a ControllerInstallation on its own.
func ValidateControllerInstallation(installation *ControllerInstallation) field.ErrorList {
	errs := validateMeta(&installation.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	spec, path := &installation.Spec, field.NewPath("spec")
	errs = append(errs, validateRequired(spec.RegistrationRef.Name, path.Child("registrationRef", "name"),
		"name the ControllerRegistration")...)
	errs = append(errs, validateSeedOrShoot(spec.SeedRef != nil, spec.ShootRef != nil, path, "seedRef")...)
	if spec.SeedRef != nil {
		errs = append(errs, validateRequired(spec.SeedRef.Name, path.Child("seedRef", "name"), "name the Seed")...)
	}
	if spec.ShootRef != nil {
		errs = append(errs, validateRequired(spec.ShootRef.Name, path.Child("shootRef", "name"), "name the Shoot")...)
		errs = append(errs, validateRequired(spec.ShootRef.Namespace, path.Child("shootRef", "namespace"),
			"name the namespace of the Shoot")...)
	}
	return errs
}

// ValidateControllerInstallationUpdate checks a change of a ControllerInstallation.
func ValidateControllerInstallationUpdate(installation, old *ControllerInstallation) field.ErrorList {
	errs := validateMetaUpdate(&installation.ObjectMeta, &old.ObjectMeta)
	path := field.NewPath("spec")
	if installation.DeletionTimestamp != nil {
		return append(errs, validateImmutable(installation.Spec, old.Spec, path)...)
	}
	errs = append(errs, validateImmutable(installation.Spec.RegistrationRef.Name, old.Spec.RegistrationRef.Name,
		path.Child("registrationRef", "name"))...)
	if old.Spec.SeedRef != nil {
		errs = append(errs, validateImmutable(deref(installation.Spec.SeedRef).Name, old.Spec.SeedRef.Name,
			path.Child("seedRef", "name"))...)
	}
	if old.Spec.ShootRef != nil {
		before, after := deref(old.Spec.ShootRef), deref(installation.Spec.ShootRef)
		errs = append(errs, validateImmutable(after.Namespace+"/"+after.Name, before.Namespace+"/"+before.Name,
			path.Child("shootRef"))...)
	}
	return append(errs, ValidateControllerInstallation(installation)...)
}
