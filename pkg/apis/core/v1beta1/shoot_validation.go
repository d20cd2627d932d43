package v1beta1

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxShootNamesLength is the most characters that the names of a shoot and of its project may have together, so that
// names of objects in seeds and infrastructures stay short enough.
const MaxShootNamesLength = 21

var (
	shootPurposes = []ShootPurpose{
		ShootPurposeEvaluation, ShootPurposeTesting, ShootPurposeDevelopment, ShootPurposeProduction,
		ShootPurposeInfrastructure,
	}
)

// ValidateShoot checks a Shoot on its own. What it takes from its cloud profile is checked by
// ValidateShootAgainstCloudProfile.
func ValidateShoot(shoot *Shoot) field.ErrorList {
	errs := validateMeta(&shoot.ObjectMeta, true, apivalidation.NameIsDNSLabel)
	errs = append(errs, validateShootName(shoot.Name)...)
	return append(errs, ValidateShootSpec(&shoot.Spec, shoot.Namespace, field.NewPath("spec"))...)
}

// ValidateNewShoot checks a Shoot that is to be created.
func ValidateNewShoot(shoot *Shoot) field.ErrorList {
	errs := append(ValidateShoot(shoot), notOfferedToShoots(&shoot.Spec, field.NewPath("spec"))...)
	errs = append(errs, validateNodesFit(&shoot.Spec, field.NewPath("spec"))...)
	finalizers := field.NewPath("metadata", "finalizers")
	for i, finalizer := range shoot.Finalizers {
		if finalizer == GardenerName || finalizer == FinalizerReferenceProtection {
			errs = append(errs, field.Forbidden(finalizers.Index(i), "is set by controllers only; leave it out"))
		}
	}
	errs = append(errs, validateOperations(shoot, nil)...)
	errs = append(errs, validateSyncPeriod(shoot, nil)...)
	return append(errs, validateForceDeletion(shoot, &Shoot{})...)
}

// ValidateShootUpdate checks a change of a Shoot. The seed can be set when there is none, and is changed through
// the binding subresource, which ValidateShootBindingUpdate checks.
func ValidateShootUpdate(shoot, old *Shoot) field.ErrorList {
	errs := validateShootUpdate(shoot, old)
	if old.Spec.SeedName != nil {
		errs = append(errs, validateSeedNameStays(shoot, old)...)
	}
	return errs
}

// ValidateShootBindingUpdate checks a change through the binding subresource: of the seed. Whether the one that a
// control plane leaves has been lost, admission knows.
func ValidateShootBindingUpdate(shoot, old *Shoot) field.ErrorList {
	errs := validateShootUpdate(shoot, old)
	path := field.NewPath("spec", "seedName")
	switch before := deref(old.Spec.SeedName); {
	case deref(shoot.Spec.SeedName) == "":
		errs = append(errs, field.Required(path, "name the seed that runs the control plane"))
	case before != "" && before != *shoot.Spec.SeedName:
		errs = append(errs, validateMove(old, path)...)
	}
	return errs
}

// validateMove checks that there is something to restore on another seed.
func validateMove(shoot *Shoot, path *field.Path) field.ErrorList {
	isThere := IsRestoring(shoot) || hasBeenCreated(shoot.Status.LastOperation)
	return refuseIf(shoot.Status.TechnicalID == "" || !isThere, path,
		"the cluster was never created, so that there is nothing to restore on another seed",
		"delete the shoot, and create it anew")
}

func validateShootName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	errs := validateNoDoubleDash(name, path)
	if len(name) >= MaxShootNamesLength {
		errs = append(errs, field.Invalid(path, name,
			fmt.Sprintf("must be shorter: name and project's name have at most %d characters together",
				MaxShootNamesLength)))
	}
	return errs
}

