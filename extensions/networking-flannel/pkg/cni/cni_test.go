package cni

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSubnet(t *testing.T) {
	got, err :=
		ParseSubnet([]byte("FLANNEL_NETWORK=10.3.0.0/16\nFLANNEL_SUBNET=10.3.1.1/24\nFLANNEL_MTU=1450\n" +
			"FLANNEL_IPMASQ=true\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Subnet{Network: "10.3.0.0/16", Subnet: "10.3.1.1/24", MTU: 1450, Masquerade: true}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{
		"", "FLANNEL_NETWORK=10.3.0.0/16\n", "FLANNEL_NETWORK=a\nFLANNEL_SUBNET=b\nFLANNEL_MTU=x\n",
	} {
		if _, err := ParseSubnet([]byte(bad)); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}

func FuzzParseSubnet(f *testing.F) {
	f.Add([]byte("FLANNEL_NETWORK=10.3.0.0/16\nFLANNEL_SUBNET=10.3.1.1/24\nFLANNEL_MTU=1450\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if subnet, err := ParseSubnet(data); err == nil {
			Delegate(map[string]any{"name": "flannel"}, subnet)
		}
	})
}

func TestDelegate(t *testing.T) {
	config := map[string]any{
		"name": "cbr0", "cniVersion": "1.0.0", "type": "flannel", "delegate": map[string]any{"hairpinMode": false},
	}
	got := Delegate(config, Subnet{Network: "10.3.0.0/16", Subnet: "10.3.1.1/24", MTU: 1450, Masquerade: true})
	want := map[string]any{
		"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "hairpinMode": false,
		"ipMasq": false, "mtu": 1450, "name": "cbr0", "cniVersion": "1.0.0",
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": []any{[]any{map[string]any{"subnet": "10.3.1.0/24"}}},
			"routes": []any{map[string]any{"dst": "10.3.0.0/16"}},
		},
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}
