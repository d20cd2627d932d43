package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// labelPurpose marks what this package owns beside the objects of machine-controller-manager.
	labelPurpose        = "gardener.cloud/purpose"
	purposeMachineClass = "machineclass"
	// labelName selects the machines of a MachineDeployment.
	labelName = "name"
	// labelPool names the worker pool on MachineDeployments, MachineClasses and Machines.
	labelPool = gardencorev1beta1.LabelWorkerPool

	// keyUserData is where machine drivers look for user data.
	keyUserData = "userData"
)

// Deployment is the machines of one pool in one zone: a MachineDeployment and the MachineClass of its machines.
type Deployment struct {
	// Name of the MachineDeployment: <technical ID>-<pool>-z<number of the zone, from 1>.
	Name string
	// ClassName is that of the MachineClass and of the Secret with its user data. It changes exactly when machines have
	// to be replaced, or updated in place.
	ClassName string
	// Pool is what the machines are for.
	Pool extensionsv1alpha1.WorkerPool
	// Zone of the machines.
	Zone string
	// Minimum and Maximum are this zone's share.
	Minimum, Maximum int32
	// MaxSurge and MaxUnavailable are this zone's share.
	MaxSurge, MaxUnavailable intstr.IntOrString
	// ProviderSpec is what the machine driver gets, as JSON.
	ProviderSpec []byte
}

// SpecFunc gives the provider's specification for machines of a pool in a zone.
type SpecFunc func(pool extensionsv1alpha1.WorkerPool, zone string) (any, error)

// plan spreads the pools over their zones. Pools without zones get one without a name.
func plan(technicalID string, pools []extensionsv1alpha1.WorkerPool, spec SpecFunc) ([]Deployment, error) {
	var deployments []Deployment
	for _, pool := range pools {
		zones := pool.Zones
		if len(zones) == 0 {
			zones = []string{""}
		}
		for index, zone := range zones {
			deployment, err := planZone(technicalID, pool, zone, int32(index), int32(len(zones)), spec)
			if err != nil {
				return nil, err
			}
			deployments = append(deployments, deployment)
		}
	}
	return deployments, nil
}

func planZone(technicalID string, pool extensionsv1alpha1.WorkerPool, zone string, index, zones int32,
	spec SpecFunc) (Deployment, error) {
	value, err := spec(pool, zone)
	if err != nil {
		return Deployment{}, fmt.Errorf("pool %s, zone %q: %w", pool.Name, zone, err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return Deployment{}, fmt.Errorf("pool %s, zone %q: encoding the provider's specification: %w", pool.Name, zone,
			err)
	}
	name := fmt.Sprintf("%s-%s-z%d", technicalID, pool.Name, index+1)
	surge, unavailable := rollingShares(pool, index, zones)
	return Deployment{
		Name:           name,
		ClassName:      name + "-" + classHash(pool, raw),
		Pool:           pool,
		Zone:           zone,
		Minimum:        share(pool.Minimum, index, zones),
		Maximum:        share(pool.Maximum, index, zones),
		MaxSurge:       surge,
		MaxUnavailable: unavailable,
		ProviderSpec:   raw,
	}, nil
}

// share is what falls to one of several zones; the first ones take the remainder.
func share(total, index, zones int32) int32 {
	result := total / zones
	if index < total%zones {
		result++
	}
	return result
}

// rollingShares divides absolute numbers among the zones; percentages hold in each. Machines could not be replaced
// where both shares are 0, so one more is allowed there rather than one less; but of machines that are updated in place
// one less, as there none is to be new.
func rollingShares(pool extensionsv1alpha1.WorkerPool, index, zones int32) (surge, unavailable intstr.IntOrString) {
	surge, unavailable = shareOf(pool.MaxSurge, index, zones), shareOf(pool.MaxUnavailable, index, zones)
	if isZero(surge) && isZero(unavailable) && isInPlace(pool) {
		unavailable = intstr.FromInt32(1)
	} else if isZero(surge) && isZero(unavailable) {
		surge = intstr.FromInt32(1)
	}
	return surge, unavailable
}

func shareOf(value intstr.IntOrString, index, zones int32) intstr.IntOrString {
	if value.Type == intstr.String {
		return value
	}
	return intstr.FromInt32(share(value.IntVal, index, zones))
}

func isZero(value intstr.IntOrString) bool {
	return value.Type == intstr.Int && value.IntVal == 0 ||
		value.Type == intstr.String && strings.Trim(value.StrVal, "0%") == ""
}

// classHash covers what cannot be changed on a machine: the provider's specification, and by the name of the
// node-agent's Secret everything gardenlet counts among that (Kubernetes minor version, image, type, volume, container
// runtime, …). Of a pool that is updated in place it covers what gardenlet counts among that, and nothing else: the
// provider's specification cannot be changed on a machine that stays, and is for new machines only.
func classHash(pool extensionsv1alpha1.WorkerPool, providerSpec []byte) string {
	hash := sha256.New()
	if isInPlace(pool) {
		fmt.Fprint(hash, pool.Name, "\n", pool.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate])
		return hex.EncodeToString(hash.Sum(nil))[:5]
	}
	if pool.NodeAgentSecretName != nil {
		hash.Write([]byte(*pool.NodeAgentSecretName))
	} else {
		fmt.Fprint(hash, pool.MachineType, pool.MachineImage.Name, pool.MachineImage.Version,
			pool.UserDataSecretRef.Name)
	}
	hash.Write(providerSpec)
	return hex.EncodeToString(hash.Sum(nil))[:5]
}

