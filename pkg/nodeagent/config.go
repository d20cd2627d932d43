// Package nodeagent turns a machine into a node: it fetches the machine's OperatingSystemConfig from the cluster,
// writes its files, runs its systemd units, and keeps doing so when the configuration changes. It knows nothing of a
// provider.
//
// Its loop is its own, not a controller of controller-runtime: who it is (a bootstrap token, then kubelet's
// certificate) and where the API server is, are in files that it or kubelet rewrites, so every round connects anew;
// and all that it follows is one Secret and, where machines are updated in place, its own Node.
package nodeagent

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// Paths on the machine. ConfigPath is written by the user data; the others by node-agent.
const (
	ConfigPath = "/var/lib/node-agent/config.yaml"
	// AppliedPath remembers the configuration that was applied last, to know what to take away.
	AppliedPath = "/var/lib/node-agent/applied.yaml"
	// BootstrapKubeconfigPath is what kubelet requests its first certificate with.
	BootstrapKubeconfigPath = "/var/lib/kubelet/kubeconfig-bootstrap"
	// KubeletKubeconfigPath is written by kubelet once it has its certificate; node-agent then uses it too.
	KubeletKubeconfigPath = "/var/lib/kubelet/kubeconfig-real"
	// KubeletConfigPath holds the kubelet's settings.
	KubeletConfigPath = "/var/lib/kubelet/config/kubelet"
	// KubeletCAPath holds the authorities of the kubelet's clients, ClusterCAPath those of the API server, where
	// machines are updated in place.
	KubeletCAPath = "/var/lib/kubelet/ca.crt"
	ClusterCAPath = "/var/lib/node-agent/cluster-ca.crt"
)

// Config tells node-agent who it is and where its cluster is.
type Config struct {
	APIServer APIServer `json:"apiServer"`
	// BootstrapToken is "<id>.<secret>", valid until the node has joined.
	BootstrapToken string `json:"bootstrapToken,omitempty"`
	// OperatingSystemConfigSecretName is the Secret in kube-system with key osc.yaml.
	OperatingSystemConfigSecretName string `json:"operatingSystemConfigSecretName"`
	// MachineName is the name of the machine, which is also the name of the node.
	MachineName string `json:"machineName,omitempty"`
}

// APIServer is where the cluster is reached.
type APIServer struct {
	// Server is the URL.
	Server string `json:"server"`
	// CABundle is the base64 encoded PEM bundle that signed the server's certificate.
	CABundle string `json:"caBundle"`
}

// LoadConfig reads and checks the configuration.
func LoadConfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration that the machine's user data writes: %w", err)
	}
	config := &Config{}
	if err := strictyaml.Unmarshal(data, config, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

func (c *Config) validate() error {
	var problems []error
	if c.APIServer.Server == "" {
		problems = append(problems, errors.New("apiServer.server: must be the URL of the cluster's API server"))
	}
	if _, err := c.caBundle(); err != nil {
		problems = append(problems, fmt.Errorf("apiServer.caBundle: must be base64: %w", err))
	}
	if c.OperatingSystemConfigSecretName == "" {
		problems = append(problems, errors.New("operatingSystemConfigSecretName: must name a Secret in kube-system"))
	}
	return errors.Join(problems...)
}

func (c *Config) caBundle() ([]byte, error) {
	return base64.StdEncoding.DecodeString(c.APIServer.CABundle)
}

// bootstrapClient is the connection with the bootstrap token.
func (c *Config) bootstrapClient() (*rest.Config, error) {
	bundle, err := c.caBundle()
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: c.APIServer.Server, BearerToken: c.BootstrapToken, TLSClientConfig: rest.TLSClientConfig{CAData: bundle},
	}, nil
}
