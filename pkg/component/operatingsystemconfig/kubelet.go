package operatingsystemconfig

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// containerdEndpoint is containerd's socket.
const containerdEndpoint = "unix:///run/containerd/containerd.sock"

// DiskKeptFreePercent is how much of a machine's disk is kept free: with less, its kubelet evicts pods.
const DiskKeptFreePercent = 5

// kubeletConfig renders the kubelet's configuration file.
func kubeletConfig(v Values) ([]byte, error) {
	config := baseKubeletConfig(v)
	if v.Kubelet != nil {
		applyUserSettings(config, v.Kubelet)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	// The type writes its logging options even if none is set.
	delete(fields, "logging")
	dropZeroes(fields)
	return yaml.Marshal(fields)
}

// baseKubeletConfig is what every pool has.
func baseKubeletConfig(v Values) *kubeletconfigv1beta1.KubeletConfiguration {
	disk := fmt.Sprintf("%d%%", DiskKeptFreePercent)
	config := &kubeletconfigv1beta1.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: kubeletconfigv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration",
		},
		Authentication: kubeletconfigv1beta1.KubeletAuthentication{
			Anonymous: kubeletconfigv1beta1.KubeletAnonymousAuthentication{Enabled: new(false)},
			Webhook: kubeletconfigv1beta1.KubeletWebhookAuthentication{
				Enabled: new(true), CacheTTL: metav1.Duration{Duration: 2 * time.Minute},
			},
			X509: kubeletconfigv1beta1.KubeletX509Authentication{ClientCAFile: PathKubeletCA},
		},
		Authorization: kubeletconfigv1beta1.KubeletAuthorization{
			Mode: kubeletconfigv1beta1.KubeletAuthorizationModeWebhook,
		},
		// Certificates come from the cluster: the client's with the bootstrap token, the server's approved by
		// resource-manager.
		RotateCertificates:            true,
		ServerTLSBootstrap:            true,
		FailCgroupV1:                  new(false),
		LocalStorageCapacityIsolation: new(false),
		ContainerRuntimeEndpoint:      containerdEndpoint,
		ClusterDNS:                    v.ClusterDNS,
		ClusterDomain:                 v.ClusterDomain,
		MaxPods:                       110,
		FailSwapOn:                    new(true),
		SerializeImagePulls:           new(true),
		ImageGCHighThresholdPercent:   new(int32(50)),
		ImageGCLowThresholdPercent:    new(int32(40)),
		EvictionHard: map[string]string{
			"memory.available": "100Mi", "nodefs.available": disk, "nodefs.inodesFree": disk, "imagefs.available": disk,
			"imagefs.inodesFree": disk,
		},
		EvictionPressureTransitionPeriod: metav1.Duration{Duration: 4 * time.Minute},
		EvictionMaxPodGracePeriod:        90,
		KubeReserved:                     map[string]string{"cpu": "80m", "memory": "1Gi", "pid": "20k"},
		VolumePluginDir:                  "/var/lib/kubelet/volumeplugins",
		StreamingConnectionIdleTimeout:   metav1.Duration{Duration: 5 * time.Minute},
		RegisterWithTaints:               v.Taints,
	}
	return config
}

// applyUserSettings overlays spec.kubernetes.kubelet.
func applyUserSettings(config *kubeletconfigv1beta1.KubeletConfiguration, user *gardencorev1beta1.KubeletConfig) {
	config.FeatureGates = user.FeatureGates
	set(&config.CPUCFSQuota, user.CPUCFSQuota)
	set(&config.FailSwapOn, user.FailSwapOn)
	set(&config.ImageGCHighThresholdPercent, user.ImageGCHighThresholdPercent)
	set(&config.ImageGCLowThresholdPercent, user.ImageGCLowThresholdPercent)
	set(&config.SerializeImagePulls, user.SerializeImagePulls)
	set(&config.MaxParallelImagePulls, user.MaxParallelImagePulls)
	set(&config.RegistryPullQPS, user.RegistryPullQPS)
	set(&config.SeccompDefault, user.SeccompDefault)
	set(&config.ContainerLogMaxFiles, user.ContainerLogMaxFiles)
	set(&config.PodPidsLimit, user.PodPIDsLimit)
	set(&config.SingleProcessOOMKill, user.SingleProcessOOMKill)
	value(&config.MaxPods, user.MaxPods)
	value(&config.RegistryBurst, user.RegistryBurst)
	value(&config.CPUManagerPolicy, user.CPUManagerPolicy)
	value(&config.ProtectKernelDefaults, user.ProtectKernelDefaults)
	value(&config.EvictionMaxPodGracePeriod, user.EvictionMaxPodGracePeriod)
	value(&config.EvictionPressureTransitionPeriod, user.EvictionPressureTransitionPeriod)
	value(&config.StreamingConnectionIdleTimeout, user.StreamingConnectionIdleTimeout)
	value(&config.ImageMinimumGCAge, user.ImageMinimumGCAge)
	value(&config.ImageMaximumGCAge, user.ImageMaximumGCAge)
	if policy := user.ImagePullCredentialsVerificationPolicy; policy != nil {
		config.ImagePullCredentialsVerificationPolicy =
			kubeletconfigv1beta1.ImagePullCredentialsVerificationPolicy(*policy)
	}
	config.PreloadedImagesVerificationAllowlist = user.PreloadedImagesVerificationAllowlist
	if user.ContainerLogMaxSize != nil {
		config.ContainerLogMaxSize = user.ContainerLogMaxSize.String()
	}
	if user.MemorySwap != nil && user.MemorySwap.SwapBehavior != nil {
		config.MemorySwap.SwapBehavior = string(*user.MemorySwap.SwapBehavior)
	}
	overlayEviction(config, user)
	overlayReserved(config.KubeReserved, user.KubeReserved)
}

