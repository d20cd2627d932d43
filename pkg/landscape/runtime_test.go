package landscape

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

func testValues(t *testing.T) runtimeValues {
	t.Helper()
	vector, err := imagevector.Load()
	if err != nil {
		t.Fatal(err)
	}
	return runtimeValues{
		NodeName: nodeName, NodeIP: nodeIP, NodePods: firstNode.pods().String(), Zone: firstNode.zone(),
		FirstIP: nodeIP, PodNetwork: podNetwork, ServiceNetwork: serviceNetwork,
		DNSServiceIP:  dnsServiceIP,
		ClusterDomain: clusterDomain, Region: region, Domain: domain, APIPort: apiPort, RegistryPort: registryPort,
		ZonePort:  zonePort,
		PodPlugin: "bridge", EtcdImage: "etcd:1", PauseImage: "pause:1", CoreDNSImage: "coredns:1",
		vector: vector,
	}
}

func TestEveryTemplateIsWellFormed(t *testing.T) {
	values := testValues(t)
	err := fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := render(strings.TrimPrefix(path, "files/"), values)
		if err != nil {
			return err
		}
		if strings.Contains(text, "<no value>") {
			t.Errorf("%s: a value is missing:\n%s", path, text)
		}
		if strings.HasSuffix(path, ".yaml") {
			for _, document := range strings.Split(text, "\n---\n") {
				if err := yaml.Unmarshal([]byte(document), &map[string]any{}); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Nodes have the variables that images have, and machines of more processors none.
func TestEnvironment(t *testing.T) {
	if env := environmentOn(3); len(env) != 0 {
		t.Errorf("three processors: %q", env)
	}
	env := environmentOn(2)
	if want := "[Manager]\nDefaultEnvironment=GOMAXPROCS=1\n"; images.SystemdEnv(env) != want {
		t.Errorf("got %q, want %q", images.SystemdEnv(env), want)
	}
}

// kubelet of the landscape's node takes the cgroup driver from containerd, where the machine decides which it is.
func TestContainerdAloneHasTheCgroupDriver(t *testing.T) {
	values := testValues(t)
	for _, systemd := range []bool{true, false} {
		values.SystemdCgroups = systemd
		text, err := render("kubernetes/kubelet.yaml", values)
		if err != nil {
			t.Fatal(err)
		}
		kubelet := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &kubelet); err != nil {
			t.Fatal(err)
		}
		if driver, told := kubelet["cgroupDriver"]; told {
			t.Errorf("kubelet is told cgroup driver %v", driver)
		}
		if got := systemdCgroup(t, values); got != systemd {
			t.Errorf("SystemdCgroup is %t, want %t", got, systemd)
		}
	}
}

// systemdCgroup reads containerd's setting of that name.
func systemdCgroup(t *testing.T, values runtimeValues) bool {
	t.Helper()
	text, err := render("node/containerd.toml", values)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Plugins map[string]struct {
			Containerd struct {
				Runtimes map[string]struct{ Options struct{ SystemdCgroup *bool } }
			}
		}
	}
	if err := toml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	setting := config.Plugins["io.containerd.cri.v1.runtime"].Containerd.Runtimes["runc"].Options.SystemdCgroup
	if setting == nil {
		t.Fatalf("SystemdCgroup is not set in\n%s", text)
	}
	return *setting
}

func TestPodNetworkConfiguration(t *testing.T) {
	values := testValues(t)
	for plugin, delegates := range map[string]bool{"bridge": false, localCloudPlugin: true} {
		values.PodPlugin, values.PodPluginDelegates = plugin, delegates
		text, err := render("node/landscape.conflist", values)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Plugins []struct {
				Type     string
				Bridge   string
				Delegate *struct{ Type, Bridge string }
			}
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		first := list.Plugins[0]
		if first.Type != plugin || (first.Delegate != nil) != delegates {
			t.Errorf("plugin %s: got %+v", plugin, first)
		}
		if delegates && (first.Delegate.Type != "bridge" || first.Delegate.Bridge != "cni0") {
			t.Errorf("plugin %s delegates to %+v", plugin, first.Delegate)
		}
	}
}
