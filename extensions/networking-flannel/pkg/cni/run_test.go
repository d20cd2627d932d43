package cni

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plugins is a folder with a plugin bridge that answers with its own configuration.
func plugins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bridge"), []byte("#!/bin/sh\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func subnetFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "subnet.env")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const subnetOfNode = "FLANNEL_NETWORK=10.3.0.0/16\nFLANNEL_SUBNET=10.3.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"

// The pod is attached by the plugin that the configuration names, to the subnet of its node.
func TestRunDelegates(t *testing.T) {
	t.Setenv("CNI_COMMAND", "ADD")
	t.Setenv("CNI_PATH", "/none"+string(os.PathListSeparator)+plugins(t))
	var out bytes.Buffer
	config := `{"name":"cbr0","cniVersion":"1.0.0","type":"flannel","subnetFile":"` + subnetFile(t, subnetOfNode) +
		`","delegate":{"hairpinMode":true}}`
	if err := Run(strings.NewReader(config), &out, &out); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["type"] != "bridge" || got["name"] != "cbr0" || got["ipMasq"] != false || got["mtu"] != 1450.0 ||
		!strings.Contains(out.String(), `"subnet":"10.3.1.0/24"`) {
		t.Errorf("got %s", out.String())
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"no configuration": {"", "network configuration: "},
		"no subnet yet":    {`{"subnetFile":"/none/subnet.env"}`, "flanneld has not written the node's subnet yet"},
		"half a subnet": {
			`{"subnetFile":"` + subnetFile(t, "FLANNEL_NETWORK=10.3.0.0/16\n") + `"}`,
			"subnet.env: FLANNEL_NETWORK and FLANNEL_SUBNET must be set",
		},
		"a plugin of no name": {
			`{"subnetFile":"` + subnetFile(t, subnetOfNode) + `","delegate":{"type":7}}`,
			"delegate.type must be the name of a plugin",
		},
		"no such plugin": {
			`{"subnetFile":"` + subnetFile(t, subnetOfNode) + `","delegate":{"type":"ipvlan"}}`,
			`plugin "ipvlan" is in none of`,
		},
		"a way out of them": {
			`{"subnetFile":"` + subnetFile(t, subnetOfNode) + `","delegate":{"type":"../../bin/sh"}}`, "is in none of",
		},
	} {
		t.Setenv("CNI_COMMAND", "ADD")
		t.Setenv("CNI_PATH", plugins(t))
		var out bytes.Buffer
		if err := Run(strings.NewReader(test.config), &out, &out); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("CNI_COMMAND", "VERSION")
	var out bytes.Buffer
	if err := Run(strings.NewReader(""), &out, &out); err != nil ||
		!strings.Contains(out.String(), `"supportedVersions":["0.3.1","0.4.0","1.0.0"]`) {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
