// Package cni is the CNI plugin local-cloud: it attaches pods to the network of the local cloud that their namespace
// belongs to, and hands all other pods to the plugin that the node uses otherwise. It only decides and delegates; the
// work is done by the standard plugins bridge and host-local.
package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// NetworkFile is what the local cloud writes for the namespace of a network, as <networks dir>/<namespace>.json.
type NetworkFile struct {
	Name    string `json:"name"`
	Bridge  string `json:"bridge"`
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway"`
}

// Config is the plugin's configuration in a CNI configuration list.
type Config struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	// NetworksDir is where the local cloud puts the files of its networks. Default /var/lib/local-cloud/networks.
	NetworksDir string `json:"networksDir,omitempty"`
	// Delegate is the configuration for pods of all other namespaces.
	Delegate map[string]any `json:"delegate"`
}

// DefaultNetworksDir is used when the configuration names none.
const DefaultNetworksDir = "/var/lib/local-cloud/networks"

// Delegation is a plugin and the configuration it is to be called with.
type Delegation struct {
	Plugin string
	Config []byte
}

// ParseConfig reads the plugin's configuration. all is the same with every field, as the runtime sent it.
func ParseConfig(stdin []byte) (config Config, all map[string]any, err error) {
	if err := json.Unmarshal(stdin, &config); err != nil {
		return config, nil, fmt.Errorf("decoding the network configuration: %w", err)
	}
	if err := json.Unmarshal(stdin, &all); err != nil {
		return config, nil, fmt.Errorf("decoding the network configuration: %w", err)
	}
	if config.NetworksDir == "" {
		config.NetworksDir = DefaultNetworksDir
	}
	if plugin, _ := config.Delegate["type"].(string); plugin == "" {
		return config, nil, errors.New("network configuration: delegate.type is missing; name the plugin for pods " +
			"outside the local cloud")
	}
	return config, all, nil
}

// Delegate decides how a pod is attached: by the bridge of its namespace's network, or, without one (network is nil),
// by the configured delegate.
func Delegate(config Config, all map[string]any, network *NetworkFile) (Delegation, error) {
	delegate := map[string]any{}
	if network == nil {
		for key, value := range config.Delegate {
			delegate[key] = value
		}
		delegate["name"] = config.Name
	} else {
		delegate = bridgeConfig(*network)
	}
	delegate["cniVersion"] = config.CNIVersion
	for _, key := range []string{"prevResult", "runtimeConfig"} {
		if value, ok := all[key]; ok {
			delegate[key] = value
		}
	}
	data, err := json.Marshal(delegate)
	if err != nil {
		return Delegation{}, fmt.Errorf("encoding the delegated configuration: %w", err)
	}
	return Delegation{Plugin: delegate["type"].(string), Config: data}, nil
}

// bridgeConfig is the configuration of the standard bridge plugin for a network. The name is what host-local keeps its
// leases under.
func bridgeConfig(network NetworkFile) map[string]any {
	return map[string]any{
		"name":      "local-cloud-" + network.Name,
		"type":      "bridge",
		"bridge":    network.Bridge,
		"isGateway": true,
		"ipMasq":    true,
		// Machines send from the addresses of the clusters' pods inside them only when these leave through
		// masquerading.
		"hairpinMode": false,
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": []any{[]any{map[string]any{"subnet": network.Subnet, "gateway": network.Gateway}}},
			"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		},
	}
}

// PodNamespace reads the namespace of the pod from CNI_ARGS ("K8S_POD_NAMESPACE=…;…").
func PodNamespace(args string) string {
	for _, pair := range strings.Split(args, ";") {
		if key, value, ok := strings.Cut(pair, "="); ok && key == "K8S_POD_NAMESPACE" {
			return value
		}
	}
	return ""
}

// ReadNetwork finds the network of a namespace; nil when it has none.
func ReadNetwork(dir, namespace string) (*NetworkFile, error) {
	if namespace == "" || strings.ContainsAny(namespace, "/.") {
		return nil, nil
	}
	return readNetworkFile(filepath.Join(dir, namespace+".json"))
}

func readNetworkFile(path string) (*NetworkFile, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var network NetworkFile
	if err := json.Unmarshal(data, &network); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return &network, nil
}
