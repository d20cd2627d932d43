package shoot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
)

// worker changes the first pool of the inputs.
func worker(change func(*gardencorev1beta1.Worker)) func(*Inputs) {
	return func(in *Inputs) { change(&in.Shoot.Spec.Provider.Workers[0]) }
}

// What a pool of the Shoot asks for is what the extension is told.
func TestPoolOfTheWorker(t *testing.T) {
	p := operation(t, worker(func(w *gardencorev1beta1.Worker) {
		w.Annotations, w.Labels = map[string]string{"note": "mine"}, map[string]string{"team": "blue"}
		w.Taints = []corev1.Taint{{Key: "dedicated", Value: "blue", Effect: corev1.TaintEffectNoSchedule}}
		w.MaxSurge, w.MaxUnavailable = ptr.To(intstr.FromString("10%")), ptr.To(intstr.FromInt32(2))
		w.Volume = &gardencorev1beta1.Volume{Name: ptr.To("root"), Type: ptr.To("ssd"), VolumeSize: "50Gi", Encrypted: ptr.To(true)}
		w.DataVolumes = []gardencorev1beta1.DataVolume{{Name: "data", Type: ptr.To("hdd"), VolumeSize: "100Gi", Encrypted: ptr.To(false)}}
		w.KubeletDataVolumeName, w.Priority, w.Zones = ptr.To("data"), ptr.To[int32](7), []string{"a"}
		w.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"b": 2, "a": 1}`)}
		w.CRI = &gardencorev1beta1.CRI{Name: "containerd", ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{{Type: "gvisor"}}}
		w.MachineControllerManager = &gardencorev1beta1.MachineControllerManagerSettings{
			MaxEvictRetries: ptr.To[int32](3), NodeConditions: []string{"KernelDeadlock"}, MachineDrainTimeout: &metav1.Duration{Duration: time.Hour},
		}
		w.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscalerOptions{
			ScaleDownUtilizationThreshold: ptr.To(0.25), ScaleDownGpuUtilizationThreshold: ptr.To(0.75),
			ScaleDownUnneededTime: &metav1.Duration{Duration: time.Minute}, ScaleDownUnreadyTime: &metav1.Duration{Duration: 2 * time.Minute},
			MaxNodeProvisionTime: &metav1.Duration{Duration: 3 * time.Minute},
		}
	})).Plan.Pools[0]
	got, err := yaml.Marshal(renderPool(p, "user-data"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "worker-pool.yaml", string(got))
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
			p := operation(t, func(in *Inputs) {
				if test.pool != nil {
					in.Shoot.Spec.Provider.Workers[0].MachineControllerManager = &gardencorev1beta1.MachineControllerManagerSettings{MachineCreationTimeout: test.pool}
				}
				if test.profile != nil {
					in.CloudProfile.Spec.MachineTypes[0].MachineControllerManager = &gardencorev1beta1.CloudProfileMachineControllerManagerSettings{MachineCreationTimeout: test.profile}
				}
			}).Plan.Pools[0]
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

func TestTrustedCertificates(t *testing.T) {
	p := operation(t, func(in *Inputs) {
		in.CloudProfile.Spec.CABundle = ptr.To("PROFILE\n")
		in.Shoot.Spec.Provider.Workers[0].CABundle = ptr.To("\nPOOL")
	}).Plan.Pools[0]
	if p.TrustedCertificates != "PROFILE\nPOOL\n" {
		t.Errorf("certificates are %q", p.TrustedCertificates)
	}
}

func TestSystemPools(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Value: "system", Effect: corev1.TaintEffectNoSchedule}
	o := operation(t, func(in *Inputs) {
		in.Shoot.Spec.Provider.Workers[0].Taints = []corev1.Taint{taint}
		other := *in.Shoot.Spec.Provider.Workers[0].DeepCopy()
		other.Name, other.SystemComponents = "other", &gardencorev1beta1.WorkerSystemComponents{Allow: false}
		other.Taints = []corev1.Taint{{Key: "user", Effect: corev1.TaintEffectNoExecute}}
		in.Shoot.Spec.Provider.Workers = append(in.Shoot.Spec.Provider.Workers, other)
	})
	want := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "system", Effect: corev1.TaintEffectNoSchedule}}
	if difference := cmp.Diff(want, o.Plan.SystemPoolTolerations); difference != "" {
		t.Error(difference)
	}
	objects, err := o.coreDNSObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, object := range onSystemPools(objects, o.Plan.SystemPoolTolerations) {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			found = true
			pod := deployment.Spec.Template.Spec
			if pod.NodeSelector[gardencorev1beta1.LabelWorkerPoolSystemComponents] != "true" || pod.Tolerations[len(pod.Tolerations)-1] != want[0] {
				t.Errorf("node selector %v, tolerations %v", pod.NodeSelector, pod.Tolerations)
			}
		}
	}
	if !found {
		t.Error("no Deployment")
	}
	for i, pool := range o.Plan.Pools {
		if _, labelled := renderPool(pool, "").Labels[gardencorev1beta1.LabelWorkerPoolSystemComponents]; labelled != (i == 0) {
			t.Errorf("pool %s has the label of system components: %t", pool.Worker.Name, labelled)
		}
	}
}

func TestDaemonSetsAreNotConfined(t *testing.T) {
	objects, err := kubeproxy.Objects(kubeproxy.Values{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range onSystemPools(objects, nil) {
		if set, ok := object.(*appsv1.DaemonSet); ok && set.Spec.Template.Spec.NodeSelector != nil {
			t.Errorf("DaemonSet %s is confined to %v", client.ObjectKeyFromObject(set), set.Spec.Template.Spec.NodeSelector)
		}
	}
}

func TestContainerRuntimes(t *testing.T) {
	pools := []PoolPlan{
		{Worker: gardencorev1beta1.Worker{Name: "plain"}},
		{Worker: gardencorev1beta1.Worker{Name: "safe", CRI: &gardencorev1beta1.CRI{ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{
			{Type: "gvisor", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{ "flags": {"debug": "true"} }`)}}, {Type: "kata"},
		}}}},
	}
	objects := containerRuntimes("shoot--demo--member1", pools)
	if len(objects) != 2 {
		t.Fatalf("%d objects", len(objects))
	}
	want := extensionsv1alpha1.ContainerRuntimeSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "gvisor", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"flags":{"debug":"true"}}`)}},
		BinaryPath:  "/var/bin/containerruntimes",
		WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
			Name: "safe", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"worker.gardener.cloud/pool": "safe"}},
		},
	}
	if difference := cmp.Diff(want, objects[0].Spec); difference != "" || objects[0].Name != "gvisor-safe" {
		t.Errorf("%s: %s", objects[0].Name, difference)
	}
	if labels := containerRuntimeLabels(pools[1].Worker); labels["containerruntime.worker.gardener.cloud/kata"] != "true" || len(labels) != 2 {
		t.Errorf("labels are %v", labels)
	}
	stale := staleContainerRuntimes([]extensionsv1alpha1.ContainerRuntime{
		{ObjectMeta: metav1.ObjectMeta{Name: "gvisor-safe"}}, {ObjectMeta: metav1.ObjectMeta{Name: "gvisor-gone"}},
	}, pools)
	if len(stale) != 1 || stale[0].Name != "gvisor-gone" {
		t.Errorf("stale are %v", stale)
	}
}
