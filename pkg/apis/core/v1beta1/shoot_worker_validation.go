package v1beta1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxWorkerNameLength is the most characters of a worker pool's name; it is part of the names of machines.
	MaxWorkerNameLength = 15
	// maxKubeletSkew is how many minor versions a kubelet may be older than the API server.
	maxKubeletSkew = 3
	// MaxWorkers is the most worker pools of a shoot.
	MaxWorkers = 200
	// maxZones is the most zones of a pool; no region has nearly as many.
	maxZones = 50
	// maxVolumeSizeLength is more than the characters of any size that can be had.
	maxVolumeSizeLength = 20
	// minWorkerPriority is what the cluster-autoscaler's priority expander begins with.
	minWorkerPriority = -1
)

var (
	volumeSize              = regexp.MustCompile(`^\d+Gi$`)
	machineUpdateStrategies = []MachineUpdateStrategy{AutoRollingUpdate, AutoInPlaceUpdate, ManualInPlaceUpdate}
	taintEffects            = []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
	}
	// reservedNodeKeys are labels and taints that Trellis itself sets on nodes.
	reservedNodeKeys = []string{
		LabelWorkerPool, LabelWorkerKubernetesVersion, LabelWorkerPoolSystemComponents,
		TaintNodeCriticalComponentsNotReady,
	}
)

func validateWorkers(spec *ShootSpec, path *field.Path) field.ErrorList {
	workers := spec.Provider.Workers
	if errs := validateCount(len(workers), MaxWorkers, path); len(errs) > 0 {
		return errs
	}
	errs := validateUnique(workers, func(w Worker) string { return w.Name },
		func(i int) *field.Path { return path.Index(i).Child("name") })
	for i := range workers {
		errs = append(errs, validateWorker(&workers[i], spec.Kubernetes.Version, path.Index(i))...)
	}
	errs = append(errs, validateOneControlPlanePool(workers, path)...)
	return append(errs, validateSystemComponentsFit(workers, path)...)
}

// validateOneControlPlanePool: a self-hosted cluster has one pool for its control plane.
func validateOneControlPlanePool(workers []Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	pools := 0
	for i, worker := range workers {
		if worker.ControlPlane == nil {
			continue
		}
		at := path.Index(i).Child("controlPlane")
		if pools++; pools > 1 {
			errs = append(errs, field.Forbidden(at, "only one pool can run the control plane"))
		}
		if exposure := worker.ControlPlane.Exposure; exposure != nil &&
			(exposure.DNS == nil) == (exposure.Extension == nil) {
			errs = append(errs, field.Invalid(at.Child("exposure"), "",
				"exactly one of dns and extension has to be set"))
		}
	}
	return errs
}

// validateSystemComponentsFit makes sure that what every cluster runs finds a node in each zone of the pool.
func validateSystemComponentsFit(workers []Worker, path *field.Path) field.ErrorList {
	var zonesTooMany field.ErrorList
	for i, worker := range workers {
		if worker.Maximum == 0 || worker.SystemComponents != nil && !worker.SystemComponents.Allow {
			continue
		}
		if int(worker.Maximum) >= len(worker.Zones) {
			return nil
		}
		zonesTooMany = append(zonesTooMany,
			field.Invalid(path.Index(i).Child("maximum"), worker.Maximum,
				fmt.Sprintf("must be at least the number of zones (%d), so that system components find a node in each",
					len(worker.Zones))))
	}
	if len(zonesTooMany) > 0 {
		return zonesTooMany
	}
	return field.ErrorList{
		field.Forbidden(path, "at least one pool needs a maximum above 0 and systemComponents.allow: system "+
			"components have to run somewhere"),
	}
}

