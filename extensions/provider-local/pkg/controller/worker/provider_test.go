package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func scopeWith(status, profile string) worker.Scope {
	scope := worker.Scope{
		Worker:  &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one"}},
		Cluster: &cluster.Cluster{},
	}
	if status != "" {
		scope.Worker.Spec.InfrastructureProviderStatus = &runtime.RawExtension{Raw: []byte(status)}
	}
	if profile != "" {
		scope.Cluster.CloudProfile = &gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
		scope.Cluster.CloudProfile.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(profile)}
	}
	return scope
}

// built finds the images of the landscape.
func built(name, version string) (string, error) {
	if name != "debian" {
		return "", errors.New("machine image " + name + " " + version + " is not known")
	}
	return "registry/machine-debian:" + version, nil
}

const (
	ready  = `{"namespace":"infra-shoot--demo--one","nameservers":["172.18.0.2"]}`
	mapped = `{"machineImages":[{"name":"debian","versions":[{"version":"12.1.0","image":"registry/own:1"}]}]}`
)

func debian(version string) extensionsv1alpha1.WorkerPool {
	return extensionsv1alpha1.WorkerPool{
		Name: "pool", MachineImage: extensionsv1alpha1.MachineImage{Name: "debian", Version: version},
		NodeTemplate: &extensionsv1alpha1.NodeTemplate{
			Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
	}
}

// What a machine is: the operator's image where the CloudProfile maps it, in the network of its shoot, with a folder
// for its volumes alone, and with the memory of its machine type.
func TestWhatAMachineIs(t *testing.T) {
	for name, test := range map[string]struct {
		profile, version, image string
	}{
		"an image of the CloudProfile":     {mapped, "12.1.0", "registry/own:1"},
		"a version that it does not map":   {mapped, "12.2.0", "registry/machine-debian:12.2.0"},
		"a CloudProfile without a mapping": {"", "12.1.0", "registry/machine-debian:12.1.0"},
		"a CloudProfile of other providers": {
			`{"kind":"CloudProfileConfig"}`, "12.1.0", "registry/machine-debian:12.1.0",
		},
	} {
		d := delegate{machineImage: built, volumesDir: "/volumes"}
		got, err := d.ProviderSpec(t.Context(), scopeWith(ready, test.profile), debian(test.version), "z1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec := got.(apis.MachineSpec)
		if spec.Image != test.image || spec.Namespace != "infra-shoot--demo--one" ||
			spec.VolumesDir != "/volumes/shoot--demo--one" || !slices.Equal(spec.Nameservers, []string{"172.18.0.2"}) ||
			spec.Memory.Value() != 2<<30 {
			t.Errorf("%s: got %+v", name, spec)
		}
	}
}

// Who has to act: the user or operator where the configuration is wrong, nobody where the network is still being made.
func TestWhatKeepsMachinesAway(t *testing.T) {
	problem := []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}
	other := debian("1")
	other.MachineImage.Name = "flatcar"
	for name, test := range map[string]struct {
		status, profile string
		pool            extensionsv1alpha1.WorkerPool
		want            string
		codes           []gardencorev1beta1.ErrorCode
	}{
		"no network yet":   {"", "", debian("1"), "is the Infrastructure ready?", nil},
		"a broken status":  {"[]", "", debian("1"), "decoding", nil},
		"an unknown image": {ready, mapped, other, "machine image flatcar 1 is not known", problem},
		"a broken profile": {ready, "[]", debian("1"), "CloudProfile local: spec.providerConfig: ", problem},
	} {
		_, err := delegate{machineImage: built}.ProviderSpec(t.Context(), scopeWith(test.status, test.profile),
			test.pool, "z1")
		if err == nil || !strings.Contains(err.Error(), test.want) || !slices.Equal(extension.Codes(err), test.codes) {
			t.Errorf("%s: got %v with %v", name, err, extension.Codes(err))
		}
	}
}

// Without a folder for volumes the driver's pod keeps to the least, and has nothing of its node.
func TestNoVolumes(t *testing.T) {
	pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: worker.ControllerName}}}
	if err := (delegate{}).ExtendPod(scopeWith(ready, ""), pod); err != nil || len(pod.Volumes) > 0 ||
		len(pod.Containers[0].Args) > 0 || pod.Containers[0].SecurityContext != nil {
		t.Errorf("got %+v, %v", pod, err)
	}
}
