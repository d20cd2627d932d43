package v1beta1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultShootFromCloudProfile fills in what a Shoot leaves to its cloud profile: the newest supported versions of
// Kubernetes and of machine images, and architectures. A version that is given in part is completed. What the old Shoot
// (nil on creation) has is kept. It reports what cannot be filled in; what is given but not on offer is left to
// ValidateShootAgainstCloudProfile.
func DefaultShootFromCloudProfile(shoot, old *Shoot, profile *CloudProfileSpec, now time.Time) field.ErrorList {
	spec := field.NewPath("spec")
	if errs := validateCount(len(shoot.Spec.Provider.Workers), MaxWorkers,
		spec.Child("provider", "workers")); len(errs) > 0 {
		return errs
	}
	kept := ""
	if old != nil {
		kept = old.Spec.Kubernetes.Version
	}
	errs := completeVersion(&shoot.Spec.Kubernetes.Version, kept, profile, now, spec.Child("kubernetes", "version"))
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		d := workerDefaulter{
			worker: worker, old: workerNamed(old, worker.Name), profile: profile, now: now,
			path: spec.Child("provider", "workers").Index(i),
		}
		errs = append(errs, d.complete(shoot.Spec.Kubernetes.Version)...)
	}
	return errs
}

// completeVersion completes a version of less than three numbers. The kept version stays when it begins as the given
// one.
func completeVersion(version *string, kept string, profile *CloudProfileSpec, now time.Time,
	path *field.Path) field.ErrorList {
	if isFullVersion(*version) || len(validatePartialVersion(*version, path)) > 0 {
		return nil
	}
	if kept != "" && *version == "" {
		*version = kept
		return nil
	}
	newest, ok := newestSupported(profile.Kubernetes.Versions, *version, now)
	if !ok {
		return field.ErrorList{field.NotSupported(path, *version, usableVersions(profile.Kubernetes.Versions, now))}
	}
	if kept != "" && beginsAs(kept, *version) && compareVersions(kept, newest) > 0 {
		newest = kept
	}
	*version = newest
	return nil
}

func workerNamed(shoot *Shoot, name string) *Worker {
	if shoot == nil {
		return nil
	}
	return find(shoot.Spec.Provider.Workers, func(worker Worker) bool { return worker.Name == name })
}

// workerDefaulter fills in one worker.
// +k8s:openapi-gen=false
type workerDefaulter struct {
	worker, old *Worker
	profile     *CloudProfileSpec
	now         time.Time
	path        *field.Path
}

func (d workerDefaulter) complete(controlPlane string) field.ErrorList {
	var errs field.ErrorList
	machine := d.profile.machineType(d.worker.Machine.Type)
	if d.worker.Machine.Architecture == nil && machine != nil {
		architecture := machine.architectureOf()
		d.worker.Machine.Architecture = &architecture
	}
	kubelet := controlPlane
	if kubernetes := d.worker.Kubernetes; kubernetes != nil && kubernetes.Version != nil {
		kept := ""
		if d.old != nil {
			kept = workerVersion(d.old)
		}
		errs = append(errs, completeVersion(kubernetes.Version, kept, d.profile, d.now,
			d.path.Child("kubernetes", "version"))...)
		kubelet = *kubernetes.Version
	}
	return append(errs, d.completeImage(machine, kubelet)...)
}

func (d workerDefaulter) completeImage(machine *MachineType, kubelet string) field.ErrorList {
	image, path := d.worker.Machine.Image, d.path.Child("machine", "image")
	if image != nil && deref(image.Version) != "" {
		return nil
	}
	if before := d.oldImage(); before != nil && (image == nil || image.Name == before.Name) {
		if image == nil {
			d.worker.Machine.Image = before.DeepCopy()
		} else {
			image.Version = before.Version
		}
		return nil
	}
	for i := range d.profile.MachineImages {
		candidate := &d.profile.MachineImages[i]
		if image != nil && image.Name != candidate.Name {
			continue
		}
		if version, ok := newestSupported(candidate.versionsFor(machine, kubelet), "", d.now); ok {
			if image == nil {
				image = &ShootMachineImage{Name: candidate.Name}
				d.worker.Machine.Image = image
			}
			image.Version = &version
			return nil
		}
	}
	if image == nil {
		return field.ErrorList{
			field.Required(path, fmt.Sprintf("the cloud profile has no supported image for machine type %q and "+
				"kubelet %s", d.worker.Machine.Type, kubelet)),
		}
	}
	return nil
}

