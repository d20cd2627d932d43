package v1beta1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// capabilityArchitecture is the capability that every profile with capabilities has to define.
	capabilityArchitecture = "architecture"
	// reservedCapabilityPrefix begins names of capabilities that are not for profiles to define.
	reservedCapabilityPrefix = "gardener"
	// maxConstraintLength and maxConstraintParts bound a version constraint; parsing takes long for longer ones.
	maxConstraintLength = 64
	maxConstraintParts  = 8
	// maxImageVersions is the most versions of all machine images together.
	maxImageVersions = 3000
)

var (
	architectures   = []string{"amd64", "arm64"}
	classifications = []VersionClassification{
		ClassificationUnavailable, ClassificationPreview, ClassificationSupported, ClassificationDeprecated,
		ClassificationExpired,
	}
	updateStrategies = []MachineImageUpdateStrategy{UpdateStrategyPatch, UpdateStrategyMinor, UpdateStrategyMajor}
)

// ValidateCloudProfile checks a CloudProfile on its own.
func ValidateCloudProfile(profile *CloudProfile) field.ErrorList {
	errs := validateMeta(&profile.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	return append(errs, ValidateCloudProfileSpec(&profile.Spec, field.NewPath("spec"))...)
}

// ValidateCloudProfileUpdate checks a change of a CloudProfile. Whether shoots use what was removed is for admission to
// find out.
func ValidateCloudProfileUpdate(profile, old *CloudProfile) field.ErrorList {
	errs := validateMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta)
	spec := field.NewPath("spec")
	errs = append(errs, validateImmutable(profile.Spec.Type, old.Spec.Type, spec.Child("type"))...)
	errs = append(errs, validateLimitsUpdate(profile.Spec.Limits, old.Spec.Limits, spec.Child("limits"))...)
	return append(errs, ValidateCloudProfile(profile)...)
}

func validateLimitsUpdate(limits, old *Limits, path *field.Path) field.ErrorList {
	if old == nil || old.MaxNodesTotal == nil || limits == nil || limits.MaxNodesTotal == nil {
		return nil
	}
	if *limits.MaxNodesTotal >= *old.MaxNodesTotal {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path.Child("maxNodesTotal"), *limits.MaxNodesTotal,
			fmt.Sprintf("cannot be decreased; it was %d", *old.MaxNodesTotal)),
	}
}

// ValidateCloudProfileSpec checks the specification of a CloudProfile, also when it is the outcome of merging.
func ValidateCloudProfileSpec(spec *CloudProfileSpec, path *field.Path) field.ErrorList {
	errs := validateRequired(spec.Type, path.Child("type"), "name the type of the infrastructure")
	errs = append(errs, validateOfferedKubernetes(spec.Kubernetes.Versions, path.Child("kubernetes", "versions"))...)
	errs = append(errs, validateMachineImages(spec.MachineImages, path.Child("machineImages"), true)...)
	errs = append(errs, validateMachineTypes(spec.MachineTypes, path.Child("machineTypes"), true)...)
	errs = append(errs, validateVolumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	errs = append(errs, validateRegions(spec.Regions, path.Child("regions"))...)
	errs = append(errs, validateSeedSelector(spec.SeedSelector, path.Child("seedSelector"))...)
	errs = append(errs, validateLimits(spec.Limits, path.Child("limits"))...)
	errs = append(errs, validateBastion(spec, path.Child("bastion"))...)
	errs = append(errs, validateCertificates(spec.CABundle, path.Child("caBundle"))...)
	errs = append(errs, validateCapabilitiesInUse(spec, path)...)
	return append(errs, validateCapabilityDefinitions(spec.MachineCapabilities, path.Child("machineCapabilities"))...)
}

func validateOfferedKubernetes(versions []ExpirableVersion, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "offer at least one Kubernetes version")}
	}
	errs := validateExpirableVersions(versions, path)
	errs = append(errs, validateNewestStays(versions, path)...)
	return append(errs, validateOneSupportedPerMinor(versions, path)...)
}

