package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Environment is what a container runtime passes to a plugin.
type Environment struct {
	// Command is ADD, DEL, CHECK, GC, STATUS or VERSION.
	Command     string
	ContainerID string
	Args        string
	// Path lists the directories with plugins, separated by colons.
	Path string
}

// EnvironmentFromOS reads the CNI_ variables.
func EnvironmentFromOS() Environment {
	return Environment{
		Command:     os.Getenv("CNI_COMMAND"),
		ContainerID: os.Getenv("CNI_CONTAINERID"),
		Args:        os.Getenv("CNI_ARGS"),
		Path:        os.Getenv("CNI_PATH"),
	}
}

// supportedVersions are those of the plugins delegated to.
var supportedVersions = []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// Run performs the command: it calls the plugin that is responsible for the pod with its configuration. How a pod was
// attached is remembered until it is detached, because its network may be gone by then.
func Run(env Environment, stdin io.Reader, stdout, stderr io.Writer) error {
	if env.Command == "VERSION" {
		return json.NewEncoder(stdout).Encode(map[string]any{
			"cniVersion": "1.1.0", "supportedVersions": supportedVersions,
		})
	}
	input, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("reading the network configuration: %w", err)
	}
	config, all, err := ParseConfig(input)
	if err != nil {
		return err
	}
	attachments := attachments{dir: filepath.Join(filepath.Dir(config.NetworksDir), "attachments")}
	network, err := networkFor(env, config, attachments)
	if err != nil {
		return err
	}
	delegation, err := Delegate(config, all, network)
	if err != nil {
		return err
	}
	if err := call(delegation, env.Path, stdout, stderr); err != nil {
		return err
	}
	if env.Command == "DEL" {
		return attachments.forget(env.ContainerID)
	}
	return nil
}

// networkFor is the network a pod is, or is to be, attached to.
func networkFor(env Environment, config Config, attachments attachments) (*NetworkFile, error) {
	namespace := PodNamespace(env.Args)
	if env.Command != "ADD" {
		network, err := attachments.recall(env.ContainerID)
		if network != nil || err != nil {
			return network, err
		}
		return ReadNetwork(config.NetworksDir, namespace)
	}
	network, err := ReadNetwork(config.NetworksDir, namespace)
	if network == nil || err != nil {
		return nil, err
	}
	return network, attachments.remember(env.ContainerID, *network)
}

// call runs the plugin with the environment of this process.
func call(delegation Delegation, path string, stdout, stderr io.Writer) error {
	plugin, err := findPlugin(delegation.Plugin, path)
	if err != nil {
		return err
	}
	cmd := exec.Command(plugin)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", plugin, err)
	}
	_, writeErr := input.Write(delegation.Config)
	closeErr := input.Close()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			// The plugin has described its error on stdout already, as CNI demands.
			return &DelegateError{Plugin: plugin, Code: exit.ExitCode()}
		}
		return fmt.Errorf("running %s: %w", plugin, err)
	}
	return errors.Join(writeErr, closeErr)
}

// DelegateError says that the delegated plugin failed after it had reported why.
type DelegateError struct {
	Plugin string
	Code   int
}

func (e *DelegateError) Error() string { return fmt.Sprintf("%s exited with %d", e.Plugin, e.Code) }

func findPlugin(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("plugin %q is in none of %q (CNI_PATH)", name, path)
}

// attachments remembers the network of each container that is attached to one.
type attachments struct {
	dir string
}

func (a attachments) path(container string) string {
	return filepath.Join(a.dir, filepath.Base(container)+".json")
}

func (a attachments) remember(container string, network NetworkFile) error {
	data, err := json.Marshal(network)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return err
	}
	temporary := a.path(container) + ".tmp"
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, a.path(container))
}

func (a attachments) recall(container string) (*NetworkFile, error) {
	return readNetworkFile(a.path(container))
}

func (a attachments) forget(container string) error {
	if err := os.Remove(a.path(container)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