func (d workerDefaulter) oldImage() *ShootMachineImage {
	if d.old == nil || d.old.Machine.Type != d.worker.Machine.Type {
		return nil
	}
	return d.old.Machine.Image
}

// ValidateShootAgainstCloudProfile checks that a cloud profile offers what a Shoot asks for. What the old Shoot (nil on
// creation) has stays allowed, also when it has expired or left the profile.
func ValidateShootAgainstCloudProfile(shoot, old *Shoot, profile *CloudProfileSpec, now time.Time) field.ErrorList {
	spec := field.NewPath("spec")
	if errs := validateCount(len(shoot.Spec.Provider.Workers), MaxWorkers,
		spec.Child("provider", "workers")); len(errs) > 0 {
		return errs
	}
	errs := validateSupported(shoot.Spec.Provider.Type, []string{profile.Type}, spec.Child("provider", "type"))
	kept := ""
	if old != nil {
		kept = old.Spec.Kubernetes.Version
	}
	errs = append(errs, validateOfferedVersion(shoot.Spec.Kubernetes.Version, kept, profile.Kubernetes.Versions, now,
		spec.Child("kubernetes", "version"))...)
	region := profile.region(shoot.Spec.Region)
	if region == nil && (old == nil || old.Spec.Region != shoot.Spec.Region) {
		errs = append(errs, field.NotSupported(spec.Child("region"), shoot.Spec.Region,
			namesOf(profile.Regions, func(r Region) string { return r.Name })))
	}
	errs = append(errs, validateOfferedRestrictions(shoot.Spec.AccessRestrictions, region,
		spec.Child("accessRestrictions"))...)
	errs = append(errs, validateZonePinning(shoot, old, profile, spec.Child("controlPlane", "zones"))...)
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		v := workerValidator{
			worker: worker, profile: profile, region: region, now: now,
			path: spec.Child("provider", "workers").Index(i),
		}
		if v.old = workerNamed(old, worker.Name); v.old == nil {
			v.old = &Worker{}
		}
		errs = append(errs, v.validate(shoot.Spec.Kubernetes.Version)...)
	}
	return append(errs, validateNodesTotal(shoot, profile, spec.Child("provider", "workers"))...)
}

func validateOfferedVersion(version, kept string, offered []ExpirableVersion, now time.Time,
	path *field.Path) field.ErrorList {
	if version != "" && version == kept {
		return nil
	}
	return validateSupported(version, usableVersions(offered, now), path)
}

func validateOfferedRestrictions(restrictions []AccessRestrictionWithOptions, region *Region,
	path *field.Path) field.ErrorList {
	if region == nil {
		return nil
	}
	var errs field.ErrorList
	offered := namesOf(region.AccessRestrictions, func(r AccessRestriction) string { return r.Name })
	for i, restriction := range restrictions {
		errs = append(errs, validateSupported(restriction.Name, offered, path.Index(i).Child("name"))...)
	}
	return errs
}

// validateZonePinning lets shoots choose the zones of their control plane where the profile allows it.
func validateZonePinning(shoot, old *Shoot, profile *CloudProfileSpec, path *field.Path) field.ErrorList {
	zones := deref(shoot.Spec.ControlPlane).Zones
	if len(zones) == 0 || deref(deref(profile.ControlPlane).AllowZonePinning) ||
		old != nil && slices.Equal(zones, deref(old.Spec.ControlPlane).Zones) {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(path, "the cloud profile does not let shoots choose zones for their control plane "+
			"(spec.controlPlane.allowZonePinning); leave the field out"),
	}
}

// workerValidator checks one worker. The old worker is empty for a new one.
// +k8s:openapi-gen=false
type workerValidator struct {
	worker, old *Worker
	profile     *CloudProfileSpec
	region      *Region
	now         time.Time
	path        *field.Path
}