func validateExpirableVersions(versions []ExpirableVersion, path *field.Path) field.ErrorList {
	errs := validateUnique(versions, func(v ExpirableVersion) string { return v.Version },
		func(i int) *field.Path { return path.Index(i).Child("version") })
	for i := range versions {
		errs = append(errs, validateExpirableVersion(&versions[i], path.Index(i))...)
	}
	return errs
}

func validateExpirableVersion(version *ExpirableVersion, path *field.Path) field.ErrorList {
	errs := validateVersion(version.Version, path.Child("version"))
	if version.Classification != nil {
		errs = append(errs, validateSupported(*version.Classification, classifications,
			path.Child("classification"))...)
	}
	if len(version.Lifecycle) > 0 && (version.Classification != nil || version.ExpirationDate != nil) {
		errs = append(errs, field.Forbidden(path.Child("lifecycle"),
			"cannot be set together with classification or expirationDate, which it replaces"))
	}
	for i, stage := range version.Lifecycle {
		at := path.Child("lifecycle").Index(i)
		errs = append(errs, validateSupported(stage.Classification, classifications, at.Child("classification"))...)
		if i > 0 && stage.StartTime == nil {
			errs = append(errs, field.Required(at.Child("startTime"), "only the first stage can begin at once"))
		}
		if i > 0 && stage.StartTime != nil && version.Lifecycle[i-1].StartTime != nil &&
			!version.Lifecycle[i-1].StartTime.Before(stage.StartTime) {
			errs = append(errs, field.Invalid(at.Child("startTime"), stage.StartTime,
				"must be later than that of the stage before"))
		}
	}
	return errs
}

// validateNewestStays makes sure that there always is a version to update to.
func validateNewestStays(versions []ExpirableVersion, path *field.Path) field.ErrorList {
	newest := -1
	for i := range versions {
		if newest < 0 || compareVersions(versions[i].Version, versions[newest].Version) > 0 {
			newest = i
		}
	}
	if newest < 0 {
		return nil
	}
	const why = "the newest version cannot expire; add a newer one first"
	if versions[newest].ExpirationDate != nil {
		return field.ErrorList{field.Forbidden(path.Index(newest).Child("expirationDate"), why)}
	}
	expires := func(stage LifecycleStage) bool { return stage.Classification == ClassificationExpired }
	if i := slices.IndexFunc(versions[newest].Lifecycle, expires); i >= 0 {
		return field.ErrorList{field.Forbidden(path.Index(newest).Child("lifecycle").Index(i), why)}
	}
	return nil
}

func validateOneSupportedPerMinor(versions []ExpirableVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	supported := map[string]string{}
	for i := range versions {
		version, err := semver.NewVersion(versions[i].Version)
		if err != nil || deref(versions[i].Classification) != ClassificationSupported {
			continue
		}
		minor := fmt.Sprintf("%d.%d", version.Major(), version.Minor())
		if other := supported[minor]; other != "" {
			errs = append(errs, field.Forbidden(path.Index(i).Child("classification"),
				fmt.Sprintf("%s is supported already; one version per minor can be", other)))
		}
		supported[minor] = versions[i].Version
	}
	return errs
}