func validateWorker(worker *Worker, controlPlaneVersion string, path *field.Path) field.ErrorList {
	errs := validateWorkerName(worker.Name, path.Child("name"))
	errs = append(errs, validateMachine(&worker.Machine, path.Child("machine"))...)
	errs = append(errs, validateScale(worker, path)...)
	errs = append(errs, validateUpdateStrategy(worker, path)...)
	errs = append(errs, validateNodeMetadata(worker, path)...)
	errs = append(errs, validateVolumes(worker, path)...)
	if tooMany := validateCount(len(worker.Zones), maxZones, path.Child("zones")); len(tooMany) > 0 {
		return append(errs, tooMany...)
	}
	errs = append(errs, validateNames(worker.Zones, path.Child("zones"), "name a zone of the region")...)
	errs = append(errs, validateCertificates(worker.CABundle, path.Child("caBundle"))...)
	errs = append(errs, validateSysctls(worker.Sysctls, path.Child("sysctls"))...)
	if worker.CRI != nil {
		errs = append(errs, validateCRI(worker.CRI, path.Child("cri"))...)
	}
	if worker.Kubernetes != nil {
		errs = append(errs, validateWorkerKubernetes(worker.Kubernetes, controlPlaneVersion,
			path.Child("kubernetes"))...)
	}
	errs = append(errs, validateMachineControllerManager(deref(worker.MachineControllerManager),
		path.Child("machineControllerManager"))...)
	return append(errs, validateClusterAutoscalerOptions(worker.ClusterAutoscaler, path.Child("clusterAutoscaler"))...)
}

// validateSysctls refuses what would not stay one line of the machine's configuration.
func validateSysctls(sysctls map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(sysctls) {
		if key == "" || strings.ContainsAny(key, " \t\r\n=") {
			errs = append(errs, field.Invalid(path, key,
				"must be the name of a kernel setting, such as vm.max_map_count"))
		}
		if value := sysctls[key]; value == "" || strings.ContainsAny(value, "\r\n") {
			errs = append(errs, field.Invalid(path.Key(key), value, "must be a value in one line"))
		}
	}
	return errs
}

func validateWorkerName(name string, path *field.Path) field.ErrorList {
	errs := validateLabel(name, path)
	if len(name) > MaxWorkerNameLength {
		errs = append(errs, field.TooLong(path, name, MaxWorkerNameLength))
	}
	return errs
}

func validateMachine(machine *Machine, path *field.Path) field.ErrorList {
	errs := validateRequired(machine.Type, path.Child("type"), "name a machine type of the cloud profile")
	if machine.Image != nil {
		errs = append(errs, validateRequired(machine.Image.Name, path.Child("image", "name"),
			"name a machine image of the cloud profile")...)
	}
	if machine.Architecture != nil {
		errs = append(errs, validateSupported(*machine.Architecture, architectures, path.Child("architecture"))...)
	}
	return errs
}

func validateScale(worker *Worker, path *field.Path) field.ErrorList {
	errs := validateAtLeast(worker.Minimum, 0, path.Child("minimum"))
	if worker.Maximum < worker.Minimum {
		errs = append(errs, field.Invalid(path.Child("maximum"), worker.Maximum,
			fmt.Sprintf("must be at least minimum (%d)", worker.Minimum)))
	}
	return append(errs, validateOptionalAtLeast(worker.Priority, minWorkerPriority, path.Child("priority"))...)
}

func validateUpdateStrategy(worker *Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	surge, unavailable := path.Child("maxSurge"), path.Child("maxUnavailable")
	if worker.UpdateStrategy != nil {
		errs = append(errs, validateSupported(*worker.UpdateStrategy, machineUpdateStrategies,
			path.Child("updateStrategy"))...)
	}
	if deref(worker.UpdateStrategy) == ManualInPlaceUpdate {
		errs = append(errs, validateNotSet(worker.MaxSurge, surge,
			"has no meaning when machines are updated by hand")...)
		return append(errs, validateNotSet(worker.MaxUnavailable, unavailable,
			"has no meaning when machines are updated by hand")...)
	}
	errs = append(errs, validateCountOrPercentage(worker.MaxSurge, surge)...)
	errs = append(errs, validateCountOrPercentage(worker.MaxUnavailable, unavailable)...)
	if value := worker.MaxUnavailable; value != nil {
		for _, message := range notMoreThanAll(*value) {
			errs = append(errs, field.Invalid(unavailable, value.String(), message))
		}
	}
	if isZero(worker.MaxSurge) && isZero(worker.MaxUnavailable) {
		errs = append(errs, field.Invalid(unavailable, worker.MaxUnavailable.String(),
			"must not be 0 when maxSurge is 0: no machine could ever be replaced"))
	}
	return errs
}

func validateCountOrPercentage(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return validateAtLeast(value.IntVal, 0, path)
	}
	var errs field.ErrorList
	for _, message := range validation.IsValidPercent(value.StrVal) {
		errs = append(errs, field.Invalid(path, value.StrVal, message))
	}
	return errs
}