func (v workerValidator) validate(controlPlane string) field.ErrorList {
	errs := v.validateMachineType()
	kubelet := controlPlane
	if version := workerVersion(v.worker); version != "" {
		kubelet = version
		errs = append(errs, validateOfferedVersion(version, workerVersion(v.old), v.profile.Kubernetes.Versions, v.now,
			v.path.Child("kubernetes", "version"))...)
	}
	errs = append(errs, v.validateImage(kubelet)...)
	errs = append(errs, v.validateZones()...)
	return append(errs, v.validateVolumes()...)
}

func (v workerValidator) validateMachineType() field.ErrorList {
	machine, path := v.worker.Machine, v.path.Child("machine")
	if machine.Type != v.old.Machine.Type {
		offered := v.profile.machineType(machine.Type)
		if offered == nil || offered.Usable != nil && !*offered.Usable {
			return field.ErrorList{field.NotSupported(path.Child("type"), machine.Type, usableMachineTypes(v.profile))}
		}
	}
	if offered := v.profile.machineType(machine.Type); offered != nil && machine.Architecture != nil {
		return validateSupported(*machine.Architecture, offered.capabilitiesOf()[capabilityArchitecture],
			path.Child("architecture"))
	}
	return nil
}

func usableMachineTypes(profile *CloudProfileSpec) []string {
	var usable []string
	for _, machine := range profile.MachineTypes {
		if machine.Usable == nil || *machine.Usable {
			usable = append(usable, machine.Name)
		}
	}
	return usable
}

func (v workerValidator) validateImage(kubelet string) field.ErrorList {
	image, path := v.worker.Machine.Image, v.path.Child("machine", "image")
	if image == nil {
		return field.ErrorList{field.Required(path, "name a machine image of the cloud profile")}
	}
	if before := v.old.Machine.Image; before != nil && before.Name == image.Name &&
		deref(before.Version) == deref(image.Version) {
		return nil
	}
	offered := v.profile.machineImage(image.Name)
	if offered == nil {
		return field.ErrorList{
			field.NotSupported(path.Child("name"), image.Name,
				namesOf(v.profile.MachineImages, func(i MachineImage) string { return i.Name })),
		}
	}
	fitting := offered.versionsFor(v.profile.machineType(v.worker.Machine.Type), kubelet)
	if errs := validateSupported(deref(image.Version), usableVersions(fitting, v.now),
		path.Child("version")); len(errs) > 0 {
		return errs
	}
	version := find(offered.Versions, func(o MachineImageVersion) bool { return o.Version == *image.Version })
	return v.validateOfferedCRI(version)
}

func (v workerValidator) validateOfferedCRI(image *MachineImageVersion) field.ErrorList {
	cri := v.worker.CRI
	if cri == nil || len(image.CRI) == 0 {
		return nil
	}
	path := v.path.Child("cri")
	offered := find(image.CRI, func(o CRI) bool { return o.Name == cri.Name })
	if offered == nil {
		return field.ErrorList{
			field.NotSupported(path.Child("name"), cri.Name, namesOf(image.CRI, func(o CRI) CRIName { return o.Name })),
		}
	}
	var errs field.ErrorList
	types := namesOf(offered.ContainerRuntimes, func(r ContainerRuntime) string { return r.Type })
	for i, runtime := range cri.ContainerRuntimes {
		errs = append(errs, validateSupported(runtime.Type, types,
			path.Child("containerRuntimes").Index(i).Child("type"))...)
	}
	return errs
}

func (v workerValidator) validateZones() field.ErrorList {
	if v.region == nil {
		return nil
	}
	path := v.path.Child("zones")
	if len(v.region.Zones) > 0 && len(v.worker.Zones) == 0 {
		return field.ErrorList{field.Required(path, "name at least one zone of region "+v.region.Name)}
	}
	var errs field.ErrorList
	for i, name := range v.worker.Zones {
		if slices.Contains(v.old.Zones, name) && v.old.Machine.Type == v.worker.Machine.Type &&
			slices.Equal(volumeTypesOf(v.old), volumeTypesOf(v.worker)) {
			continue
		}
		zone := find(v.region.Zones, func(z AvailabilityZone) bool { return z.Name == name })
		if zone == nil {
			errs = append(errs, field.NotSupported(path.Index(i), name,
				namesOf(v.region.Zones, func(z AvailabilityZone) string { return z.Name })))
			continue
		}
		if slices.Contains(zone.UnavailableMachineTypes, v.worker.Machine.Type) {
			errs = append(errs, field.Invalid(path.Index(i), name,
				fmt.Sprintf("has no machines of type %s; choose another zone or type", v.worker.Machine.Type)))
		}
		for _, volume := range volumeTypesOf(v.worker) {
			if slices.Contains(zone.UnavailableVolumeTypes, volume) {
				errs = append(errs, field.Invalid(path.Index(i), name,
					fmt.Sprintf("has no volumes of type %s; choose another zone or type", volume)))
			}
		}
	}
	return errs
}

