package operatingsystemconfig

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func values() Values {
	return Values{
		PoolName: "pool", KubernetesVersion: "1.36.3", KubeletImage: "registry.example/kubelet:v1.36.3",
		APIServerURL: "https://api.example", CABundle: []byte("CA\n"), KubeletCABundle: []byte("KUBELET CA\n"),
		SecretName: "gardener-node-agent-pool-1", ClusterDNS: []string{"10.4.0.10"}, ClusterDomain: "cluster.local",
		Labels:           map[string]string{"team": "blue"},
		Taints:           []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}},
		SystemComponents: true, Sysctls: map[string]string{"vm.max_map_count": "262144"},
		TrustedCertificates: "CERTIFICATE", AuthorizedKeys: []string{"ssh-rsa AAAA new", "ssh-rsa BBBB old"},
	}
}

func TestGolden(t *testing.T) {
	for purpose, render := range map[extensionsv1alpha1.OperatingSystemConfigPurpose]func(
		Values) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error){
		extensionsv1alpha1.OperatingSystemConfigPurposeProvision: Provision,
		extensionsv1alpha1.OperatingSystemConfigPurposeReconcile: Reconcile,
	} {
		t.Run(string(purpose), func(t *testing.T) {
			units, files, err := render(values())
			if err != nil {
				t.Fatal(err)
			}
			scheme := runtime.NewScheme()
			if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			golden.CheckWithScheme(t, scheme, string(purpose), &extensionsv1alpha1.OperatingSystemConfig{
				ObjectMeta: metav1.ObjectMeta{Name: string(purpose)},
				Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
					Purpose: purpose, Units: units, Files: files, CRIConfig: CRI("pause:1"),
				},
			})
		})
	}
}

func TestPlaceholdersStayLegible(t *testing.T) {
	_, files, err := Provision(values())
	if err != nil {
		t.Fatal(err)
	}
	content := files[0].Content
	if content.Inline.Encoding != "" || !ptr.Deref(content.TransmitUnencoded, false) ||
		!strings.Contains(content.Inline.Data, extensionsv1alpha1.BootstrapTokenPlaceholder) ||
		!strings.Contains(content.Inline.Data, extensionsv1alpha1.MachineNamePlaceholder) {
		t.Errorf("content is %+v", content)
	}
}

func TestKubeletSettings(t *testing.T) {
	v := values()
	v.Kubelet = &gardencorev1beta1.KubeletConfig{
		MaxPods: new(int32(33)), FailSwapOn: new(false),
		EvictionHard: &gardencorev1beta1.KubeletConfigEviction{MemoryAvailable: new("5%")},
		EvictionSoftGracePeriod: &gardencorev1beta1.KubeletConfigEvictionSoftGracePeriod{
			NodeFSAvailable: &metav1.Duration{Duration: time.Minute},
		},
		EvictionPressureTransitionPeriod: &metav1.Duration{Duration: time.Hour},
	}
	_, files, err := Reconcile(v)
	if err != nil {
		t.Fatal(err)
	}
	config := &kubeletconfigv1beta1.KubeletConfiguration{}
	for _, file := range files {
		if file.Path != PathKubeletConfig {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(file.Content.Inline.Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(data, config); err != nil {
			t.Fatal(err)
		}
	}
	if config.MaxPods != 33 || *config.FailSwapOn || config.EvictionHard["memory.available"] != "5%" ||
		config.EvictionHard["nodefs.available"] != "5%" ||
		config.EvictionSoftGracePeriod["nodefs.available"] != "1m0s" ||
		config.EvictionPressureTransitionPeriod.Duration != time.Hour {
		t.Errorf("configuration is %+v", config)
	}
	if config.CgroupDriver != "" {
		t.Errorf("kubelet is told cgroup driver %s, it must take the container runtime's", config.CgroupDriver)
	}
	if *config.FailCgroupV1 || *config.LocalStorageCapacityIsolation || !config.ServerTLSBootstrap ||
		!config.RotateCertificates {
		t.Errorf("what every pool has is missing: %+v", config)
	}
}