// replicas is how many machines there should be now: what the autoscaler chose, within the limits; none in hibernation.
func (d Deployment) replicas(current *int32, hibernated bool) int32 {
	switch {
	case hibernated:
		return 0
	case current == nil, *current < d.Minimum:
		return d.Minimum
	case *current > d.Maximum:
		return d.Maximum
	}
	return *current
}

// applyClass fills the MachineClass.
func (d Deployment) applyClass(class *machinev1alpha1.MachineClass, worker *extensionsv1alpha1.Worker,
	provider string) {
	setLabel(class, labelPool, d.Pool.Name)
	class.Provider = provider
	class.ProviderSpec = runtime.RawExtension{Raw: d.ProviderSpec}
	class.SecretRef = &corev1.SecretReference{Namespace: worker.Namespace, Name: d.ClassName}
	if worker.Spec.SecretRef.Name != "" {
		class.CredentialsSecretRef = &corev1.SecretReference{
			Namespace: worker.Spec.SecretRef.Namespace, Name: worker.Spec.SecretRef.Name,
		}
	}
	class.NodeTemplate = d.nodeTemplate(worker.Spec.Region)
}

// nodeTemplate is what a node will look like, for the cluster-autoscaler. machine-controller-manager makes no machines
// of a class whose template lacks any of the fields set here; none at all is fine.
func (d Deployment) nodeTemplate(region string) *machinev1alpha1.NodeTemplate {
	if d.Pool.NodeTemplate == nil {
		return nil
	}
	capacity := d.Pool.NodeTemplate.Capacity.DeepCopy()
	if capacity.Cpu().IsZero() || capacity.Memory().IsZero() {
		return nil
	}
	if _, ok := capacity["gpu"]; !ok {
		capacity["gpu"] = resource.MustParse("0")
	}
	zone := d.Zone
	if zone == "" {
		zone = region
	}
	return &machinev1alpha1.NodeTemplate{
		Capacity:        capacity,
		VirtualCapacity: d.Pool.NodeTemplate.VirtualCapacity,
		InstanceType:    d.Pool.MachineType,
		Region:          region,
		Zone:            zone,
		Architecture:    d.Pool.Architecture,
	}
}

// applyDeployment fills the MachineDeployment; the number of machines is set apart from this.
func (d Deployment) applyDeployment(deployment *machinev1alpha1.MachineDeployment, region string) {
	setLabel(deployment, labelPool, d.Pool.Name)
	d.annotateOptions(deployment)
	labels := map[string]string{labelName: d.Name}
	spec := &deployment.Spec
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.MinReadySeconds = 0
	spec.Strategy = d.strategy()
	spec.Template = machinev1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelName: d.Name, labelPool: d.Pool.Name}},
		Spec: machinev1alpha1.MachineSpec{
			Class:                machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: d.ClassName},
			MachineConfiguration: machineConfiguration(d.Pool.MachineControllerManager),
			NodeTemplateSpec: machinev1alpha1.NodeTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: d.Pool.Annotations, Labels: d.nodeLabels(region)},
				Spec:       corev1.NodeSpec{Taints: d.Pool.Taints},
			},
		},
	}
	if settings := d.Pool.MachineControllerManager; settings != nil && settings.AutoPreserveFailedMachineMax != nil {
		spec.AutoPreserveFailedMachineMax = *settings.AutoPreserveFailedMachineMax
	}
}

