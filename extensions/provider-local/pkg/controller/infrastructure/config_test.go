package infrastructure

import (
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestRender(t *testing.T) {
	for name, test := range map[string]struct {
		values   configValues
		has, not string
	}{
		"allocated": {
			configValues{Name: "shoot--a--b", Namespace: "infra-shoot--a--b"}, `name      = "shoot--a--b"`, "range",
		},
		"within range": {
			configValues{Name: "a", Namespace: "b", Range: "10.0.0.0/16"}, `range     = "10.0.0.0/16"`, "",
		},
		"interpolation": {
			configValues{Name: `${file("/etc/passwd")}%{if}"`, Namespace: "b"}, `"$${file(\"/etc/passwd\")}%%{if}\""`,
			"",
		},
	} {
		got, err := render(test.values)
		if err != nil || !strings.Contains(got, test.has) || test.not != "" && strings.Contains(got, test.not) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestNodesRange(t *testing.T) {
	shoot := &cluster.Cluster{Shoot: &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{
		Networking: &gardencorev1beta1.Networking{Nodes: new("10.180.0.0/16")},
	}}}
	config := apis.InfrastructureConfig{Networks: &apis.Networks{Workers: "10.181.0.0/16"}}
	if got := nodesRange(config, shoot); got != "10.181.0.0/16" {
		t.Errorf("the provider's own field comes first: %s", got)
	}
	if got := nodesRange(apis.InfrastructureConfig{}, shoot); got != "10.180.0.0/16" {
		t.Errorf("then the Shoot's: %s", got)
	}
	if got := nodesRange(apis.InfrastructureConfig{}, nil); got != "" {
		t.Errorf("else the cloud's: %s", got)
	}
}
