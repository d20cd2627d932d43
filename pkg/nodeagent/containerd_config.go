package nodeagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/BurntSushi/toml"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Plugins of containerd that do what Kubernetes asks for: one in containerd 1 (configuration version 2), several since.
const (
	criPlugin     = "io.containerd.grpc.v1.cri"
	runtimePlugin = "io.containerd.cri.v1.runtime"
	imagesPlugin  = "io.containerd.cri.v1.images"
)

// tomlPath leads to a value in nested tables.
type tomlPath []string

// settingPaths say where a version of containerd's configuration has a setting.
type settingPaths struct {
	registries, sandboxImage, systemdCgroup, pluginDir, pluginDirs tomlPath
}

var (
	pathsOfContainerd1 = settingPaths{
		registries:    tomlPath{"plugins", criPlugin, "registry", "config_path"},
		sandboxImage:  tomlPath{"plugins", criPlugin, "sandbox_image"},
		systemdCgroup: tomlPath{"plugins", criPlugin, "containerd", "runtimes", "runc", "options", "SystemdCgroup"},
		pluginDir:     tomlPath{"plugins", criPlugin, "cni", "bin_dir"},
	}
	pathsOfContainerd2 = settingPaths{
		registries:    tomlPath{"plugins", imagesPlugin, "registry", "config_path"},
		sandboxImage:  tomlPath{"plugins", imagesPlugin, "pinned_images", "sandbox"},
		systemdCgroup: tomlPath{"plugins", runtimePlugin, "containerd", "runtimes", "runc", "options", "SystemdCgroup"},
		pluginDir:     tomlPath{"plugins", runtimePlugin, "cni", "bin_dir"},
		// Since containerd 2.2, in place of the other.
		pluginDirs: tomlPath{"plugins", runtimePlugin, "cni", "bin_dirs"},
	}
)

// movedSettings are where containerd 2 has what extensions that were written for containerd 1 name.
var movedSettings = []struct{ from, to tomlPath }{
	{tomlPath{criPlugin, "containerd"}, tomlPath{runtimePlugin, "containerd"}},
	{tomlPath{criPlugin, "cni"}, tomlPath{runtimePlugin, "cni"}},
	{tomlPath{criPlugin, "registry"}, tomlPath{imagesPlugin, "registry"}},
	{tomlPath{criPlugin, "image_decryption"}, tomlPath{imagesPlugin, "image_decryption"}},
}

// mergeContainerdConfig returns containerd's configuration with what the pool asks for, or nil where it has that.
func mergeContainerdConfig(text []byte, cri *extensionsv1alpha1.CRIConfig) ([]byte, error) {
	config := map[string]any{}
	if err := toml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	before, err := toml.Marshal(config)
	if err != nil {
		return nil, err
	}
	if err := changeContainerdConfig(config, cri); err != nil {
		return nil, err
	}
	after, err := toml.Marshal(config)
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	return after, nil
}

func changeContainerdConfig(config map[string]any, cri *extensionsv1alpha1.CRIConfig) error {
	paths := pathsOfContainerd2
	switch version := config["version"]; version {
	case int64(2):
		paths = pathsOfContainerd1
	case int64(3), int64(4):
	default:
		return fmt.Errorf("version: %v is not known; 2, 3 and 4 are", version)
	}
	imports, _ := config["imports"].([]any)
	if pattern := any(containerdDropIns + "/*.toml"); !slices.Contains(imports, pattern) {
		config["imports"] = append(slices.Clone(imports), pattern)
	}
	if err := setTOML(config, paths.registries, registriesDir); err != nil {
		return err
	}
	// Where no folder is named, it is this one in every version.
	if err := replaceTOML(config, paths.pluginDir, cniPluginDir); err != nil {
		return err
	}
	if err := replaceTOML(config, paths.pluginDirs, []any{cniPluginDir}); err != nil {
		return err
	}
	if driver := cri.CgroupDriver; driver != nil {
		if err := setTOML(config, paths.systemdCgroup, *driver == extensionsv1alpha1.CgroupDriverSystemd); err != nil {
			return err
		}
	}
	return changeContainerd(config, cri.Containerd, paths)
}

