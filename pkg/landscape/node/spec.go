// Package node runs the nodes of a local landscape, each of them a container made with nothing but the kernel.
//
// A supervisor process stays in the host's namespaces and outlives `make up`. It starts the node's first process in
// mount, PID, network, UTS, IPC and cgroup namespaces of its own; that process builds the node's file system and
// network and becomes systemd. The node's network has no link to the host: the supervisor opens listeners on a
// loopback address of the host and hands them to a forwarder that runs inside the node's network.
//
// A landscape may have other nodes beside its first one. Each has a supervisor and namespaces of its own, and one link:
// to the bridge of the first node, with which it ends.
//
// Everything ends with the supervisor: the kernel kills the node when the supervisor dies, and mounts, links and
// processes go with their namespaces. What is left, the cgroup directories, is removed by Cleanup.
//
// Its loops keep processes and connections going. They are no controllers: they run before there is an API server,
// and for it.
package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
)

// Spec is what a node is made of. It is written to a file that the node's processes read.
type Spec struct {
	// Name of the landscape; cgroup directories are named for it.
	Name string `json:"name"`
	// Cgroup is the node's directory in those of the landscape. Empty is that of the first node.
	Cgroup string `json:"cgroup,omitempty"`
	// Hostname of the node and its name in the runtime cluster.
	Hostname string `json:"hostname"`
	// Dir is the node's folder on the host. It holds the upper layer of the root file system, the volumes and the logs.
	Dir string `json:"dir"`
	// RootFS is the folder with the read-only root file system.
	RootFS string `json:"rootFS"`
	// Address of the node with its prefix length, such as 172.18.0.2/24.
	Address string `json:"address"`
	// Gateway is the next hop of the default route. Nobody answers there.
	Gateway string `json:"gateway"`
	// Bridge is the name of the link that carries Address.
	Bridge string `json:"bridge"`
	// Switch is the folder of the node whose bridge this node is connected to, and with which it ends. It is empty for
	// the first node: that one's bridge leads to others only when they connect themselves to it.
	Switch string `json:"switch,omitempty"`
	// Routes lead to the pods of other nodes.
	Routes []Route `json:"routes,omitempty"`
	// Mounts are bound into the node's file system.
	Mounts []Mount `json:"mounts,omitempty"`
	// Files are written into the node's file system at every start.
	Files []File `json:"files,omitempty"`
	// Links are symbolic links made at every start, by path in the node.
	Links map[string]string `json:"links,omitempty"`
	// Forwards are the host's ways into the node.
	Forwards []Forward `json:"forwards,omitempty"`
	// Helpers are host processes that run inside the node's network, such as the registry. They are kept running.
	Helpers []Helper `json:"helpers,omitempty"`
}

// Mount binds a host file or folder into the node.
type Mount struct {
	Source string `json:"source"`
	// Target is the absolute path in the node.
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// File is a file of the node.
type File struct {
	// Path is the absolute path in the node.
	Path    string      `json:"path"`
	Content string      `json:"content,omitempty"`
	Mode    os.FileMode `json:"mode,omitempty"`
	// Source is a host file whose content is copied, instead of Content.
	Source string `json:"source,omitempty"`
}

// Route leads to a network behind another node.
type Route struct {
	// Network is what lies there, such as 10.1.16.0/20.
	Network string `json:"network"`
	// Via is the address of that node. It need not be there.
	Via string `json:"via"`
}

// Forward lets the host reach one TCP port of the node.
type Forward struct {
	// Listen is the address on the host, in 127.0.0.0/8.
	Listen string `json:"listen"`
	// Target is the address in the node.
	Target string `json:"target"`
}

// Helper is a process in the host's file system and the node's network.
type Helper struct {
	// Name names the log file of the helper.
	Name string `json:"name"`
	// Args are the arguments for the running executable itself.
	Args []string `json:"args"`
}

// LoadSpec reads a spec that Save wrote.
func LoadSpec(path string) (Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, fmt.Errorf("node spec: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return Spec{}, fmt.Errorf("node spec %s: %w", path, err)
	}
	return spec, nil
}

// Save writes the spec to its place in the node's folder and returns the path.
func (s Spec) Save() (string, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", fmt.Errorf("node spec: %w", err)
	}
	path := s.Path()
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", fmt.Errorf("node folder: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("node spec: %w", err)
	}
	return path, nil
}

// Path is where Save puts the spec.
func (s Spec) Path() string { return filepath.Join(s.Dir, "spec.json") }

// Equal says whether two specs make the same node.
func (s Spec) Equal(other Spec) bool { return reflect.DeepEqual(s, other) }

// LogDir is where the logs of the node, its supervisor and helpers lie on the host.
func (s Spec) LogDir() string { return filepath.Join(s.Dir, "log") }

// cgroup is the node's directory in those of the landscape.
func (s Spec) cgroup() string { return cmp.Or(s.Cgroup, firstCgroup) }

func (s Spec) pidFile() string { return filepath.Join(s.Dir, "supervisor.json") }

// upper, work and root are the folders of the overlay. root stays empty on the host: the overlay is mounted in the
// node's mount namespace only.
func (s Spec) upper() string { return filepath.Join(s.Dir, "overlay", "upper") }
func (s Spec) work() string  { return filepath.Join(s.Dir, "overlay", "work") }
func (s Spec) root() string  { return filepath.Join(s.Dir, "overlay", "root") }
