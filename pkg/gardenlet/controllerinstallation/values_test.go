package controllerinstallation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestValues(t *testing.T) {
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "local", Labels: map[string]string{"a": "b"}},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "here"},
			Ingress:  &gardencorev1beta1.Ingress{Domain: "ingress.example"},
			Taints:   []gardencorev1beta1.SeedTaint{{Key: gardencorev1beta1.SeedTaintProtected}},
		},
		Status: gardencorev1beta1.SeedStatus{ClusterIdentity: new("seed-id")},
	}
	values, err := valuesFor(map[string]any{"own": true}, "image:1", Garden{ClusterIdentity: "garden-id"}, seed)
	if err != nil {
		t.Fatal(err)
	}
	gardener := values["gardener"].(map[string]any)
	garden, told := gardener["garden"].(map[string]any), gardener["seed"].(map[string]any)
	for name, pair := range map[string][2]any{
		"own value": {values["own"], true}, "image": {values["image"], "image:1"},
		"garden":     {garden["clusterIdentity"], "garden-id"},
		"kubeconfig": {garden["genericKubeconfigSecretName"], GardenKubeconfigSecret},
		"seed":       {told["name"], "local"}, "identity": {told["identity"], "seed-id"},
		"region":  {told["region"], "here"},
		"ingress": {told["ingressDomain"], "ingress.example"}, "protected": {told["protected"], true},
		"visible": {told["visible"], true},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	values, err = valuesFor(map[string]any{"image": "mine"}, "image:1", Garden{}, seed)
	if err != nil || values["image"] != "mine" {
		t.Errorf("the operator's image is replaced: %v, %v", values["image"], err)
	}
}