// notMoreThanAll refuses percentages over 100.
func notMoreThanAll(value intstr.IntOrString) []string {
	if value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return nil
	}
	digits := strings.TrimLeft(strings.TrimSuffix(value.StrVal, "%"), "0")
	if len(digits) < 3 || digits == "100" {
		return nil
	}
	return []string{"must be at most 100%"}
}

func isZero(value *intstr.IntOrString) bool {
	if value == nil {
		return false
	}
	return value.Type == intstr.Int && value.IntVal == 0 ||
		value.Type == intstr.String && strings.Trim(value.StrVal, "0") == "%"
}

func validateNodeMetadata(worker *Worker, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(worker.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(worker.Annotations, path.Child("annotations"))...)
	for _, key := range sortedKeys(worker.Labels) {
		errs = append(errs, validateNotReservedKey(key, path.Child("labels").Key(key))...)
	}
	for i, taint := range worker.Taints {
		at := path.Child("taints").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint.Key, at.Child("key"))...)
		errs = append(errs, validateNotReservedKey(taint.Key, at.Child("key"))...)
		errs = append(errs, validateSupported(taint.Effect, taintEffects, at.Child("effect"))...)
		for _, message := range validation.IsValidLabelValue(taint.Value) {
			errs = append(errs, field.Invalid(at.Child("value"), taint.Value, message))
		}
	}
	type keyAndEffect struct {
		key    string
		effect corev1.TaintEffect
	}
	return append(errs, validateUnique(worker.Taints,
		func(t corev1.Taint) keyAndEffect { return keyAndEffect{t.Key, t.Effect} }, path.Child("taints").Index)...)
}

func validateNotReservedKey(key string, path *field.Path) field.ErrorList {
	if !slices.Contains(reservedNodeKeys, key) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "is set by Trellis itself; choose another key")}
}

func validateVolumes(worker *Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if worker.Volume != nil {
		errs = append(errs, validateVolumeSize(worker.Volume.VolumeSize, path.Child("volume", "size"))...)
	}
	data := path.Child("dataVolumes")
	if len(worker.DataVolumes) > 0 && worker.Volume == nil {
		errs = append(errs, field.Required(path.Child("volume"), "data volumes need a root volume beside them"))
	}
	name := func(i int) *field.Path { return data.Index(i).Child("name") }
	errs = append(errs, validateUnique(worker.DataVolumes, func(v DataVolume) string { return v.Name }, name)...)
	for i, volume := range worker.DataVolumes {
		errs = append(errs, validateWorkerName(volume.Name, name(i))...)
		errs = append(errs, validateVolumeSize(volume.VolumeSize, data.Index(i).Child("size"))...)
	}
	if kubelet := worker.KubeletDataVolumeName; kubelet != nil {
		names := namesOf(worker.DataVolumes, func(v DataVolume) string { return v.Name })
		errs = append(errs, validateSupported(*kubelet, names, path.Child("kubeletDataVolumeName"))...)
	}
	return errs
}

func validateVolumeSize(size string, path *field.Path) field.ErrorList {
	if len(size) <= maxVolumeSizeLength && volumeSize.MatchString(size) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, size, "must be a number of Gi, such as 50Gi")}
}

func validateWorkerKubernetes(kubernetes *WorkerKubernetes, controlPlane string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if kubernetes.Kubelet != nil {
		version := deref(kubernetes.Version)
		if version == "" {
			version = controlPlane
		}
		errs = append(errs, validateKubelet(kubernetes.Kubelet, version, path.Child("kubelet"))...)
	}
	if kubernetes.Version == nil {
		return errs
	}
	version := path.Child("version")
	if found := validatePartialVersion(*kubernetes.Version, version); len(found) > 0 {
		return append(errs, found...)
	}
	behind, comparable := minorsBehind(*kubernetes.Version, controlPlane)
	switch {
	case !comparable:
	case behind < 0 || behind == 0 && compareVersions(*kubernetes.Version, controlPlane) > 0:
		errs = append(errs, field.Invalid(version, *kubernetes.Version,
			fmt.Sprintf("must not be newer than the control plane (%s)", controlPlane)))
	case behind > maxKubeletSkew:
		errs = append(errs, field.Invalid(version, *kubernetes.Version,
			fmt.Sprintf("must be at most %d minor versions older than the control plane (%s)", maxKubeletSkew,
				controlPlane)))
	}
	return errs
}