func validateShootUpdate(shoot, old *Shoot) field.ErrorList {
	errs := validateMetaUpdate(&shoot.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateOperations(shoot, old)...)
	errs = append(errs, validateSyncPeriod(shoot, old)...)
	errs = append(errs, validateForceDeletion(shoot, old)...)
	if apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		return errs // finalizers and annotations have to stay changeable also when validation has become stricter
	}
	if reason := whySpecIsFrozen(shoot, old); reason != "" {
		return append(errs, field.Forbidden(field.NewPath("spec"), "cannot be changed "+reason))
	}
	errs = append(errs, validateShootSpecUpdate(&shoot.Spec, &old.Spec, field.NewPath("spec"))...)
	errs = append(errs, validateShootStateUpdate(shoot, old, field.NewPath("spec"))...)
	errs = append(errs, validateNodesFitUpdate(&shoot.Spec, &old.Spec, field.NewPath("spec"))...)
	errs = append(errs, NewlyRefused(notOfferedToShoots(&shoot.Spec, field.NewPath("spec")),
		notOfferedToShoots(&old.Spec, field.NewPath("spec")))...)
	return append(errs, ValidateShoot(shoot)...)
}

// validateShootStateUpdate refuses changes that the present state of the cluster does not allow.
func validateShootStateUpdate(shoot, old *Shoot, path *field.Path) field.ErrorList {
	errs := validateHibernationUpdate(shoot, old, path.Child("hibernation"))
	errs = append(errs, validateEncryptionUpdate(shoot, old,
		path.Child("kubernetes", "kubeAPIServer", "encryptionConfig", "resources"))...)
	return append(errs, validatePendingInPlaceUpdates(shoot, old, path)...)
}

func validateSeedNameStays(shoot, old *Shoot) field.ErrorList {
	if deref(shoot.Spec.SeedName) == deref(old.Spec.SeedName) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(field.NewPath("spec", "seedName"), deref(shoot.Spec.SeedName),
			"can only be changed through the subresource shoots/binding; it was "+describe(old.Spec.SeedName)),
	}
}

func whySpecIsFrozen(shoot, old *Shoot) string {
	if shoot.DeletionTimestamp != nil {
		return "while the shoot is being deleted"
	}
	operation := old.Status.LastOperation
	if operation == nil {
		return ""
	}
	if operation.Type == LastOperationTypeMigrate ||
		operation.Type == LastOperationTypeRestore && operation.State != LastOperationStateSucceeded {
		return "while the control plane moves to another seed"
	}
	return ""
}

// ValidateShootSpec checks the specification of a Shoot in a namespace.
func ValidateShootSpec(spec *ShootSpec, namespace string, path *field.Path) field.ErrorList {
	errs := validateCloudProfileReference(spec, path)
	errs = append(errs, validateRequired(spec.Region, path.Child("region"), "name a region of the cloud profile")...)
	errs = append(errs, validateRequired(spec.Provider.Type, path.Child("provider", "type"),
		"name the type of the infrastructure, as in the cloud profile")...)
	errs = append(errs, validatePurpose(spec.Purpose, namespace, path.Child("purpose"))...)
	errs = append(errs, validateDNS(spec, path.Child("dns"))...)
	errs = append(errs, validateExtensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, validateResources(spec.Resources, path.Child("resources"))...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateSeedSelector(spec.SeedSelector, path.Child("seedSelector"))...)
	errs = append(errs, validateHibernation(spec.Hibernation, path.Child("hibernation"))...)
	errs = append(errs, validateMaintenance(spec.Maintenance, path.Child("maintenance"))...)
	errs = append(errs, validateKubernetes(&spec.Kubernetes, path.Child("kubernetes"))...)
	errs = append(errs, validateControlPlane(spec.ControlPlane, path.Child("controlPlane"))...)
	errs = append(errs, validateSystemComponents(spec.SystemComponents, path.Child("systemComponents"))...)
	errs = append(errs, validateMonitoring(spec.Monitoring, path.Child("monitoring"))...)
	var restrictions []string
	for _, restriction := range spec.AccessRestrictions {
		restrictions = append(restrictions, restriction.Name)
	}
	errs = append(errs, validateAccessRestrictions(restrictions, path.Child("accessRestrictions"))...)
	errs = append(errs, validateNetworking(spec, path.Child("networking"))...)
	errs = append(errs, validateAddons(spec, path.Child("addons"))...)
	errs = append(errs, validateReferencedKubeconfigs(spec, path)...)
	errs = append(errs, validateRotationOfGCM(spec, path)...)
	if len(spec.Provider.Workers) == 0 {
		errs = append(errs, validateWorkerless(spec, path)...)
	} else {
		errs = append(errs, validateWithWorkers(spec, path)...)
	}
	return append(errs, validateRemovedFields(spec, path)...)
}

