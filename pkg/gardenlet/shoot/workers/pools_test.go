package workers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// What a pool of the Shoot asks for is what the extension is told.
func TestPoolOfTheWorker(t *testing.T) {
	p := plantest.New(t, plantest.Worker(func(w *gardencorev1beta1.Worker) {
		w.Annotations, w.Labels = map[string]string{"note": "mine"}, map[string]string{"team": "blue"}
		w.Taints = []corev1.Taint{{Key: "dedicated", Value: "blue", Effect: corev1.TaintEffectNoSchedule}}
		w.MaxSurge, w.MaxUnavailable = new(intstr.FromString("10%")), new(intstr.FromInt32(2))
		w.Volume = &gardencorev1beta1.Volume{
			Name: new("root"), Type: new("ssd"), VolumeSize: "50Gi", Encrypted: new(true),
		}
		w.DataVolumes = []gardencorev1beta1.DataVolume{
			{Name: "data", Type: new("hdd"), VolumeSize: "100Gi", Encrypted: new(false)},
		}
		w.KubeletDataVolumeName, w.Priority, w.Zones = new("data"), new(int32(7)), []string{"a"}
		w.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"b": 2, "a": 1}`)}
		w.CRI = &gardencorev1beta1.CRI{
			Name: "containerd", ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{{Type: "gvisor"}},
		}
		w.MachineControllerManager = &gardencorev1beta1.MachineControllerManagerSettings{
			MaxEvictRetries: new(int32(3)), NodeConditions: []string{"KernelDeadlock"},
			MachineDrainTimeout: &metav1.Duration{Duration: time.Hour},
		}
		w.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscalerOptions{
			ScaleDownUtilizationThreshold: new(0.25), ScaleDownGpuUtilizationThreshold: new(0.75),
			ScaleDownUnneededTime: &metav1.Duration{Duration: time.Minute},
			ScaleDownUnreadyTime:  &metav1.Duration{Duration: 2 * time.Minute},
			MaxNodeProvisionTime:  &metav1.Duration{Duration: 3 * time.Minute},
		}
	})).Pools[0]
	got, err := yaml.Marshal(renderPool(p, "user-data"))
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckText(t, "worker-pool", string(got))
}

// node-agent gets the cgroup driver that a webhook chose in kubelet's configuration too; what is in the seed stays.
func TestNodeAgentGetsTheCgroupDriverOfKubelet(t *testing.T) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
		CRIConfig: &extensionsv1alpha1.CRIConfig{CgroupDriver: new(extensionsv1alpha1.CgroupDriverSystemd)},
	}}
	kubelet := func(data string) []extensionsv1alpha1.File {
		inline := &extensionsv1alpha1.FileContentInline{Data: data}
		return []extensionsv1alpha1.File{{
			Path:    operatingsystemconfig.PathKubeletConfig,
			Content: extensionsv1alpha1.FileContent{Inline: inline},
		}}
	}
	osc.Spec.Files, osc.Status.ExtensionFiles = kubelet("maxPods: 1"), kubelet("maxPods: 2")
	before := osc.DeepCopy()
	secret, err := nodeAgentSecret(plantest.New(t).Pools[0], osc)
	if err != nil {
		t.Fatal(err)
	}
	got := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(secret.Data[oscKey], got); err != nil {
		t.Fatal(err)
	}
	for field, difference := range map[string]string{
		"spec.files": cmp.Diff(kubelet("cgroupDriver: systemd\nmaxPods: 1\n"), got.Spec.Files),
		"status.extensionFiles": cmp.Diff(kubelet("cgroupDriver: systemd\nmaxPods: 2\n"),
			got.Status.ExtensionFiles),
		"the object in the seed": cmp.Diff(before, osc),
	} {
		if difference != "" {
			t.Errorf("%s: %s", field, difference)
		}
	}
}

func TestMachineCreationTimeout(t *testing.T) {
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for _, test := range []struct {
		name                string
		pool, profile, want *metav1.Duration
	}{
		{"nobody", nil, nil, nil},
		{"profile", nil, minutes(40), minutes(40)},
		{"pool", minutes(10), nil, minutes(10)},
		{"pool before profile", minutes(10), minutes(40), minutes(10)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plantest.New(t, func(in *plan.Inputs) {
				if test.pool != nil {
					in.Shoot.Spec.Provider.Workers[0].MachineControllerManager =
						&gardencorev1beta1.MachineControllerManagerSettings{
							MachineCreationTimeout: test.pool,
						}
				}
				if test.profile != nil {
					in.CloudProfile.Spec.MachineTypes[0].MachineControllerManager =
						&gardencorev1beta1.CloudProfileMachineControllerManagerSettings{
							MachineCreationTimeout: test.profile,
						}
				}
			}).Pools[0]
			var got *metav1.Duration
			if settings := renderPool(p, "user-data").MachineControllerManager; settings != nil {
				got = settings.MachineCreationTimeout
			}
			if difference := cmp.Diff(test.want, got); difference != "" {
				t.Error(difference)
			}
		})
	}
}

func TestContainerRuntimes(t *testing.T) {
	pools := []plan.Pool{
		{Worker: gardencorev1beta1.Worker{Name: "plain"}},
		{
			Worker: gardencorev1beta1.Worker{Name: "safe",
				CRI: &gardencorev1beta1.CRI{ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{
					{
						Type: "gvisor", ProviderConfig: &runtime.RawExtension{
							Raw: []byte(`{ "flags": {"debug": "true"} }`),
						},
					},
					{Type: "kata"},
				}}},
		},
	}
	objects := containerRuntimes("shoot--demo--member1", pools)
	if len(objects) != 2 {
		t.Fatalf("%d objects", len(objects))
	}
	want := extensionsv1alpha1.ContainerRuntimeSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: "gvisor", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"flags":{"debug":"true"}}`)},
		},
		BinaryPath: "/var/bin/containerruntimes",
		WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
			Name: "safe", Selector: metav1.LabelSelector{
				MatchLabels: map[string]string{"worker.gardener.cloud/pool": "safe"},
			},
		},
	}
	if difference := cmp.Diff(want, objects[0].Spec); difference != "" || objects[0].Name != "gvisor-safe" {
		t.Errorf("%s: %s", objects[0].Name, difference)
	}
	if labels := containerRuntimeLabels(pools[1].Worker); labels["containerruntime.worker.gardener.cloud/kata"] !=
		"true" || len(labels) != 2 {
		t.Errorf("labels are %v", labels)
	}
	stale := staleContainerRuntimes([]extensionsv1alpha1.ContainerRuntime{
		{ObjectMeta: metav1.ObjectMeta{Name: "gvisor-safe"}}, {ObjectMeta: metav1.ObjectMeta{Name: "gvisor-gone"}},
	}, pools)
	if len(stale) != 1 || stale[0].Name != "gvisor-gone" {
		t.Errorf("stale are %v", stale)
	}
}

func TestNodesOfSystemPoolsAreLabelled(t *testing.T) {
	for _, allow := range []bool{true, false} {
		pool := plantest.New(t, plantest.Worker(func(w *gardencorev1beta1.Worker) {
			w.SystemComponents = &gardencorev1beta1.WorkerSystemComponents{Allow: allow}
		})).Pools[0]
		if _, labelled := renderPool(pool,
			"").Labels[gardencorev1beta1.LabelWorkerPoolSystemComponents]; labelled != allow {
			t.Errorf("system components are allowed: %t, the nodes have their label: %t", allow, labelled)
		}
	}
}
