package kubeproxy

import (
	"testing"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "kube-proxy:v1", PodNetworks: []string{"10.3.0.0/16"},
		Server: "https://api.member1.demo.local.trellis.garden", CABundle: []byte("ca"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "objects", objects...)
}

func TestConfigurationOfTheUser(t *testing.T) {
	for _, test := range []struct {
		mode gardencorev1beta1.ProxyMode
		want string
	}{
		{"", "iptables"}, {gardencorev1beta1.ProxyModeIPTables, "iptables"}, {gardencorev1beta1.ProxyModeIPVS, "ipvs"},
		{gardencorev1beta1.ProxyModeNFTables, "nftables"},
	} {
		files, err := configuration(Values{Mode: test.mode, FeatureGates: map[string]bool{"TopologyAwareHints": true}})
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(files["config.yaml"]), &config); err != nil {
			t.Fatal(err)
		}
		if config["mode"] != test.want || config[test.want] == nil {
			t.Errorf("%q: mode is %v with settings %v, want %s", test.mode, config["mode"], config[test.want],
				test.want)
		}
		if gates, _ := config["featureGates"].(map[string]any); gates["TopologyAwareHints"] != true {
			t.Errorf("%q: feature gates are %v", test.mode, config["featureGates"])
		}
	}
}