func validateCloudProfileReference(spec *ShootSpec, path *field.Path) field.ErrorList {
	at := path.Child("cloudProfile")
	if spec.CloudProfile == nil {
		if deref(spec.CloudProfileName) == "" {
			return field.ErrorList{
				field.Required(at, "name the cloud profile that says what can be ordered, such as {kind: "+
					"CloudProfile, name: local}"),
			}
		}
		return nil
	}
	kinds := []string{CloudProfileReferenceKindCloudProfile, CloudProfileReferenceKindNamespacedCloudProfile}
	errs := validateSupported(spec.CloudProfile.Kind, kinds, at.Child("kind"))
	return append(errs, validateRequired(spec.CloudProfile.Name, at.Child("name"), "name the cloud profile")...)
}

func validatePurpose(purpose *ShootPurpose, namespace string, path *field.Path) field.ErrorList {
	if purpose == nil {
		return nil
	}
	supported := shootPurposes
	if namespace != GardenNamespace {
		supported = slices.DeleteFunc(slices.Clone(shootPurposes),
			func(p ShootPurpose) bool { return p == ShootPurposeInfrastructure })
	}
	return validateSupported(*purpose, supported, path)
}

// validateWorkerless refuses what needs workers.
func validateWorkerless(spec *ShootSpec, path *field.Path) field.ErrorList {
	kubernetes, networking := path.Child("kubernetes"), path.Child("networking")
	network, manager := deref(spec.Networking), deref(spec.Kubernetes.KubeControllerManager)
	forbidden := []struct {
		path *field.Path
		set  bool
	}{
		{path.Child("addons"), spec.Addons != nil},
		{kubernetes.Child("kubeScheduler"), spec.Kubernetes.KubeScheduler != nil},
		{kubernetes.Child("kubeProxy"), spec.Kubernetes.KubeProxy != nil},
		{kubernetes.Child("kubelet"), spec.Kubernetes.Kubelet != nil},
		{kubernetes.Child("clusterAutoscaler"), spec.Kubernetes.ClusterAutoscaler != nil},
		{kubernetes.Child("verticalPodAutoscaler"), spec.Kubernetes.VerticalPodAutoscaler != nil},
		{kubernetes.Child("kubeControllerManager", "nodeCIDRMaskSize"), manager.NodeCIDRMaskSize != nil},
		{kubernetes.Child("kubeControllerManager", "nodeCIDRMaskSizeIPv6"), manager.NodeCIDRMaskSizeIPv6 != nil},
		{
			kubernetes.Child("kubeControllerManager", "horizontalPodAutoscaler"),
			manager.HorizontalPodAutoscalerConfig != nil,
		},
		{kubernetes.Child("kubeControllerManager", "podEvictionTimeout"), manager.PodEvictionTimeout != nil},
		{kubernetes.Child("kubeControllerManager", "nodeMonitorGracePeriod"), manager.NodeMonitorGracePeriod != nil},
		{networking.Child("type"), network.Type != nil},
		{networking.Child("providerConfig"), network.ProviderConfig != nil},
		{networking.Child("pods"), network.Pods != nil},
		{networking.Child("nodes"), network.Nodes != nil},
		{path.Child("provider", "infrastructureConfig"), spec.Provider.InfrastructureConfig != nil},
		{path.Child("provider", "controlPlaneConfig"), spec.Provider.ControlPlaneConfig != nil},
		{path.Child("provider", "workersSettings"), spec.Provider.WorkersSettings != nil},
		{path.Child("systemComponents"), spec.SystemComponents != nil},
		{
			path.Child("maintenance", "autoUpdate", "machineImageVersion"),
			deref(deref(spec.Maintenance).AutoUpdate).MachineImageVersion != nil,
		},
		{path.Child("secretBindingName"), spec.SecretBindingName != nil},
		{path.Child("credentialsBindingName"), spec.CredentialsBindingName != nil},
	}
	var errs field.ErrorList
	for _, one := range forbidden {
		if one.set {
			errs = append(errs, field.Forbidden(one.path, "has no meaning for a cluster without workers"))
		}
	}
	return errs
}

