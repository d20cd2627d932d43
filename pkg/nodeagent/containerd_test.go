package nodeagent

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	containerd1 = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/usr/lib/cni\"\n"
	containerd2 = "version = 3\nimports = [\"/etc/more.toml\"]\n" +
		"[plugins.\"io.containerd.cri.v1.runtime\"]\nrestrict_oom_score_adj = true\n" +
		"[plugins.\"io.containerd.cri.v1.runtime\".cni]\nbin_dirs = [\"/usr/lib/cni\"]\n"
)

func criConfig(plugins ...extensionsv1alpha1.PluginConfig) *extensionsv1alpha1.CRIConfig {
	return &extensionsv1alpha1.CRIConfig{
		Name: extensionsv1alpha1.CRINameContainerD, CgroupDriver: new(extensionsv1alpha1.CgroupDriverSystemd),
		Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: "pause:1", Plugins: plugins},
	}
}

func addsPlugin(values string, path ...string) extensionsv1alpha1.PluginConfig {
	return extensionsv1alpha1.PluginConfig{Path: path, Values: &apiextensionsv1.JSON{Raw: []byte(values)}}
}

func removesPlugin(path ...string) extensionsv1alpha1.PluginConfig {
	return extensionsv1alpha1.PluginConfig{Op: new(extensionsv1alpha1.RemovePluginPathOperation), Path: path}
}

// Settings have other places in containerd 2, and what extensions ask for in the terms of containerd 1 goes there too.
func TestContainerdConfig(t *testing.T) {
	gvisor := addsPlugin(`{"runtime_type": "io.containerd.runsc.v1", "cni_max_conf_num": 1, "options": null}`,
		"io.containerd.grpc.v1.cri", "containerd", "runtimes", "runsc")
	for name, c := range map[string]struct {
		base, want string
		cri        *extensionsv1alpha1.CRIConfig
	}{
		"containerd 1": {base: containerd1, cri: criConfig(gvisor), want: `
			version = 2
			imports = ["/etc/containerd/conf.d/*.toml"]
			[plugins."io.containerd.grpc.v1.cri"]
			sandbox_image = "pause:1"
			cni.bin_dir = "/opt/cni/bin"
			registry.config_path = "/etc/containerd/certs.d"
			containerd.runtimes.runc.options.SystemdCgroup = true
			containerd.runtimes.runsc = {runtime_type = "io.containerd.runsc.v1", cni_max_conf_num = 1}`},
		"containerd 2": {base: containerd2, cri: criConfig(gvisor), want: `
			version = 3
			imports = ["/etc/more.toml", "/etc/containerd/conf.d/*.toml"]
			[plugins."io.containerd.cri.v1.images"]
			pinned_images.sandbox = "pause:1"
			registry.config_path = "/etc/containerd/certs.d"
			[plugins."io.containerd.cri.v1.runtime"]
			restrict_oom_score_adj = true
			cni.bin_dirs = ["/opt/cni/bin"]
			containerd.runtimes.runc.options.SystemdCgroup = true
			containerd.runtimes.runsc = {runtime_type = "io.containerd.runsc.v1", cni_max_conf_num = 1}`},
		"own terms of containerd 2, and removal": {
			base: strings.Replace(containerd2, "3", "4", 1),
			cri: criConfig(addsPlugin(`{"enable_cdi": false}`, "io.containerd.cri.v1.runtime"),
				removesPlugin("io.containerd.grpc.v1.cri", "cni"),
				removesPlugin("io.containerd.nri.v1.nri", "missing")),
			want: `
			version = 4
			imports = ["/etc/more.toml", "/etc/containerd/conf.d/*.toml"]
			[plugins."io.containerd.cri.v1.images"]
			pinned_images.sandbox = "pause:1"
			registry.config_path = "/etc/containerd/certs.d"
			[plugins."io.containerd.cri.v1.runtime"]
			restrict_oom_score_adj = true
			enable_cdi = false
			containerd.runtimes.runc.options.SystemdCgroup = true`},
	} {
		merged, err := mergeContainerdConfig([]byte(c.base), c.cri)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tables(t, c.want), tables(t, string(merged))); diff != "" {
			t.Errorf("%s: (- want, + got)\n%s", name, diff)
		}
		if again, err := mergeContainerdConfig(merged, c.cri); err != nil || again != nil {
			t.Errorf("%s: a second time there must be nothing to do, got %q %v", name, again, err)
		}
	}
}

