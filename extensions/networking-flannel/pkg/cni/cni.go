// Package cni is the CNI plugin flannel: it reads what flanneld has written about the node's subnet and hands the pod
// to the standard plugins bridge and host-local with it. The configuration format is that of the published plugin:
// {"type": "flannel", "subnetFile": "/run/flannel/subnet.env", "delegate": {…}}. What flanneld wrote is read by
// ParseSubnet, for flannel and the published plugin read it in their main packages, which cannot be imported.
package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// DefaultSubnetFile is where flanneld writes the node's subnet.
const DefaultSubnetFile = "/run/flannel/subnet.env"

// Subnet is what flanneld knows of the node.
type Subnet struct {
	// Network is the network of all pods, Subnet that of this node's; both in CIDR form.
	Network, Subnet string
	MTU             int
	// Masquerade says that flanneld masquerades, so that the bridge must not.
	Masquerade bool
}

// ParseSubnet reads flanneld's file of KEY=value lines.
func ParseSubnet(data []byte) (Subnet, error) {
	values := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = value
		}
	}
	subnet := Subnet{
		Network: values["FLANNEL_NETWORK"], Subnet: values["FLANNEL_SUBNET"],
		Masquerade: values["FLANNEL_IPMASQ"] == "true",
	}
	if subnet.Network == "" || subnet.Subnet == "" {
		return Subnet{}, fmt.Errorf("FLANNEL_NETWORK and FLANNEL_SUBNET must be set")
	}
	mtu, err := strconv.Atoi(values["FLANNEL_MTU"])
	if err != nil {
		return Subnet{}, fmt.Errorf("FLANNEL_MTU %q: must be a number", values["FLANNEL_MTU"])
	}
	subnet.MTU = mtu
	return subnet, nil
}

// Delegate turns the plugin's configuration into that of the bridge plugin; what the configuration says under
// "delegate" wins over the defaults.
func Delegate(config map[string]any, subnet Subnet) map[string]any {
	delegate := map[string]any{
		"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "hairpinMode": true,
		"ipMasq": !subnet.Masquerade, "mtu": subnet.MTU,
	}
	if extra, ok := config["delegate"].(map[string]any); ok {
		for key, value := range extra {
			delegate[key] = value
		}
	}
	delegate["ipam"] = map[string]any{
		"type":   "host-local",
		"ranges": []any{[]any{map[string]any{"subnet": networkOf(subnet.Subnet)}}},
		"routes": []any{map[string]any{"dst": subnet.Network}},
	}
	for _, key := range []string{"name", "cniVersion", "prevResult", "runtimeConfig"} {
		if value, ok := config[key]; ok {
			delegate[key] = value
		}
	}
	return delegate
}

// networkOf turns flanneld's "10.3.0.1/24", the address of the bridge, into the CIDR of the network.
func networkOf(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return cidr
	}
	return prefix.Masked().String()
}

// Run carries out the CNI command of the environment: it passes the command on to the delegate.
func Run(stdin io.Reader, stdout, stderr io.Writer) error {
	if os.Getenv("CNI_COMMAND") == "VERSION" {
		return json.NewEncoder(stdout).Encode(map[string]any{
			"cniVersion": "1.0.0", "supportedVersions": []string{"0.3.1", "0.4.0", "1.0.0"},
		})
	}
	config := map[string]any{}
	if err := json.NewDecoder(stdin).Decode(&config); err != nil {
		return fmt.Errorf("network configuration: %w", err)
	}
	path, _ := config["subnetFile"].(string)
	if path == "" {
		path = DefaultSubnetFile
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("flanneld has not written the node's subnet yet: %w", err)
	}
	subnet, err := ParseSubnet(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	delegate := Delegate(config, subnet)
	plugin, ok := delegate["type"].(string)
	if !ok {
		return fmt.Errorf("network configuration: delegate.type must be the name of a plugin")
	}
	return call(plugin, delegate, stdout, stderr)
}

func call(plugin string, config map[string]any, stdout, stderr io.Writer) error {
	input, err := json.Marshal(config)
	if err != nil {
		return err
	}
	for _, dir := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		file := filepath.Join(dir, filepath.Base(plugin))
		if _, err := os.Stat(file); err != nil {
			continue
		}
		command := exec.Command(file)
		command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), stdout, stderr
		return command.Run()
	}
	return fmt.Errorf("plugin %q is in none of %q (CNI_PATH)", plugin, os.Getenv("CNI_PATH"))
}