func validateWithWorkers(spec *ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.SecretBindingName != nil && spec.CredentialsBindingName != nil:
		errs = append(errs, field.Forbidden(path.Child("secretBindingName"),
			"cannot be set together with credentialsBindingName"))
	case deref(spec.SecretBindingName) == "" && deref(spec.CredentialsBindingName) == "":
		errs = append(errs, field.Required(path.Child("credentialsBindingName"),
			"name the CredentialsBinding with the credentials for the infrastructure"))
	}
	return append(errs, validateWorkers(spec, path.Child("provider", "workers"))...)
}

// removedField is a deprecated field with the minor version of Kubernetes with which it went away.
// +k8s:openapi-gen=false
type removedField struct {
	minor       uint64
	path        *field.Path
	set         bool
	replacement string
	// drop empties the field, or moves it to its replacement; nil when only the owner can.
	drop func()
}

// validateRemovedFields refuses deprecated fields from the version of Kubernetes on with which they went away.
func validateRemovedFields(spec *ShootSpec, path *field.Path) field.ErrorList {
	version, err := semver.NewVersion(spec.Kubernetes.Version)
	if err != nil {
		return nil
	}
	var errs field.ErrorList
	for _, one := range append(removedFields(spec, path),
		removedKubernetesFields(&spec.Kubernetes, path.Child("kubernetes"))...) {
		if one.set && version.Major() == 1 && version.Minor() >= one.minor {
			errs = append(errs, field.Forbidden(one.path,
				fmt.Sprintf("was removed with Kubernetes 1.%d: %s", one.minor, one.replacement)))
		}
	}
	return errs
}

func removedFields(spec *ShootSpec, path *field.Path) []removedField {
	removed := []removedField{
		{34, path.Child("secretBindingName"), spec.SecretBindingName != nil, "use credentialsBindingName", nil},
		{
			34, path.Child("cloudProfileName"), spec.CloudProfileName != nil, "use cloudProfile",
			func() { adoptCloudProfile(spec) },
		},
		{
			35, path.Child("addons"), spec.Addons != nil, "install what you need with a tool of your choice",
			func() { spec.Addons = nil },
		},
	}
	if spec.DNS != nil {
		for i := range spec.DNS.Providers {
			provider := &spec.DNS.Providers[i]
			at := path.Child("dns", "providers").Index(i).Child("secretName")
			removed = append(removed, removedField{
				35, at, provider.SecretName != nil, "use credentialsRef", provider.adoptSecret,
			})
		}
	}
	return removed
}

func removedKubernetesFields(kubernetes *Kubernetes, path *field.Path) []removedField {
	apiServer := deref(kubernetes.KubeAPIServer)
	return []removedField{
		{
			33, path.Child("clusterAutoscaler", "maxEmptyBulkDelete"),
			deref(kubernetes.ClusterAutoscaler).MaxEmptyBulkDelete != nil,
			"use maxScaleDownParallelism", func() { adoptParallelism(kubernetes.ClusterAutoscaler) },
		},
		{
			35, path.Child("kubeAPIServer", "enableAnonymousAuthentication"),
			apiServer.EnableAnonymousAuthentication != nil,
			"use structuredAuthentication", func() { kubernetes.KubeAPIServer.EnableAnonymousAuthentication = nil },
		},
		{
			35, path.Child("kubeAPIServer", "watchCacheSizes", "default"),
			deref(apiServer.WatchCacheSizes).Default != nil,
			"kube-apiserver chooses it by itself", func() { kubernetes.KubeAPIServer.WatchCacheSizes.Default = nil },
		},
	}
}

func validateShootSpecUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	errs := validateImmutable(spec.Region, old.Region, path.Child("region"))
	errs = append(errs, validateImmutable(spec.Provider.Type, old.Provider.Type, path.Child("provider", "type"))...)
	errs = append(errs, validateImmutable(spec.ExposureClassName, old.ExposureClassName,
		path.Child("exposureClassName"))...)
	errs = append(errs, validateImmutableOnceSet(spec.SchedulerName, old.SchedulerName, path.Child("schedulerName"))...)
	errs = append(errs, validateNetworkingUpdate(spec.Networking, old.Networking, path.Child("networking"))...)
	errs = append(errs, validateKubernetesUpdate(&spec.Kubernetes, &old.Kubernetes, path.Child("kubernetes"))...)
	errs = append(errs, validateCredentialsUpdate(spec, old, path)...)
	errs = append(errs, validateControlPlaneUpdate(spec, old, path.Child("controlPlane"))...)
	errs = append(errs, validateAvailabilityUpdate(spec, old, path.Child("controlPlane", "highAvailability"))...)
	errs = append(errs, validateWorkersUpdate(spec, old, path.Child("provider", "workers"))...)
	errs = append(errs, validateDNSUpdate(spec, old, path.Child("dns"))...)
	if (len(spec.Provider.Workers) == 0) != (len(old.Provider.Workers) == 0) {
		errs = append(errs, field.Forbidden(path.Child("provider", "workers"),
			"a cluster with workers cannot become one without, nor the other way round; create another cluster"))
	}
	if isSelfHosted(spec) != isSelfHosted(old) {
		errs = append(errs, field.Forbidden(path.Child("provider", "workers"),
			"a control plane cannot move between the cluster itself and a seed; create another cluster"))
	}
	return errs
}

// IsSelfHosted tells whether a Shoot runs its own control plane.
func IsSelfHosted(shoot *Shoot) bool { return isSelfHosted(&shoot.Spec) }

// isSelfHosted tells whether a cluster runs its own control plane.
func isSelfHosted(spec *ShootSpec) bool {
	return slices.ContainsFunc(spec.Provider.Workers, func(worker Worker) bool { return worker.ControlPlane != nil })
}

// validateCredentialsUpdate allows to go from a SecretBinding to a CredentialsBinding, and from one CredentialsBinding
// to another.
func validateCredentialsUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	if old.CredentialsBindingName != nil && spec.CredentialsBindingName == nil {
		return field.ErrorList{
			field.Required(path.Child("credentialsBindingName"),
				"cannot be unset; it was "+describe(old.CredentialsBindingName)),
		}
	}
	if old.SecretBindingName != nil && spec.CredentialsBindingName == nil {
		return validateImmutable(spec.SecretBindingName, old.SecretBindingName, path.Child("secretBindingName"))
	}
	return nil
}

// validateControlPlaneUpdate allows to leave the zones to the seed again; volumes cannot move to others.
func validateControlPlaneUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	zones, before := deref(spec.ControlPlane).Zones, deref(old.ControlPlane).Zones
	if old.SeedName == nil || len(zones) == 0 || slices.Equal(zones, before) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path.Child("zones"), zones,
			fmt.Sprintf("cannot be changed once the cluster has a seed; they were %v", before)),
	}
}

// validateAvailabilityUpdate allows a control plane to grow. Nothing leads back: an etcd is not shrunk, and volumes
// cannot move to other zones.
func validateAvailabilityUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	tolerance, before := FailureToleranceOf(spec), FailureToleranceOf(old)
	if old.SeedName == nil || before == "" || tolerance == before {
		return nil
	}
	if tolerance == "" {
		return field.ErrorList{
			field.Forbidden(path, fmt.Sprintf("cannot be removed once the cluster has a seed; it tolerates the "+
				"failure of a %s: an etcd is not shrunk; create another cluster", before)),
		}
	}
	return field.ErrorList{
		field.Invalid(path.Child("failureTolerance", "type"), tolerance,
			fmt.Sprintf("cannot be changed once the cluster has a seed; it was %q: the volumes of an etcd stay in "+
				"their zones; create another cluster", before)),
	}
}