func validateMachineImages(images []MachineImage, path *field.Path, required bool) field.ErrorList {
	if required && len(images) == 0 {
		return field.ErrorList{field.Required(path, "offer at least one machine image")}
	}
	versions := 0
	for i := range images {
		versions += len(images[i].Versions)
	}
	if tooMany := validateCount(versions, maxImageVersions, path); len(tooMany) > 0 {
		return tooMany
	}
	errs := validateUnique(images, func(i MachineImage) string { return i.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i := range images {
		image, at := &images[i], path.Index(i)
		errs = append(errs, validateRequired(image.Name, at.Child("name"), "name the image")...)
		if len(image.Versions) == 0 {
			errs = append(errs, field.Required(at.Child("versions"), "offer at least one version of the image"))
		}
		if image.UpdateStrategy != nil {
			errs = append(errs, validateSupported(*image.UpdateStrategy, updateStrategies,
				at.Child("updateStrategy"))...)
		}
		errs = append(errs, validateMachineImageVersions(image.Versions, at.Child("versions"))...)
	}
	return errs
}

func validateMachineImageVersions(versions []MachineImageVersion, path *field.Path) field.ErrorList {
	errs := validateUnique(versions, func(v MachineImageVersion) string { return v.Version },
		func(i int) *field.Path { return path.Index(i).Child("version") })
	for i := range versions {
		version, at := &versions[i], path.Index(i)
		errs = append(errs, validateImageVersion(version, at)...)
		for j, architecture := range version.Architectures {
			errs = append(errs, validateSupported(architecture, architectures, at.Child("architectures").Index(j))...)
		}
		for j := range version.CRI {
			errs = append(errs, validateCRI(&version.CRI[j], at.Child("cri").Index(j))...)
		}
		errs = append(errs, validateVersionConstraint(version.KubeletVersionConstraint,
			at.Child("kubeletVersionConstraint"))...)
		errs = append(errs, validateInPlaceUpdates(version.InPlaceUpdates, at.Child("inPlaceUpdates"))...)
	}
	return errs
}

func validateVersionConstraint(constraint *string, path *field.Path) field.ErrorList {
	if constraint == nil {
		return nil
	}
	if len(*constraint) > maxConstraintLength {
		return field.ErrorList{field.TooLong(path, *constraint, maxConstraintLength)}
	}
	separates := func(r rune) bool { return strings.ContainsRune(" ,|", r) }
	if parts := len(strings.FieldsFunc(*constraint, separates)); parts > maxConstraintParts {
		return field.ErrorList{
			field.Invalid(path, *constraint,
				fmt.Sprintf("must have at most %d versions and operators", maxConstraintParts)),
		}
	}
	if _, err := semver.NewConstraint(*constraint); err != nil {
		return field.ErrorList{field.Invalid(path, *constraint, `must be a constraint such as ">= 1.34"`)}
	}
	return nil
}

func validateInPlaceUpdates(updates *InPlaceUpdates, path *field.Path) field.ErrorList {
	if updates == nil || updates.MinVersionForUpdate == nil {
		return nil
	}
	if _, err := semver.NewVersion(*updates.MinVersionForUpdate); err != nil {
		return field.ErrorList{
			field.Invalid(path.Child("minVersionForUpdate"), *updates.MinVersionForUpdate,
				"must be a semantic version such as 12.5.0"),
		}
	}
	return nil
}

// validateImageVersion checks the life of an image version. Versions of images are less strict than those of
// Kubernetes: images number themselves as they like, as long as versions can be compared.
func validateImageVersion(version *MachineImageVersion, path *field.Path) field.ErrorList {
	life := version.ExpirableVersion
	var errs field.ErrorList
	if _, err := semver.NewVersion(life.Version); err != nil {
		errs = append(errs, field.Invalid(path.Child("version"), life.Version,
			"must be a semantic version such as 12.5.0"))
	}
	life.Version = "0.0.0" // checked above
	return append(errs, validateExpirableVersion(&life, path)...)
}

func validateCRI(cri *CRI, path *field.Path) field.ErrorList {
	errs := validateSupported(cri.Name, []CRIName{CRINameContainerD}, path.Child("name"))
	at := func(i int) *field.Path { return path.Child("containerRuntimes").Index(i).Child("type") }
	errs = append(errs, validateUnique(cri.ContainerRuntimes, func(r ContainerRuntime) string { return r.Type }, at)...)
	for i, runtime := range cri.ContainerRuntimes {
		errs = append(errs, validateRequired(runtime.Type, at(i), "name the type of the container runtime")...)
	}
	return errs
}

func validateMachineTypes(types []MachineType, path *field.Path, required bool) field.ErrorList {
	if required && len(types) == 0 {
		return field.ErrorList{field.Required(path, "offer at least one machine type")}
	}
	errs := validateUnique(types, func(t MachineType) string { return t.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i := range types {
		errs = append(errs, validateMachineType(&types[i], path.Index(i))...)
	}
	return errs
}

func validateMachineType(machine *MachineType, path *field.Path) field.ErrorList {
	errs := validateRequired(machine.Name, path.Child("name"), "name the machine type")
	errs = append(errs, validateNotNegative(machine.CPU, path.Child("cpu"))...)
	errs = append(errs, validateNotNegative(machine.GPU, path.Child("gpu"))...)
	errs = append(errs, validateNotNegative(machine.Memory, path.Child("memory"))...)
	if machine.Architecture != nil {
		errs = append(errs, validateSupported(*machine.Architecture, architectures, path.Child("architecture"))...)
	}
	if settings := machine.MachineControllerManager; settings != nil {
		errs = append(errs, validatePositive(settings.MachineCreationTimeout,
			path.Child("machineControllerManager", "machineCreationTimeout"))...)
	}
	if storage := machine.Storage; storage != nil {
		at := path.Child("storage")
		errs = append(errs, validateOptionalQuantity(storage.StorageSize, at.Child("size"))...)
		errs = append(errs, validateOptionalQuantity(storage.MinSize, at.Child("minSize"))...)
		errs = append(errs, validateRequired(storage.Class, at.Child("class"), "such as standard or premium")...)
		errs = append(errs, validateRequired(storage.Type, at.Child("type"), "name the type of the storage")...)
		if (storage.StorageSize == nil) == (storage.MinSize == nil) {
			errs = append(errs, field.Invalid(at.Child("size"), describeQuantity(storage),
				"exactly one of size and minSize has to be set"))
		}
	}
	return errs
}

func describeQuantity(storage *MachineTypeStorage) string {
	if storage.StorageSize == nil {
		return ""
	}
	return storage.StorageSize.String()
}

func validateVolumeTypes(types []VolumeType, path *field.Path) field.ErrorList {
	errs := validateUnique(types, func(t VolumeType) string { return t.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i := range types {
		errs = append(errs, validateRequired(types[i].Name, path.Index(i).Child("name"), "name the volume type")...)
		errs = append(errs, validateRequired(types[i].Class, path.Index(i).Child("class"),
			"such as standard or premium")...)
		errs = append(errs, validateOptionalQuantity(types[i].MinSize, path.Index(i).Child("minSize"))...)
	}
	return errs
}

func validateRegions(regions []Region, path *field.Path) field.ErrorList {
	if len(regions) == 0 {
		return field.ErrorList{field.Required(path, "offer at least one region")}
	}
	errs := validateUnique(regions, func(r Region) string { return r.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i := range regions {
		region, at := &regions[i], path.Index(i)
		errs = append(errs, validateRequired(region.Name, at.Child("name"), "name the region")...)
		zones := func(j int) *field.Path { return at.Child("zones").Index(j).Child("name") }
		errs = append(errs, validateUnique(region.Zones, func(z AvailabilityZone) string { return z.Name }, zones)...)
		for j, zone := range region.Zones {
			errs = append(errs, validateRequired(zone.Name, zones(j), "name the zone")...)
			errs = append(errs, validateUniqueStrings(zone.UnavailableMachineTypes,
				at.Child("zones").Index(j).Child("unavailableMachineTypes"))...)
			errs = append(errs, validateUniqueStrings(zone.UnavailableVolumeTypes,
				at.Child("zones").Index(j).Child("unavailableVolumeTypes"))...)
		}
		errs = append(errs, metav1validation.ValidateLabels(region.Labels, at.Child("labels"))...)
		var restrictions []string
		for _, restriction := range region.AccessRestrictions {
			restrictions = append(restrictions, restriction.Name)
		}
		errs = append(errs, validateAccessRestrictions(restrictions, at.Child("accessRestrictions"))...)
	}
	return errs
}

func validateLimits(limits *Limits, path *field.Path) field.ErrorList {
	if limits == nil {
		return nil
	}
	return validateOptionalAtLeast(limits.MaxNodesTotal, 1, path.Child("maxNodesTotal"))
}

func validateBastion(spec *CloudProfileSpec, path *field.Path) field.ErrorList {
	if spec.Bastion == nil {
		return nil
	}
	if spec.Bastion.MachineImage == nil && spec.Bastion.MachineType == nil {
		return field.ErrorList{field.Required(path, "name a machineImage or a machineType, or leave bastion out")}
	}
	errs := validateBastionImage(spec, path.Child("machineImage"))
	if machine := spec.Bastion.MachineType; machine != nil && spec.machineType(machine.Name) == nil {
		errs = append(errs, field.NotSupported(path.Child("machineType", "name"), machine.Name,
			namesOf(spec.MachineTypes, func(t MachineType) string { return t.Name })))
	}
	return errs
}

func validateBastionImage(spec *CloudProfileSpec, path *field.Path) field.ErrorList {
	wanted := spec.Bastion.MachineImage
	if wanted == nil {
		return nil
	}
	image := spec.machineImage(wanted.Name)
	if image == nil {
		return field.ErrorList{
			field.NotSupported(path.Child("name"), wanted.Name,
				namesOf(spec.MachineImages, func(i MachineImage) string { return i.Name })),
		}
	}
	return validateOptionalSupported(wanted.Version,
		namesOf(image.Versions, func(v MachineImageVersion) string { return v.Version }), path.Child("version"))
}

// validateCapabilitiesInUse checks that machine types and images have only capabilities that the profile defines.
func validateCapabilitiesInUse(spec *CloudProfileSpec, path *field.Path) field.ErrorList {
	defined := make(map[string]sets.Set[string], len(spec.MachineCapabilities))
	for _, definition := range spec.MachineCapabilities {
		defined[definition.Name] = sets.New(definition.Values...)
	}
	var errs field.ErrorList
	for i, machine := range spec.MachineTypes {
		errs = append(errs, validateCapabilities(machine.Capabilities, defined,
			path.Child("machineTypes").Index(i).Child("capabilities"))...)
	}
	for i, image := range spec.MachineImages {
		for j, version := range image.Versions {
			at := path.Child("machineImages").Index(i).Child("versions").Index(j).Child("capabilityFlavors")
			for k, flavor := range version.CapabilityFlavors {
				errs = append(errs, validateCapabilities(flavor.Capabilities, defined, at.Index(k))...)
			}
		}
	}
	return errs
}

func validateCapabilities(capabilities Capabilities, defined map[string]sets.Set[string],
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(capabilities) {
		values, ok := defined[name]
		if !ok {
			errs = append(errs, field.Invalid(path.Key(name), name, "must be defined in spec.machineCapabilities"))
			continue
		}
		for i, value := range capabilities[name] {
			if !values.Has(value) {
				errs = append(errs, field.Invalid(path.Key(name).Index(i), value,
					"must be one of the values that spec.machineCapabilities defines"))
			}
		}
	}
	return errs
}

func validateCapabilityDefinitions(definitions []CapabilityDefinition, path *field.Path) field.ErrorList {
	if len(definitions) == 0 {
		return nil
	}
	errs := validateUnique(definitions, func(d CapabilityDefinition) string { return d.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	if !slices.ContainsFunc(definitions,
		func(d CapabilityDefinition) bool { return d.Name == capabilityArchitecture }) {
		errs = append(errs, field.Required(path, "capability "+capabilityArchitecture+" has to be defined"))
	}
	for i, definition := range definitions {
		errs = append(errs, validateCapabilityDefinition(definition, path.Index(i))...)
	}
	return errs
}

func validateCapabilityDefinition(definition CapabilityDefinition, path *field.Path) field.ErrorList {
	errs := validateRequired(definition.Name, path.Child("name"), "name the capability")
	if strings.HasPrefix(definition.Name, reservedCapabilityPrefix) {
		errs = append(errs, field.Invalid(path.Child("name"), definition.Name,
			"must not begin with "+reservedCapabilityPrefix+", which is reserved"))
	}
	if len(definition.Values) == 0 {
		errs = append(errs, field.Required(path.Child("values"), "give at least one value"))
	}
	errs = append(errs, validateNames(definition.Values, path.Child("values"), "give a value")...)
	if definition.Name == capabilityArchitecture {
		for i, value := range definition.Values {
			errs = append(errs, validateSupported(value, architectures, path.Child("values").Index(i))...)
		}
	}
	return errs
}

func namesOf[T any, N ~string](items []T, name func(T) N) []N {
	names := make([]N, 0, len(items))
	for _, item := range items {
		names = append(names, name(item))
	}
	return names
}

// compareVersions compares versions by precedence; what is no version comes before all.
func compareVersions(a, b string) int {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	switch {
	case errA != nil && errB != nil:
		return 0
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return va.Compare(vb)
}