func tables(t *testing.T, text string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestContainerdConfigThatCannotBeChanged(t *testing.T) {
	for name, c := range map[string]struct {
		base string
		cri  *extensionsv1alpha1.CRIConfig
		want string
	}{
		"no TOML": {"version =", criConfig(), "toml"},
		"too old": {"root = \"/\"", criConfig(), "version"},
		"no path": {containerd2, criConfig(addsPlugin("{}")), "plugins[0]: path"},
		"through a value": {
			containerd2, criConfig(addsPlugin("{}", runtimePlugin, "restrict_oom_score_adj")), "is not a table",
		},
		"no object": {
			containerd2, criConfig(addsPlugin("1", "io.containerd.cri.v1.runtime")), "plugins[0]: values",
		},
	} {
		if _, err := mergeContainerdConfig([]byte(c.base), c.cri); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// testMachine has containerd2 as its operating system's configuration.
func testMachine(t *testing.T) (*machine, *recordedUnits) {
	t.Helper()
	units := &recordedUnits{}
	defaultConfig := func(context.Context) ([]byte, error) { return []byte(containerd2), nil }
	return &machine{root: t.TempDir(), log: logr.Discard(), units: units, defaultConfig: defaultConfig}, units
}

func (m *machine) mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(m.path(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// containerd starts again for a new configuration, and has none of the settings that a pool does not ask for any more.
func TestContainerdIsConfiguredBeforeItStarts(t *testing.T) {
	m, units := testMachine(t)
	kata := addsPlugin(`{"runtime_type": "io.containerd.kata.v2"}`, criPlugin, "containerd", "runtimes", "kata")
	first, second := &desired{CRI: criConfig(kata)}, &desired{CRI: criConfig()}
	if err := m.apply(t.Context(), diff(&desired{}, first)); err != nil {
		t.Fatal(err)
	}
	want := []string{"reload", "enable containerd.service", "restart containerd.service"}
	if !slices.Equal(units.calls, want) {
		t.Errorf("got %v, want %v", units.calls, want)
	}
	config := m.mustRead(t, containerdConfigPath)
	if !strings.HasPrefix(config, writtenByNodeAgent) || !strings.Contains(config, "kata.v2") {
		t.Errorf("got %s", config)
	}
	if dropIn := m.mustRead(t, containerdPathDropIn); !strings.Contains(dropIn, runtimesDir) {
		t.Errorf("containerd does not find other runtimes: %s", dropIn)
	}
	if err := m.apply(t.Context(), diff(first, second)); err != nil {
		t.Fatal(err)
	}
	config = m.mustRead(t, containerdConfigPath)
	if strings.Contains(config, "kata") || !strings.Contains(config, "restrict_oom_score_adj") {
		t.Errorf("got %s", config)
	}
	if todo := diff(second, &desired{CRI: criConfig()}); !todo.empty() {
		t.Errorf("nothing changed, but there is something to do: %+v", todo)
	}
}

// kubelet asks containerd for the cgroup driver only when it starts, so it does that again after containerd.
func TestKubeletStartsAgainForAnotherCgroupDriver(t *testing.T) {
	withDriver := func(driver extensionsv1alpha1.CgroupDriverName, cri *extensionsv1alpha1.CRIConfig) *desired {
		cri.CgroupDriver = &driver
		return &desired{CRI: cri, Units: []extensionsv1alpha1.Unit{unit(kubeletUnit, "k")}}
	}
	restarts := []string{
		"reload", "enable containerd.service", "restart containerd.service", "enable kubelet.service",
		"restart kubelet.service",
	}
	before := withDriver(extensionsv1alpha1.CgroupDriverCgroupfs, criConfig())
	otherPlugin := criConfig(addsPlugin("{}", runtimePlugin))
	for name, c := range map[string]struct {
		after *desired
		want  []string
	}{
		"another driver": {withDriver(extensionsv1alpha1.CgroupDriverSystemd, criConfig()), restarts},
		"another plugin": {withDriver(extensionsv1alpha1.CgroupDriverCgroupfs, otherPlugin), restarts[:3]},
	} {
		m, units := testMachine(t)
		if err := m.apply(t.Context(), diff(&desired{}, before)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(units.calls, restarts) {
			t.Errorf("at first: got %v, want %v", units.calls, restarts)
		}
		units.calls = nil
		if err := m.apply(t.Context(), diff(before, c.after)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(units.calls, c.want) {
			t.Errorf("%s: got %v, want %v", name, units.calls, c.want)
		}
	}
}

// A machine whose operating system asks for the same goes on.
func TestContainerdGoesOnWithTheSameConfiguration(t *testing.T) {
	m, units := testMachine(t)
	merged, err := mergeContainerdConfig([]byte(containerd2), criConfig())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(writeIfChanged(m.path(containerdConfigPath), merged, 0o644),
		writeIfChanged(m.path(containerdPathDropIn), []byte(containerdPath), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.apply(t.Context(), diff(&desired{}, &desired{CRI: criConfig()})); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(units.calls, []string{"reload"}) || m.mustRead(t, containerdConfigPath) != string(merged) {
		t.Errorf("calls %v, configuration %s", units.calls, m.mustRead(t, containerdConfigPath))
	}
}

func TestRegistries(t *testing.T) {
	m, units := testMachine(t)
	withRegistries := func(registries ...extensionsv1alpha1.RegistryConfig) *desired {
		containerd := &extensionsv1alpha1.ContainerdConfig{Registries: registries}
		return &desired{CRI: &extensionsv1alpha1.CRIConfig{Containerd: containerd}}
	}
	mirrored := withRegistries(extensionsv1alpha1.RegistryConfig{
		Upstream: "docker.io", Server: new("https://registry-1.docker.io"),
		Hosts: []extensionsv1alpha1.RegistryHost{
			{URL: "https://z.example", CACerts: []string{"/etc/ca.crt"}, OverridePath: new(true)},
			{
				URL: "http://a.example", Capabilities: []extensionsv1alpha1.RegistryCapability{
					extensionsv1alpha1.PullCapability,
				},
			},
		},
	})
	if err := m.apply(t.Context(), diff(withRegistries(), mirrored)); err != nil {
		t.Fatal(err)
	}
	want := `# Written by node-agent.
server = "https://registry-1.docker.io"

[host."https://z.example"]
  capabilities = ["pull","resolve"]
  ca = ["/etc/ca.crt"]
  override_path = true

[host."http://a.example"]
  capabilities = ["pull"]
`
	if got := m.mustRead(t, "/etc/containerd/certs.d/docker.io/hosts.toml"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	tables(t, want)
	if slices.Contains(units.calls, "restart containerd.service") {
		t.Error("containerd reads registries by itself, it must not be started again")
	}
	if err := m.apply(t.Context(), diff(mirrored, withRegistries())); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.path("/etc/containerd/certs.d/docker.io")); !os.IsNotExist(err) {
		t.Errorf("the registry must be gone: %v", err)
	}
	for _, upstream := range []string{"", "..", "a/b"} {
		if err := m.writeRegistry(extensionsv1alpha1.RegistryConfig{Upstream: upstream}); err == nil {
			t.Errorf("%q is no registry", upstream)
		}
	}
}

// A mirror that runs in the cluster is used once it answers; the rest of the configuration does not wait for it.
func TestRegistriesThatAreAwaited(t *testing.T) {
	m, _ := testMachine(t)
	mirror := httptest.NewTLSServer(nil)
	registry := extensionsv1alpha1.RegistryConfig{
		Upstream: "quay.io", ReadinessProbe: new(true),
		Hosts: []extensionsv1alpha1.RegistryHost{{URL: mirror.URL, CACerts: []string{"ca.crt"}}},
	}
	wanted := &desired{CRI: criConfig()}
	wanted.CRI.Containerd.Registries = []extensionsv1alpha1.RegistryConfig{registry}
	todo := diff(&desired{}, wanted)
	if err := m.apply(t.Context(), todo); err != nil {
		t.Fatal(err)
	}
	missing, err := m.awaitedRegistries(t.Context(), todo.registries)
	if err == nil || !slices.Equal(missing, []string{"quay.io"}) {
		t.Fatalf("nobody knows the mirror's certificate yet: %v %v", missing, err)
	}
	todo = diff(wanted.without(missing), wanted)
	if !todo.onlyAwaits() || todo.empty() {
		t.Errorf("only the registry must be left: %+v", todo)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mirror.Certificate().Raw})
	dir := "/etc/containerd/certs.d/quay.io"
	if err := writeIfChanged(m.path(filepath.Join(dir, "ca.crt")), []byte("none"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = m.awaitedRegistries(t.Context(), todo.registries); err == nil ||
		!strings.Contains(err.Error(), dir+"/ca.crt of mirror "+mirror.URL+" has no certificate") {
		t.Errorf("got %v for a file without a certificate", err)
	}
	if err := writeIfChanged(m.path(filepath.Join(dir, "ca.crt")), certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	if missing, err = m.awaitedRegistries(t.Context(), todo.registries); err != nil || len(missing) > 0 {
		t.Errorf("the mirror answers: %v %v", missing, err)
	}
	if !strings.Contains(m.mustRead(t, dir+"/hosts.toml"), mirror.URL) {
		t.Error("the mirror must be used")
	}
	mirror.Close()
	if _, err = m.awaitedRegistries(t.Context(), todo.registries); err == nil {
		t.Error("the mirror is gone")
	}
}

func FuzzContainerdConfig(f *testing.F) {
	f.Add([]byte(containerd2), []byte(`{"a": [1, null, {"b": 1.5}]}`), "io.containerd.cri.v1.runtime")
	f.Fuzz(func(_ *testing.T, base, values []byte, path string) {
		_, _ = mergeContainerdConfig(base, criConfig(addsPlugin(string(values), path)))
	})
}