// volumeTypesOf returns the types of all volumes of a machine, each once, in order.
func volumeTypesOf(worker *Worker) []string {
	types := []string{deref(deref(worker.Volume).Type)}
	for _, volume := range worker.DataVolumes {
		types = append(types, deref(volume.Type))
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func (v workerValidator) validateVolumes() field.ErrorList {
	var errs field.ErrorList
	if volume := v.worker.Volume; volume != nil {
		before := deref(v.old.Volume)
		path := v.path.Child("volume")
		errs = append(errs, v.validateVolumeType(volume.Type, before.Type, path.Child("type"))...)
		errs = append(errs, v.validateVolumeSize(volume.VolumeSize, before.VolumeSize, v.leastRootSize(),
			path.Child("size"))...)
	}
	for i, volume := range v.worker.DataVolumes {
		before := deref(find(v.old.DataVolumes, func(o DataVolume) bool { return o.Name == volume.Name }))
		path := v.path.Child("dataVolumes").Index(i)
		errs = append(errs, v.validateVolumeType(volume.Type, before.Type, path.Child("type"))...)
		errs = append(errs, v.validateVolumeSize(volume.VolumeSize, before.VolumeSize, v.leastSize(volume.Type),
			path.Child("size"))...)
	}
	return errs
}

// leastSize is the least size of a volume type; nil if it has none.
func (v workerValidator) leastSize(volumeType *string) *resource.Quantity {
	offered := find(v.profile.VolumeTypes, func(o VolumeType) bool { return o.Name == deref(volumeType) })
	return deref(offered).MinSize
}

// leastRootSize is the least size of a root volume: that of its type, or the larger one of the machine type.
func (v workerValidator) leastRootSize() *resource.Quantity {
	least := v.leastSize(v.worker.Volume.Type)
	machine := deref(deref(v.profile.machineType(v.worker.Machine.Type)).Storage).MinSize
	if least == nil || machine != nil && machine.Cmp(*least) > 0 {
		return machine
	}
	return least
}

// validateVolumeSize checks a size that is new. What is no size is reported elsewhere.
func (v workerValidator) validateVolumeSize(size, before string, least *resource.Quantity,
	path *field.Path) field.ErrorList {
	wanted, err := resource.ParseQuantity(size)
	if size == before || least == nil || err != nil || wanted.Cmp(*least) >= 0 {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, size, fmt.Sprintf("must be at least %s, the least size that the cloud profile offers",
			least)),
	}
}

func (v workerValidator) validateVolumeType(name, before *string, path *field.Path) field.ErrorList {
	if name == nil || before != nil && *name == *before {
		return nil
	}
	var usable []string
	for _, offered := range v.profile.VolumeTypes {
		if offered.Usable == nil || *offered.Usable {
			usable = append(usable, offered.Name)
		}
	}
	return validateSupported(*name, usable, path)
}

// validateNodesTotal holds each pool's maximum, and the sum of all minimums, to the profile's limit.
func validateNodesTotal(shoot *Shoot, profile *CloudProfileSpec, path *field.Path) field.ErrorList {
	if profile.Limits == nil || profile.Limits.MaxNodesTotal == nil {
		return nil
	}
	limit := *profile.Limits.MaxNodesTotal
	var errs field.ErrorList
	total := int64(0)
	for i, worker := range shoot.Spec.Provider.Workers {
		total += int64(worker.Minimum)
		if worker.Maximum > limit {
			errs = append(errs, field.Invalid(path.Index(i).Child("maximum"), worker.Maximum,
				fmt.Sprintf("must be at most %d, the limit of the cloud profile", limit)))
		}
	}
	if total > int64(limit) {
		errs = append(errs, field.Invalid(path, total,
			fmt.Sprintf("the minimums of all pools together must be at most %d, the limit of the cloud profile",
				limit)))
	}
	return errs
}