func changeContainerd(config map[string]any, wanted *extensionsv1alpha1.ContainerdConfig, paths settingPaths) error {
	if wanted == nil {
		return nil
	}
	if wanted.SandboxImage != "" {
		if err := setTOML(config, paths.sandboxImage, wanted.SandboxImage); err != nil {
			return err
		}
	}
	for i, plugin := range wanted.Plugins {
		if err := changePlugin(config, plugin, paths.pluginDirs != nil); err != nil {
			return fmt.Errorf("criConfig.containerd.plugins[%d]: %w", i, err)
		}
	}
	return nil
}

// changePlugin adds values to a table of a plugin, or removes what lies at a path.
func changePlugin(config map[string]any, plugin extensionsv1alpha1.PluginConfig, containerd2 bool) error {
	if len(plugin.Path) == 0 {
		return errors.New("path: must be set")
	}
	path := append(tomlPath{"plugins"}, plugin.Path...)
	if containerd2 {
		path = append(tomlPath{"plugins"}, movedPath(plugin.Path)...)
	}
	if plugin.Op != nil && *plugin.Op == extensionsv1alpha1.RemovePluginPathOperation {
		table, err := tableAt(config, path[:len(path)-1], false)
		delete(table, path[len(path)-1])
		return err
	}
	if plugin.Op != nil && *plugin.Op != extensionsv1alpha1.AddPluginPathOperation {
		return fmt.Errorf("op: %q is not known; add and remove are", *plugin.Op)
	}
	values, err := tomlValues(plugin.Values)
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	table, err := tableAt(config, path, true)
	if err != nil {
		return err
	}
	maps.Copy(table, values)
	return nil
}

// movedPath is where containerd 2 has a setting of the plugins.
func movedPath(path tomlPath) tomlPath {
	for _, moved := range movedSettings {
		if len(path) >= len(moved.from) && slices.Equal(path[:len(moved.from)], moved.from) {
			return slices.Concat(moved.to, path[len(moved.from):])
		}
	}
	return path
}

func setTOML(config map[string]any, path tomlPath, value any) error {
	table, err := tableAt(config, path[:len(path)-1], true)
	if err != nil {
		return err
	}
	table[path[len(path)-1]] = value
	return nil
}

// replaceTOML sets what is set already.
func replaceTOML(config map[string]any, path tomlPath, value any) error {
	if len(path) == 0 {
		return nil
	}
	table, err := tableAt(config, path[:len(path)-1], false)
	if err == nil && table[path[len(path)-1]] != nil {
		table[path[len(path)-1]] = value
	}
	return err
}

// tableAt returns the table at a path. One that is missing is made, or nil.
func tableAt(config map[string]any, path tomlPath, create bool) (map[string]any, error) {
	for i, key := range path {
		next, isTable := config[key].(map[string]any)
		switch {
		case isTable:
		case config[key] != nil:
			return nil, fmt.Errorf("%q is not a table", path[:i+1])
		case !create:
			return nil, nil
		default:
			next = map[string]any{}
			config[key] = next
		}
		config = next
	}
	return config, nil
}

// tomlValues are the values of an object in JSON. TOML has no null, and tells integers from other numbers.
func tomlValues(values *apiextensionsv1.JSON) (map[string]any, error) {
	if values == nil {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(values.Raw))
	decoder.UseNumber()
	decoded := map[string]any{}
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	converted, _ := tomlValue(decoded).(map[string]any)
	return converted, nil
}

func tomlValue(value any) any {
	switch v := value.(type) {
	case json.Number:
		if integer, err := v.Int64(); err == nil {
			return integer
		}
		number, _ := v.Float64()
		return number
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for key, field := range v {
			v[key] = tomlValue(field)
		}
	case []any:
		v = slices.DeleteFunc(v, func(item any) bool { return item == nil })
		for i, item := range v {
			v[i] = tomlValue(item)
		}
		return v
	}
	return value
}