func validateMachineControllerManager(settings MachineControllerManagerSettings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validatePositive(settings.MachineDrainTimeout, path.Child("machineDrainTimeout"))...)
	errs = append(errs, validatePositive(settings.MachineHealthTimeout, path.Child("machineHealthTimeout"))...)
	errs = append(errs, validatePositive(settings.MachineCreationTimeout, path.Child("machineCreationTimeout"))...)
	errs = append(errs, validatePositive(settings.InPlaceUpdateTimeout, path.Child("inPlaceUpdateTimeout"))...)
	errs = append(errs, validatePositive(settings.MachinePreserveTimeout, path.Child("machinePreserveTimeout"))...)
	errs = append(errs, validateOptionalAtLeast(settings.MaxEvictRetries, 0, path.Child("maxEvictRetries"))...)
	errs = append(errs, validateNames(settings.NodeConditions, path.Child("nodeConditions"),
		"name a condition of nodes, such as KernelDeadlock")...)
	return append(errs, validateOptionalAtLeast(settings.AutoPreserveFailedMachineMax, 0,
		path.Child("autoPreserveFailedMachineMax"))...)
}

func validateClusterAutoscalerOptions(options *ClusterAutoscalerOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	errs := validateOptionalBetween(options.ScaleDownUtilizationThreshold, 0, 1,
		path.Child("scaleDownUtilizationThreshold"))
	errs = append(errs, validateOptionalBetween(options.ScaleDownGpuUtilizationThreshold, 0, 1,
		path.Child("scaleDownGpuUtilizationThreshold"))...)
	errs = append(errs, validatePositive(options.ScaleDownUnneededTime, path.Child("scaleDownUnneededTime"))...)
	errs = append(errs, validatePositive(options.ScaleDownUnreadyTime, path.Child("scaleDownUnreadyTime"))...)
	return append(errs, validatePositive(options.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime"))...)
}

// validateWorkersUpdate refuses changes of pools that keep their names.
func validateWorkersUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	before := make(map[string]*Worker, len(old.Provider.Workers))
	for i := range old.Provider.Workers {
		before[old.Provider.Workers[i].Name] = &old.Provider.Workers[i]
	}
	var errs field.ErrorList
	for i := range spec.Provider.Workers {
		worker, at := &spec.Provider.Workers[i], path.Index(i)
		previous := before[worker.Name]
		if previous == nil {
			continue
		}
		errs = append(errs, validateWorkerUpdate(worker, previous, at)...)
		if workerVersion(worker) == "" && workerVersion(previous) == "" {
			continue // follows the control plane
		}
		u := versionUpdate{
			kubeletVersion(worker, spec), kubeletVersion(previous, old), IsUpdatedInPlace(worker),
			at.Child("kubernetes", "version"),
		}
		errs = append(errs, u.validate()...)
	}
	return errs
}

// versionUpdate is a change of the version of a pool's kubelets.
// +k8s:openapi-gen=false
type versionUpdate struct {
	after, before string
	inPlace       bool
	path          *field.Path
}

// validate refuses downgrades; kubelets that are updated in place cannot skip a minor version, new machines can.
func (u versionUpdate) validate() field.ErrorList {
	if u.before == "" || u.after == "" || u.after == u.before {
		return nil
	}
	if isFullVersion(u.after) && compareVersions(u.after, u.before) < 0 {
		return field.ErrorList{field.Invalid(u.path, u.after, "cannot be downgraded; it was "+u.before)}
	}
	if ahead, comparable := minorsBehind(u.before, u.after); u.inPlace && comparable && ahead > 1 {
		return field.ErrorList{
			field.Invalid(u.path, u.after,
				fmt.Sprintf("skips minor versions, which updates in place cannot; update from %s to the next one first",
					u.before)),
		}
	}
	return nil
}

// kubeletVersion returns the version of a pool's kubelets: its own or the control plane's.
func kubeletVersion(worker *Worker, spec *ShootSpec) string {
	if own := workerVersion(worker); own != "" {
		return own
	}
	return spec.Kubernetes.Version
}

func validateWorkerUpdate(worker, old *Worker, path *field.Path) field.ErrorList {
	if IsUpdatedInPlace(worker) != IsUpdatedInPlace(old) {
		return field.ErrorList{
			field.Invalid(path.Child("updateStrategy"), deref(worker.UpdateStrategy),
				"cannot change between rolling and in-place updates; create another pool"),
		}
	}
	if !IsUpdatedInPlace(worker) {
		return nil
	}
	errs := validateImmutable(worker.Machine.Type, old.Machine.Type, path.Child("machine", "type"))
	if worker.Machine.Image != nil && old.Machine.Image != nil {
		errs = append(errs, validateImmutable(worker.Machine.Image.Name, old.Machine.Image.Name,
			path.Child("machine", "image", "name"))...)
		if before, after := deref(old.Machine.Image.Version), deref(worker.Machine.Image.Version); after != before {
			errs = append(errs, field.Invalid(path.Child("machine", "image", "version"), after,
				"cannot change, as no operating system is updated in place; create another pool; it was "+before))
		}
	}
	errs = append(errs, validateImmutable(worker.ProviderConfig, old.ProviderConfig, path.Child("providerConfig"))...)
	errs = append(errs, validateImmutable(worker.CRI, old.CRI, path.Child("cri"))...)
	errs = append(errs, validateImmutable(worker.Volume, old.Volume, path.Child("volume"))...)
	return append(errs, validateImmutable(worker.DataVolumes, old.DataVolumes, path.Child("dataVolumes"))...)
}

// validatePendingInPlaceUpdates refuses further updates of machines that have not had the last one, unless that is
// asked for. Another minor version is refused in any case: kubelets cannot skip one, and the last update may have been
// one as well.
func validatePendingInPlaceUpdates(shoot, old *Shoot, path *field.Path) field.ErrorList {
	pending := deref(deref(old.Status.InPlaceUpdates).PendingWorkerUpdates)
	names := slices.Concat(pending.AutoInPlaceUpdate, pending.ManualInPlaceUpdate)
	if len(names) == 0 {
		return nil
	}
	if slices.Contains(SplitOperations(shoot.Annotations[GardenerOperation]), ShootOperationForceInPlaceUpdate) {
		return validateForcedUpdate(&shoot.Spec, &old.Spec, names, path)
	}
	why := "cannot be changed while pools (" + strings.Join(names, ", ") +
		") wait for in-place updates; annotate with " + GardenerOperation + "=" + ShootOperationForceInPlaceUpdate +
		" to do it all the same"
	var errs field.ErrorList
	kubernetes := path.Child("kubernetes")
	if shoot.Spec.Kubernetes.Version != old.Spec.Kubernetes.Version {
		errs = append(errs, field.Forbidden(kubernetes.Child("version"), why))
	}
	if !apiequality.Semantic.DeepEqual(shoot.Spec.Kubernetes.Kubelet, old.Spec.Kubernetes.Kubelet) {
		errs = append(errs, field.Forbidden(kubernetes.Child("kubelet"), why))
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		previous := workerNamed(old, worker.Name)
		if previous == nil || !slices.Contains(names, worker.Name) {
			continue
		}
		at := path.Child("provider", "workers").Index(i)
		if !apiequality.Semantic.DeepEqual(worker.Machine, previous.Machine) {
			errs = append(errs, field.Forbidden(at.Child("machine"), why))
		}
		if !apiequality.Semantic.DeepEqual(worker.Kubernetes, previous.Kubernetes) {
			errs = append(errs, field.Forbidden(at.Child("kubernetes"), why))
		}
	}
	return errs
}

// validateForcedUpdate refuses what not even an update by force may do with pools that have not had the last one.
func validateForcedUpdate(spec, old *ShootSpec, pending []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		at := path.Child("kubernetes", "version")
		if workerVersion(worker) != "" {
			at = path.Child("provider", "workers").Index(i).Child("kubernetes", "version")
		}
		for j := range old.Provider.Workers {
			previous := &old.Provider.Workers[j]
			if previous.Name != worker.Name || !slices.Contains(pending, worker.Name) {
				continue
			}
			ahead, comparable := minorsBehind(kubeletVersion(previous, old), kubeletVersion(worker, spec))
			if comparable && ahead > 0 {
				errs = append(errs, field.Forbidden(at, fmt.Sprintf("cannot go to another minor version while pool %s "+
					"waits for an in-place update, not even by force: its kubelets would skip one", worker.Name)))
			}
		}
	}
	return errs
}

func workerVersion(worker *Worker) string {
	if worker.Kubernetes == nil {
		return ""
	}
	return deref(worker.Kubernetes.Version)
}