// overlayEviction overlays the thresholds.
func overlayEviction(config *kubeletconfigv1beta1.KubeletConfiguration, user *gardencorev1beta1.KubeletConfig) {
	thresholds(config.EvictionHard, user.EvictionHard)
	if user.EvictionSoft != nil {
		config.EvictionSoft = map[string]string{}
		thresholds(config.EvictionSoft, user.EvictionSoft)
	}
	if grace := user.EvictionSoftGracePeriod; grace != nil {
		config.EvictionSoftGracePeriod = map[string]string{}
		for signal, period := range map[string]*metav1.Duration{
			"memory.available": grace.MemoryAvailable, "imagefs.available": grace.ImageFSAvailable,
			"imagefs.inodesFree": grace.ImageFSInodesFree,
			"nodefs.available":   grace.NodeFSAvailable, "nodefs.inodesFree": grace.NodeFSInodesFree,
		} {
			if period != nil {
				config.EvictionSoftGracePeriod[signal] = period.Duration.String()
			}
		}
	}
	if reclaim := user.EvictionMinimumReclaim; reclaim != nil {
		config.EvictionMinimumReclaim = map[string]string{}
		for signal, quantity := range map[string]*resource.Quantity{
			"memory.available": reclaim.MemoryAvailable, "imagefs.available": reclaim.ImageFSAvailable,
			"imagefs.inodesFree": reclaim.ImageFSInodesFree,
			"nodefs.available":   reclaim.NodeFSAvailable, "nodefs.inodesFree": reclaim.NodeFSInodesFree,
		} {
			if quantity != nil {
				config.EvictionMinimumReclaim[signal] = quantity.String()
			}
		}
	}
}

// thresholds overlays eviction signals.
func thresholds(into map[string]string, user *gardencorev1beta1.KubeletConfigEviction) {
	if user == nil {
		return
	}
	for signal, threshold := range map[string]*string{
		"memory.available": user.MemoryAvailable, "imagefs.available": user.ImageFSAvailable,
		"imagefs.inodesFree": user.ImageFSInodesFree,
		"nodefs.available":   user.NodeFSAvailable, "nodefs.inodesFree": user.NodeFSInodesFree,
	} {
		if threshold != nil {
			into[signal] = *threshold
		}
	}
}

// overlayReserved overlays what is reserved for the node's own processes.
func overlayReserved(into map[string]string, user *gardencorev1beta1.KubeletConfigReserved) {
	if user == nil {
		return
	}
	for name, quantity := range map[string]*resource.Quantity{
		"cpu": user.CPU, "memory": user.Memory, "ephemeral-storage": user.EphemeralStorage, "pid": user.PID,
	} {
		if quantity != nil {
			into[name] = quantity.String()
		}
	}
}

// set overlays an optional field.
func set[T any](field **T, user *T) {
	if user != nil {
		*field = user
	}
}

// value overlays a field that is always there.
func value[T any](field *T, user *T) {
	if user != nil {
		*field = *user
	}
}

// dropZeroes removes durations of zero, empty objects and nulls, which the type writes although they mean "default".
func dropZeroes(fields map[string]any) {
	for key, field := range fields {
		switch f := field.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			if dropZeroes(f); len(f) == 0 {
				delete(fields, key)
			}
		case string:
			if f == "0s" || f == "" {
				delete(fields, key)
			}
		}
	}
}
