package v1beta1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func TestBindingsReferToTheirOwnNamespace(t *testing.T) {
	binding := &SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo"},
		Quotas:     []corev1.ObjectReference{{Name: "a"}, {Namespace: "other", Name: "b"}},
	}
	SetDefaultsSecretBinding(binding)
	if binding.SecretRef.Namespace != "garden-demo" || binding.Quotas[0].Namespace != "garden-demo" ||
		binding.Quotas[1].Namespace != "other" {
		t.Errorf("binding = %+v", binding)
	}
}

func TestSetDefaultsShoot(t *testing.T) {
	shoot := aShoot()
	spec := &shoot.Spec
	for name, ok := range map[string]bool{
		"purpose":   *spec.Purpose == ShootPurposeEvaluation,
		"scheduler": *spec.SchedulerName == "default-scheduler",
		"requests":  *spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight == 400,
		"encryption": *spec.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type ==
			EncryptionProviderTypeAESCBC,
		"proxy mode": *spec.Kubernetes.KubeProxy.Mode == ProxyModeIPTables &&
			*spec.Kubernetes.KubeProxy.Enabled,
		"range of a node": *spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize == 24,
		"IP families":     len(spec.Networking.IPFamilies) == 1 && spec.Networking.IPFamilies[0] == IPFamilyIPv4,
		"automatic updates": spec.Maintenance.AutoUpdate.KubernetesVersion &&
			*spec.Maintenance.AutoUpdate.MachineImageVersion,
		"SSH":               spec.Provider.WorkersSettings.SSHAccess.Enabled,
		"container runtime": spec.Provider.Workers[0].CRI.Name == CRINameContainerD,
		"surge": spec.Provider.Workers[0].MaxSurge.IntVal == 1 &&
			spec.Provider.Workers[0].MaxUnavailable.IntVal == 0,
		"update strategy":   *spec.Provider.Workers[0].UpdateStrategy == AutoRollingUpdate,
		"system components": spec.Provider.Workers[0].SystemComponents.Allow,
		"CoreDNS": spec.SystemComponents.CoreDNS.Autoscaling.Mode ==
			CoreDNSAutoscalingModeClusterProportional,
		"no autoscaler":      spec.Kubernetes.ClusterAutoscaler == nil,
		"no VPA":             spec.Kubernetes.VerticalPodAutoscaler == nil,
		"nothing for tests":  len(spec.Tolerations) == 0,
		"seed decides pods":  *spec.Networking.Pods == "10.3.0.0/16",
		"kubelet swaps":      *spec.Kubernetes.Kubelet.FailSwapOn,
		"kubelet image pull": *spec.Kubernetes.Kubelet.SerializeImagePulls,
	} {
		if !ok {
			t.Errorf("%s: not as published", name)
		}
	}
}

func TestSetDefaultsWorkerlessShoot(t *testing.T) {
	spec := aWorkerlessShoot().Spec
	if spec.Kubernetes.Kubelet != nil || spec.Kubernetes.KubeProxy != nil || spec.Kubernetes.KubeScheduler != nil ||
		spec.SystemComponents != nil || spec.Provider.WorkersSettings != nil {
		t.Errorf("a cluster without workers got settings for workers: %+v", spec)
	}
}

func TestSetDefaultsLeaveWhatIsSaid(t *testing.T) {
	shoot := aShoot()
	shoot.Spec.Kubernetes.KubeProxy.Enabled = new(false)
	shoot.Spec.Maintenance.AutoUpdate.KubernetesVersion = false
	shoot.Spec.Provider.Workers[0].SystemComponents.Allow = false
	before := shoot.DeepCopy()
	SetDefaultsShoot(shoot)
	if !apiequality.Semantic.DeepEqual(before, shoot) {
		t.Errorf("defaults are not stable: %+v", shoot.Spec)
	}
}

func TestDefaultUpdateInPlace(t *testing.T) {
	worker := Worker{UpdateStrategy: new(AutoInPlaceUpdate)}
	setDefaultsWorker(&worker)
	if worker.MaxSurge.IntVal != 0 || worker.MaxUnavailable.IntVal != 1 {
		t.Errorf("got surge %v, unavailable %v", worker.MaxSurge, worker.MaxUnavailable)
	}
	if !*worker.MachineControllerManager.DisableHealthTimeout {
		t.Error("machines that are not healthy are replaced")
	}
	manual := Worker{UpdateStrategy: new(ManualInPlaceUpdate)}
	setDefaultsWorker(&manual)
	if manual.MaxSurge != nil || manual.MaxUnavailable != nil {
		t.Errorf("got surge %v, unavailable %v", manual.MaxSurge, manual.MaxUnavailable)
	}
}

