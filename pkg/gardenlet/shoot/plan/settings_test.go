package plan_test

import (
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// Every control plane whose owner turns on ImagePolicyWebhook is given what its sidecar needs.
func TestImagePolicyWebhookLeavesByTheSidecar(t *testing.T) {
	for name, change := range map[string]func(*plan.Inputs){
		"with workers": func(*plan.Inputs) {}, "workerless": plantest.Workerless,
	} {
		in := plantest.Inputs()
		change(in)
		in.Shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
			AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{
				{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("images")},
			},
		}
		in.Files.PluginKubeconfigs = map[string][]byte{"ImagePolicyWebhook": []byte(plantest.WebhookKubeconfig)}
		values := plantest.Plan(t, in).APIServer()
		if values.EgressImage != "registry.example/vpn:v1" || values.EgressHost == "" {
			t.Errorf("%s: image %q, proxy %q", name, values.EgressImage, values.EgressHost)
		}
	}
}
