package kubeapiserver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

// Of the kubeconfigs of plugins only that of ImagePolicyWebhook is changed, and of that only the proxy.
func TestKubeconfigsOfPlugins(t *testing.T) {
	files, err := admissionKubeconfigs(allSettings())
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckText(t, "kubeconfig-image-policy", string(files[imagePolicyWebhook]))
	if got := string(files["ValidatingAdmissionWebhook"]); got != "kubeconfig of webhooks" || len(files) != 2 {
		t.Errorf("ValidatingAdmissionWebhook has %q; kubeconfigs of %v", got, slices.Sorted(maps.Keys(files)))
	}
	withoutSeed := allSettings()
	withoutSeed.EgressHost = ""
	if files, err = admissionKubeconfigs(withoutSeed); err != nil ||
		string(files[imagePolicyWebhook]) != imagePolicyKubeconfig {
		t.Errorf("without an egress proxy: %q, %v", files[imagePolicyWebhook], err)
	}
	broken := allSettings()
	broken.AdmissionConfigs[2].Kubeconfig = []byte("clusters: x")
	if _, err := admissionKubeconfigs(broken); err == nil || !strings.Contains(err.Error(), imagePolicyWebhook) {
		t.Errorf("a file that is no kubeconfig: %v", err)
	}
}

func TestSidecarIsThereForImagePolicyWebhookOnly(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Values)
		want   bool
	}{
		"plugin":                  {func(*Values) {}, true},
		"no plugin":               {func(v *Values) { v.AdmissionConfigs = v.AdmissionConfigs[:2] }, false},
		"plugin without webhook":  {func(v *Values) { v.AdmissionConfigs[2].Kubeconfig = nil }, false},
		"seed without the proxy":  {func(v *Values) { v.EgressHost = "" }, false},
		"cluster without workers": {func(v *Values) { v.VPN, v.IsWorkerless = nil, true }, true},
	} {
		values := allSettings()
		test.change(&values)
		pod := podSpec(values, mountedSecrets{})
		if got := slices.ContainsFunc(pod.InitContainers,
			func(c corev1.Container) bool { return c.Name == sidecarName }); got != test.want ||
			len(pod.InitContainers) > 1 {
			t.Errorf("%s: the sidecar is there: %v, want %v", name, got, test.want)
		}
	}
}

// Keys of the control plane are none of the sidecar's business, but for the one by which it asks the seed's proxy.
func TestSidecarHasItsOwnCertificateOnly(t *testing.T) {
	pod := podSpec(allSettings(), mountedSecrets{})
	mounts := pod.InitContainers[0].VolumeMounts
	if len(mounts) != 1 || mounts[0].Name != sidecarName {
		t.Errorf("the sidecar mounts %v", mounts)
	}
	if probe := pod.InitContainers[0].LivenessProbe; probe.Exec == nil || probe.TimeoutSeconds < 10 ||
		probe.PeriodSeconds*probe.FailureThreshold < 180 {
		t.Errorf("the sidecar's probe is %v", probe)
	}
}
