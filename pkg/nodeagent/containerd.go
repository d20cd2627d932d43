package nodeagent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	containerdConfigPath = "/etc/containerd/config.toml"
	// containerdDropIns is where extensions and administrators put further files of configuration.
	containerdDropIns = "/etc/containerd/conf.d"
	registriesDir     = "/etc/containerd/certs.d"
	cniPluginDir      = "/opt/cni/bin"
	// containerdBasePath keeps the configuration that the operating system came with, so that what a pool does not ask
	// for any more goes away.
	containerdBasePath = "/var/lib/node-agent/containerd.toml"
	// writtenByNodeAgent is the first line of what node-agent wrote.
	writtenByNodeAgent = "# Written by node-agent from " + containerdBasePath + ".\n"

	// runtimesDir is where extensions of kind ContainerRuntime install programs.
	runtimesDir          = "/var/bin/containerruntimes"
	containerdPathDropIn = "/etc/systemd/system/containerd.service.d/30-env_config.conf"
	containerdPath       = "[Service]\nEnvironment=\"PATH=" + runtimesDir +
		":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
)

// configureContainerd writes containerd's configuration, and says whether containerd has to be started again for it.
func (m *machine) configureContainerd(ctx context.Context, cri *extensionsv1alpha1.CRIConfig) (bool, error) {
	for _, dir := range []string{runtimesDir, containerdDropIns, registriesDir} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			return false, err
		}
	}
	base, err := m.containerdBase(ctx)
	if err != nil {
		return false, fmt.Errorf("configuration of containerd: %w", err)
	}
	wanted, err := mergeContainerdConfig(base, cri)
	if err != nil {
		return false, fmt.Errorf("configuration of containerd %s: %w", containerdConfigPath, err)
	}
	// What differs may have been written by a run that was killed before it started containerd again.
	changed := wanted != nil
	if changed {
		wanted = append([]byte(writtenByNodeAgent), wanted...)
	} else {
		wanted = base
	}
	for _, file := range []struct {
		path    string
		content []byte
	}{{containerdBasePath, base}, {containerdConfigPath, wanted}, {containerdPathDropIn, []byte(containerdPath)}} {
		old, err := os.ReadFile(m.path(file.path))
		changed = changed || file.path != containerdBasePath && (err != nil || !bytes.Equal(old, file.content))
		if err := writeIfChanged(m.path(file.path), file.content, 0o644); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// containerdBase is the configuration that the operating system came with.
func (m *machine) containerdBase(ctx context.Context) ([]byte, error) {
	current, err := os.ReadFile(m.path(containerdConfigPath))
	if errors.Is(err, fs.ErrNotExist) {
		return m.defaultConfig(ctx)
	}
	if err != nil || !bytes.HasPrefix(current, []byte(writtenByNodeAgent)) {
		return current, err
	}
	return os.ReadFile(m.path(containerdBasePath))
}

// defaultContainerdConfig is what containerd does without a configuration.
func defaultContainerdConfig(ctx context.Context) ([]byte, error) {
	return exec.CommandContext(ctx, "containerd", "config", "default").Output()
}

// writeRegistry says how containerd reaches a registry. It reads that anew with every image.
func (m *machine) writeRegistry(registry extensionsv1alpha1.RegistryConfig) error {
	dir, err := registryDir(registry.Upstream)
	if err != nil {
		return err
	}
	return writeIfChanged(m.path(filepath.Join(dir, "hosts.toml")), []byte(hostsTOML(registry)), 0o644)
}

// registryDir is a folder below registriesDir.
func registryDir(upstream string) (string, error) {
	if upstream == "" || upstream == "." || upstream == ".." || strings.Contains(upstream, "/") {
		return "", fmt.Errorf("criConfig.containerd.registries: upstream %q is no registry", upstream)
	}
	return filepath.Join(registriesDir, upstream), nil
}

// defaultCapabilities are those of mirrors that name none.
var defaultCapabilities = []extensionsv1alpha1.RegistryCapability{
	extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability,
}

// hostsTOML is written by hand, because containerd tries hosts in the order of the file.
func hostsTOML(registry extensionsv1alpha1.RegistryConfig) string {
	text := &strings.Builder{}
	text.WriteString("# Written by node-agent.\n")
	if registry.Server != nil && *registry.Server != "" {
		fmt.Fprintf(text, "server = %s\n", quoted(*registry.Server))
	}
	for _, host := range registry.Hosts {
		capabilities := host.Capabilities
		if len(capabilities) == 0 {
			capabilities = defaultCapabilities
		}
		fmt.Fprintf(text, "\n[host.%s]\n  capabilities = %s\n", quoted(host.URL), quoted(capabilities))
		if len(host.CACerts) > 0 {
			fmt.Fprintf(text, "  ca = %s\n", quoted(host.CACerts))
		}
		if host.OverridePath != nil {
			fmt.Fprintf(text, "  override_path = %t\n", *host.OverridePath)
		}
	}
	return text.String()
}

// quoted writes strings as JSON does, which TOML reads.
func quoted[T string | []string | []extensionsv1alpha1.RegistryCapability](value T) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// awaitedRegistries writes those registries whose mirrors have to answer first, and returns the names of those that do
// not yet. Such a mirror may run in the cluster that the machine is about to join, so nothing else waits for it.
func (m *machine) awaitedRegistries(
	ctx context.Context, registries []extensionsv1alpha1.RegistryConfig,
) (missing []string, err error) {
	for _, registry := range registries {
		if !isAwaited(registry) {
			continue
		}
		failed := m.probe(ctx, registry)
		if failed == nil {
			failed = m.writeRegistry(registry)
		}
		if failed != nil {
			missing = append(missing, registry.Upstream)
			err = errors.Join(err, fmt.Errorf("registry %s: %w", registry.Upstream, failed))
		}
	}
	return missing, err
}

func isAwaited(registry extensionsv1alpha1.RegistryConfig) bool {
	return registry.ReadinessProbe != nil && *registry.ReadinessProbe
}

// probeTimeout bounds one question to a mirror.
const probeTimeout = time.Second

// probe asks all mirrors of a registry; any answer is one.
func (m *machine) probe(ctx context.Context, registry extensionsv1alpha1.RegistryConfig) error {
	for _, host := range registry.Hosts {
		client, err := m.clientOf(registry.Upstream, host)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, host.URL, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		client.CloseIdleConnections()
	}
	return nil
}

func (m *machine) clientOf(upstream string, host extensionsv1alpha1.RegistryHost) (*http.Client, error) {
	client := &http.Client{Timeout: probeTimeout}
	if len(host.CACerts) == 0 {
		return client, nil
	}
	trusted := x509.NewCertPool()
	for _, path := range host.CACerts {
		if !filepath.IsAbs(path) {
			path = filepath.Join(registriesDir, upstream, path)
		}
		bundle, err := os.ReadFile(m.path(path))
		if err != nil {
			return nil, err
		}
		if !trusted.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("file %s of mirror %s has no certificate", path, host.URL)
		}
	}
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	return client, nil
}

// without is the configuration less some registries, for those are not applied yet.
func (d *desired) without(registries []string) *desired {
	if len(registries) == 0 {
		return d
	}
	rest := *d
	rest.CRI = d.CRI.DeepCopy()
	isMissing := func(r extensionsv1alpha1.RegistryConfig) bool { return slices.Contains(registries, r.Upstream) }
	rest.CRI.Containerd.Registries = slices.DeleteFunc(rest.CRI.Containerd.Registries, isMissing)
	return &rest
}
