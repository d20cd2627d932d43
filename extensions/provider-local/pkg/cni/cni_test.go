package cni

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const input = `{
  "cniVersion": "1.0.0", "name": "landscape", "type": "local-cloud",
  "networksDir": "NETWORKS",
  "runtimeConfig": {"portMappings": []},
  "delegate": {"type": "bridge", "bridge": "cni0", "ipam": {"type": "host-local"}}
}`

func TestDelegate(t *testing.T) {
	network := &NetworkFile{Name: "shoot--a", Bridge: "lc1", Subnet: "10.180.3.0/24", Gateway: "10.180.3.1"}
	for name, test := range map[string]struct {
		network *NetworkFile
		want    string
	}{
		"pod of the cluster": {
			nil,
			`{"bridge":"cni0","cniVersion":"1.0.0","ipam":{"type":"host-local"},"name":"landscape","runtimeConfig":{"portMappings":[]},"type":"bridge"}`,
		},
		"machine": {
			network,
			`{"bridge":"lc1","cniVersion":"1.0.0","hairpinMode":false,"ipMasq":true,"ipam":{"ranges":[[{"gateway":"10.180.3.1","subnet":"10.180.3.0/24"}]],` +
				`"routes":[{"dst":"0.0.0.0/0"}],"type":"host-local"},"isGateway":true,"name":"local-cloud-shoot--a","runtimeConfig":{"portMappings":[]},"type":"bridge"}`,
		},
	} {
		config, all, err := ParseConfig([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Delegate(config, all, test.network)
		if err != nil || got.Plugin != "bridge" || string(got.Config) != test.want {
			t.Errorf("%s: got %s %s, %v", name, got.Plugin, got.Config, err)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "{", "no delegate": `{"name":"x"}`} {
		if _, _, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestPodNamespace(t *testing.T) {
	for args, want := range map[string]string{
		"IgnoreUnknown=1;K8S_POD_NAMESPACE=infra-a;K8S_POD_NAME=b": "infra-a",
		"K8S_POD_NAME=b": "", "": "",
	} {
		if got := PodNamespace(args); got != want {
			t.Errorf("%q: got %q", args, got)
		}
	}
}

// TestRun calls a plugin that writes down its input, and removes the network before the pod: DEL must still go to the
// bridge.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	networks := filepath.Join(dir, "networks")
	plugin := "#!/bin/sh\ncat > " + dir + "/$CNI_COMMAND.json\necho '{}'\n"
	network, _ := json.Marshal(NetworkFile{Name: "a", Bridge: "lc1", Subnet: "10.180.0.0/24"})
	for path, content := range map[string]string{
		filepath.Join(dir, "bin", "bridge"): plugin, filepath.Join(networks, "infra-a.json"): string(network),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(command string) string {
		t.Setenv("CNI_COMMAND", command)
		env := Environment{
			Command: command, ContainerID: "c1", Args: "K8S_POD_NAMESPACE=infra-a", Path: filepath.Join(dir, "bin"),
		}
		var stdout bytes.Buffer
		if err := Run(env, strings.NewReader(strings.Replace(input, "NETWORKS", networks, 1)), &stdout,
			os.Stderr); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, command+".json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := run("ADD"); !strings.Contains(got, `"bridge":"lc1"`) {
		t.Errorf("ADD: %s", got)
	}
	if err := os.Remove(filepath.Join(networks, "infra-a.json")); err != nil {
		t.Fatal(err)
	}
	if got := run("DEL"); !strings.Contains(got, `"bridge":"lc1"`) {
		t.Errorf("DEL: %s", got)
	}
	if got := run("DEL"); !strings.Contains(got, `"bridge":"cni0"`) {
		t.Errorf("DEL of a container that is not attached: %s", got)
	}
}