// The range of a node holds an address for every pod.
func TestNodeCIDRMaskSize(t *testing.T) {
	for pods, want := range map[int32]int32{1: 24, 110: 24, 254: 24, 255: 23, 510: 23, 511: 22} {
		spec := &ShootSpec{Networking: &Networking{}, Kubernetes: Kubernetes{Kubelet: &KubeletConfig{MaxPods: &pods}}}
		if got := nodeCIDRMaskSize(spec); got != want {
			t.Errorf("%d pods: got /%d, want /%d", pods, got, want)
		}
	}
}

// The maintenance window is the same each time a shoot is decoded, at night, and spread over shoots.
func TestDefaultTimeWindow(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100 {
		shoot := &Shoot{}
		shoot.UID = types.UID(rune('a' + i))
		window := defaultTimeWindow(shoot)
		if *window != *defaultTimeWindow(shoot) {
			t.Fatal("not deterministic")
		}
		if errs := validateTimeWindow(window, nil); len(errs) > 0 {
			t.Fatal(errs)
		}
		seen[window.Begin] = true
	}
	if len(seen) < 5 {
		t.Errorf("only begins %v", seen)
	}
}

func TestSetDefaultsSeed(t *testing.T) {
	seed := aSeed()
	SetDefaultsSeed(seed)
	settings := seed.Spec.Settings
	if !settings.Scheduling.Visible || !*settings.ExcessCapacityReservation.Enabled ||
		settings.VerticalPodAutoscaler.Enabled || !settings.DependencyWatchdog.Prober.Enabled ||
		!settings.DependencyWatchdog.Weeder.Enabled || settings.TopologyAwareRouting.Enabled {
		t.Errorf("not as published: %+v", settings)
	}
	if got := *seed.Spec.Networks.ShootDefaults.Pods; got != "10.3.0.0/16" {
		t.Errorf("pods of shoots became %s", got)
	}

	off := aSeed()
	off.Spec.Settings = &SeedSettings{
		DependencyWatchdog: &SeedSettingDependencyWatchdog{Prober: &SeedSettingDependencyWatchdogProber{}},
	}
	SetDefaultsSeed(off)
	if watchdog := off.Spec.Settings.DependencyWatchdog; watchdog.Prober.Enabled || !watchdog.Weeder.Enabled {
		t.Errorf("what is turned off became %+v, what is left out %+v", watchdog.Prober, watchdog.Weeder)
	}

	plain := aSeed()
	plain.Spec.Networks.ShootDefaults = nil
	plain.Spec.Networks.Services = "100.64.0.0/16"
	SetDefaultsSeed(plain)
	defaults := plain.Spec.Networks.ShootDefaults
	if *defaults.Pods != DefaultPodNetworkCIDR || defaults.Services != nil {
		t.Errorf("got pods %v, services %v: the latter overlap with the seed's", *defaults.Pods, defaults.Services)
	}
}

func TestSetDefaultsCloudProfile(t *testing.T) {
	profile := aProfile()
	SetDefaultsCloudProfile(profile)
	image := profile.Spec.MachineImages[0]
	if *image.UpdateStrategy != UpdateStrategyMajor || image.Versions[0].Architectures[0] != "amd64" ||
		image.Versions[0].CRI[0].Name != CRINameContainerD {
		t.Errorf("image %+v", image)
	}
	if machine := profile.Spec.MachineTypes[0]; !*machine.Usable || *machine.Architecture != "amd64" {
		t.Errorf("machine type %+v", machine)
	}
	if *profile.Spec.MachineTypes[2].Usable {
		t.Error("a machine type became usable")
	}
}

// A scheme sets defaults in objects and in every object of a list.
func TestRegisterDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	list := &ShootList{Items: []Shoot{{}, {}}}
	scheme.Default(list)
	for _, shoot := range list.Items {
		if shoot.Spec.Purpose == nil {
			t.Error("no defaults in a list")
		}
	}
	registration := &ControllerRegistration{
		Spec: ControllerRegistrationSpec{Resources: []ControllerResource{{Kind: "Extension"}, {Kind: "Worker"}}},
	}
	scheme.Default(registration)
	if resources := registration.Spec.Resources; resources[0].Lifecycle == nil || resources[1].Lifecycle != nil ||
		!*resources[1].Primary {
		t.Errorf("got %+v", resources)
	}
}
