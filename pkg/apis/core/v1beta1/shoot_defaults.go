package v1beta1

import (
	"fmt"
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultRotationPeriod is how often credentials are rotated automatically.
const DefaultRotationPeriod = 7 * 24 * time.Hour

// SetDefaultsShoot sets what a Shoot has when nothing is said, as far as the Shoot alone tells. What its cloud profile
// tells is set by DefaultShootFromCloudProfile, and ranges of addresses by the seed.
func SetDefaultsShoot(shoot *Shoot) {
	spec := &shoot.Spec
	setDefault(&spec.Purpose, ShootPurposeEvaluation)
	setDefault(&spec.SchedulerName, DefaultSchedulerName)
	if spec.CloudProfile != nil && spec.CloudProfile.Kind == "" {
		spec.CloudProfile.Kind = CloudProfileReferenceKindCloudProfile
	}
	setDefaultsAddons(spec.Addons)
	setDefaultsKubeAPIServer(setBlock(&spec.Kubernetes.KubeAPIServer))
	if spec.Kubernetes.VerticalPodAutoscaler != nil {
		setDefaultsVerticalPodAutoscaler(spec.Kubernetes.VerticalPodAutoscaler)
	}
	if spec.Kubernetes.ClusterAutoscaler != nil {
		setDefaultsClusterAutoscaler(spec.Kubernetes.ClusterAutoscaler)
	}
	networking := setBlock(&spec.Networking)
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	setDefaultsMaintenance(setBlock(&spec.Maintenance), shoot)
	if shoot.Namespace == GardenNamespace {
		tolerate(spec, SeedTaintProtected)
	}
	if !IsWorkerless(shoot) {
		setDefaultsWithWorkers(spec)
	}
}

// setDefaultsWithWorkers sets what only clusters with workers have.
func setDefaultsWithWorkers(spec *ShootSpec) {
	kubernetes := &spec.Kubernetes
	setDefaultsKubelet(setBlock(&kubernetes.Kubelet))
	setDefault(&setBlock(&kubernetes.KubeScheduler).Profile, SchedulingProfileBalanced)
	proxy := setBlock(&kubernetes.KubeProxy)
	setDefault(&proxy.Mode, ProxyModeIPTables)
	setDefault(&proxy.Enabled, true)
	if settings := setBlock(&spec.Provider.WorkersSettings); settings.SSHAccess == nil {
		settings.SSHAccess = &SSHAccess{Enabled: true}
	}
	for i := range spec.Provider.Workers {
		setDefaultsWorker(&spec.Provider.Workers[i])
	}
	manager := setBlock(&kubernetes.KubeControllerManager)
	setDefault(&manager.NodeCIDRMaskSize, nodeCIDRMaskSize(spec))
	setDefault(&manager.NodeMonitorGracePeriod, metav1.Duration{Duration: 40 * time.Second})
	autoscaling := setBlock(&setBlock(&setBlock(&spec.SystemComponents).CoreDNS).Autoscaling)
	if autoscaling.Mode == "" {
		// the published default, horizontal, is not offered
		autoscaling.Mode = CoreDNSAutoscalingModeClusterProportional
	}
}

func tolerate(spec *ShootSpec, taint string) {
	for _, toleration := range spec.Tolerations {
		if toleration.Key == taint {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, Toleration{Key: taint})
}

// nodeCIDRMaskSize is 24, or less when a node may have more pods than such a range has addresses.
func nodeCIDRMaskSize(spec *ShootSpec) int32 {
	if families := spec.Networking.IPFamilies; len(families) > 0 && families[0] == IPFamilyIPv6 {
		return defaultNodeCIDRMaskSizeIPv6
	}
	return min(defaultNodeCIDRMaskSize, maskSizeFor(maxPodsOf(spec)))
}

func setDefaultsAddons(addons *Addons) {
	if addons == nil {
		return
	}
	if dashboard := addons.KubernetesDashboard; dashboard != nil && dashboard.Enabled {
		setDefault(&dashboard.AuthenticationMode, dashboardAuthenticationToken)
	}
	if ingress := addons.NginxIngress; ingress != nil && ingress.Enabled {
		setDefault(&ingress.ExternalTrafficPolicy, "Cluster")
	}
}

func setDefaultsKubeAPIServer(config *KubeAPIServerConfig) {
	requests := setBlock(&config.Requests)
	setDefault(&requests.MaxNonMutatingInflight, 400)
	setDefault(&requests.MaxMutatingInflight, 200)
	setDefault(&config.EventTTL, metav1.Duration{Duration: time.Hour})
	setDefault(&setBlock(&config.Logging).Verbosity, 2)
	setDefault(&config.DefaultNotReadyTolerationSeconds, 300)
	setDefault(&config.DefaultUnreachableTolerationSeconds, 300)
	setDefault(&setBlock(&config.EncryptionConfig).Provider.Type, EncryptionProviderTypeAESCBC)
}

func setDefaultsKubelet(config *KubeletConfig) {
	setDefault(&config.FailSwapOn, true)
	setDefault(&config.ImageGCHighThresholdPercent, 50)
	setDefault(&config.ImageGCLowThresholdPercent, 40)
	setDefault(&config.SerializeImagePulls, true)
	if config.MemorySwap != nil {
		setDefault(&config.MemorySwap.SwapBehavior, LimitedSwap)
	}
}

func setDefaultsClusterAutoscaler(config *ClusterAutoscaler) {
	setDefault(&config.ScaleDownDelayAfterAdd, metav1.Duration{Duration: time.Hour})
	setDefault(&config.ScaleDownDelayAfterDelete, metav1.Duration{})
	setDefault(&config.ScaleDownDelayAfterFailure, metav1.Duration{Duration: 3 * time.Minute})
	setDefault(&config.ScaleDownUnneededTime, metav1.Duration{Duration: 30 * time.Minute})
	setDefault(&config.ScaleDownUtilizationThreshold, 0.5)
	setDefault(&config.ScanInterval, metav1.Duration{Duration: 10 * time.Second})
	setDefault(&config.Expander, ClusterAutoscalerExpanderLeastWaste)
	setDefault(&config.MaxNodeProvisionTime, metav1.Duration{Duration: 20 * time.Minute})
	setDefault(&config.MaxGracefulTerminationSeconds, 600)
	setDefault(&config.NewPodScaleUpDelay, metav1.Duration{})
	setDefault(&config.IgnoreDaemonsetsUtilization, false)
	setDefault(&config.Verbosity, 2)
	if config.MaxEmptyBulkDelete == nil {
		setDefault(&config.MaxScaleDownParallelism, 10)
	} else {
		setDefault(&config.MaxScaleDownParallelism, *config.MaxEmptyBulkDelete)
	}
	setDefault(&config.MaxDrainParallelism, 1)
	setDefault(&config.InitialNodeGroupBackoffDuration, metav1.Duration{Duration: 5 * time.Minute})
	setDefault(&config.MaxNodeGroupBackoffDuration, metav1.Duration{Duration: 30 * time.Minute})
	setDefault(&config.NodeGroupBackoffResetTimeout, metav1.Duration{Duration: 3 * time.Hour})
	setDefault(&config.EmitPerNodeGroupMetrics, false)
	setDefault(&config.MaxBinpackingTime, metav1.Duration{Duration: 5 * time.Minute})
}

func setDefaultsVerticalPodAutoscaler(config *VerticalPodAutoscaler) {
	setDefault(&config.EvictAfterOOMThreshold, metav1.Duration{Duration: 10 * time.Minute})
	setDefault(&config.EvictionRateBurst, 1)
	setDefault(&config.EvictionRateLimit, -1)
	setDefault(&config.EvictionTolerance, 0.5)
	setDefault(&config.RecommendationMarginFraction, 0.15)
	setDefault(&config.UpdaterInterval, metav1.Duration{Duration: time.Minute})
	setDefault(&config.RecommenderInterval, metav1.Duration{Duration: time.Minute})
	setDefault(&config.TargetCPUPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundCPUPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundCPUPercentile, 0.95)
	setDefault(&config.TargetMemoryPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundMemoryPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundMemoryPercentile, 0.95)
	setDefault(&config.CPUHistogramDecayHalfLife, metav1.Duration{Duration: 24 * time.Hour})
	setDefault(&config.MemoryHistogramDecayHalfLife, metav1.Duration{Duration: 24 * time.Hour})
	setDefault(&config.MemoryAggregationInterval, metav1.Duration{Duration: 24 * time.Hour})
	setDefault(&config.MemoryAggregationIntervalCount, 8)
	setDefault(&config.RecommenderUpdateWorkerCount, 10)
}

func setDefaultsMaintenance(maintenance *Maintenance, shoot *Shoot) {
	withWorkers := !IsWorkerless(shoot)
	if maintenance.AutoUpdate == nil {
		maintenance.AutoUpdate = &MaintenanceAutoUpdate{KubernetesVersion: true}
	}
	if withWorkers {
		setDefault(&maintenance.AutoUpdate.MachineImageVersion, true)
	}
	if maintenance.TimeWindow == nil {
		maintenance.TimeWindow = defaultTimeWindow(shoot)
	}
	if withWorkers {
		credentials := setBlock(&setBlock(&maintenance.AutoRotation).Credentials)
		setDefault(&setBlock(&credentials.SSHKeypair).RotationPeriod, metav1.Duration{Duration: DefaultRotationPeriod})
	}
}

// defaultTimeWindow chooses an hour between 22:00 and 06:00 UTC. It depends on the shoot so that not all are maintained
// at once, and only on what does not change, so that the same shoot gets the same hour however often it is decoded.
func defaultTimeWindow(shoot *Shoot) *MaintenanceTimeWindow {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(shoot.Name)) // never fails
	_, _ = hash.Write([]byte(shoot.UID))
	begin := (22 + int(hash.Sum32()%8)) % 24
	return &MaintenanceTimeWindow{
		Begin: fmt.Sprintf("%02d0000+0000", begin), End: fmt.Sprintf("%02d0000+0000", (begin+1)%24),
	}
}

func setDefaultsWorker(worker *Worker) {
	setDefault(&worker.UpdateStrategy, AutoRollingUpdate)
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	if *worker.UpdateStrategy == AutoInPlaceUpdate {
		surge, unavailable = unavailable, surge
	}
	if IsUpdatedInPlace(worker) {
		// What a machine holds is why it is to stay.
		if worker.MachineControllerManager == nil {
			worker.MachineControllerManager = &MachineControllerManagerSettings{}
		}
		setDefault(&worker.MachineControllerManager.DisableHealthTimeout, true)
	}
	if *worker.UpdateStrategy != ManualInPlaceUpdate {
		setDefault(&worker.MaxSurge, surge)
		setDefault(&worker.MaxUnavailable, unavailable)
	}
	if worker.SystemComponents == nil {
		worker.SystemComponents = &WorkerSystemComponents{Allow: true}
	}
	if worker.CRI == nil {
		worker.CRI = &CRI{Name: CRINameContainerD}
	}
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		setDefaultsKubelet(worker.Kubernetes.Kubelet)
	}
}