// annotateOptions writes the pool's own settings of the cluster-autoscaler where that looks for them, and removes those
// that the pool has no longer.
func (d Deployment) annotateOptions(deployment *machinev1alpha1.MachineDeployment) {
	var options extensionsv1alpha1.ClusterAutoscalerOptions
	if d.Pool.ClusterAutoscaler != nil {
		options = *d.Pool.ClusterAutoscaler
	}
	set := func(key string, value *string) {
		if value == nil {
			delete(deployment.Annotations, key)
			return
		}
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, key, *value)
	}
	set(extensionsv1alpha1.ScaleDownUtilizationThresholdAnnotation, options.ScaleDownUtilizationThreshold)
	set(extensionsv1alpha1.ScaleDownGpuUtilizationThresholdAnnotation, options.ScaleDownGpuUtilizationThreshold)
	set(extensionsv1alpha1.ScaleDownUnneededTimeAnnotation, written(options.ScaleDownUnneededTime))
	set(extensionsv1alpha1.ScaleDownUnreadyTimeAnnotation, written(options.ScaleDownUnreadyTime))
	set(extensionsv1alpha1.MaxNodeProvisionTimeAnnotation, written(options.MaxNodeProvisionTime))
}

func written(duration *metav1.Duration) *string {
	if duration == nil {
		return nil
	}
	text := duration.Duration.String()
	return &text
}

// nodeLabels adds where a machine is to the labels of the pool, as cloud controllers would.
func (d Deployment) nodeLabels(region string) map[string]string {
	labels := map[string]string{corev1.LabelInstanceTypeStable: d.Pool.MachineType, corev1.LabelTopologyRegion: region}
	if d.Zone != "" {
		labels[corev1.LabelTopologyZone] = d.Zone
	}
	for key, value := range d.Pool.Labels {
		labels[key] = value
	}
	return labels
}

func machineConfiguration(
	settings *gardencorev1beta1.MachineControllerManagerSettings) *machinev1alpha1.MachineConfiguration {
	if settings == nil {
		return &machinev1alpha1.MachineConfiguration{}
	}
	configuration := &machinev1alpha1.MachineConfiguration{
		MachineDrainTimeout:         settings.MachineDrainTimeout,
		MachineHealthTimeout:        settings.MachineHealthTimeout,
		MachineCreationTimeout:      settings.MachineCreationTimeout,
		MachineInPlaceUpdateTimeout: settings.InPlaceUpdateTimeout,
		MachinePreserveTimeout:      settings.MachinePreserveTimeout,
		DisableHealthTimeout:        settings.DisableHealthTimeout,
		MaxEvictRetries:             settings.MaxEvictRetries,
	}
	if len(settings.NodeConditions) > 0 {
		conditions := strings.Join(settings.NodeConditions, ",")
		configuration.NodeConditions = &conditions
	}
	return configuration
}

// statusOf is what the cluster-autoscaler is told.
func statusOf(deployments []Deployment) []extensionsv1alpha1.MachineDeployment {
	status := make([]extensionsv1alpha1.MachineDeployment, 0, len(deployments))
	for _, deployment := range deployments {
		told := extensionsv1alpha1.MachineDeployment{
			Name: deployment.Name, Minimum: deployment.Minimum, Maximum: deployment.Maximum,
			Priority: deployment.Pool.Priority,
		}
		if settings := deployment.Pool.MachineControllerManager; settings != nil {
			told.AutoPreserveFailedMachineMax = settings.AutoPreserveFailedMachineMax
		}
		status = append(status, told)
	}
	return status
}

func setLabel(object metav1.Object, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}
