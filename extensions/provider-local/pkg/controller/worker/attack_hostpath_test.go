package worker

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// The Secret of a shoot's owner names the cloud that is asked, so the owner writes its answers. They must not say which
// folder of the seed's node is mounted.
func TestAttackHostPathFromAnAnswerOfTheCloud(t *testing.T) {
	const answer = `{"namespace": "infra-shoot--a--b", "network": {"name": "../..", "volumesDir": "/etc/kubernetes"}}`
	scope := worker.Scope{
		Cluster: &cluster.Cluster{}, Worker: &extensionsv1alpha1.Worker{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: "b"},
		},
	}
	scope.Worker.Spec.InfrastructureProviderStatus = &runtime.RawExtension{Raw: []byte(answer)}
	for folder, want := range map[string]string{"/var/lib/volumes": "/var/lib/volumes/shoot--a--b", "": ""} {
		d := delegate{
			volumesDir: folder, machineImage: func(string, string) (string, error) { return "machine:1", nil },
		}
		spec, err := d.ProviderSpec(t.Context(), scope, extensionsv1alpha1.WorkerPool{Name: "pool"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.(apis.MachineSpec).VolumesDir; got != want {
			t.Errorf("machines mount %q, want %q", got, want)
		}
		pod := &corev1.PodSpec{
			Containers: []corev1.Container{{Name: worker.ControllerName, SecurityContext: &corev1.SecurityContext{}}},
		}
		if err := d.ExtendPod(scope, pod); err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(pod.Volumes); want == "" && len(pod.Volumes) > 0 ||
			want != "" && (len(pod.Volumes) != 1 || pod.Volumes[0].HostPath.Path != want) {
			t.Errorf("the machine controller mounts %s, want %q", got, want)
		}
	}
}
