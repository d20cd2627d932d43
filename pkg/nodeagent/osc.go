package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// DataKey is the key of the Secret that holds the OperatingSystemConfig.
const DataKey = extensionsv1alpha1.NodeAgentSecretDataKey

// desired is what an OperatingSystemConfig asks of the machine: the core's part and what the extension added in status.
type desired struct {
	Files []extensionsv1alpha1.File `json:"files,omitempty"`
	Units []extensionsv1alpha1.Unit `json:"units,omitempty"`
	// CRI configures containerd; nil leaves it to the operating system.
	CRI *extensionsv1alpha1.CRIConfig `json:"cri,omitempty"`
	// InPlace is what waits for a drain; nil where machines are replaced for that.
	InPlace *inPlace `json:"inPlace,omitempty"`
}

// registries are those that containerd has settings for.
func (d *desired) registries() []extensionsv1alpha1.RegistryConfig {
	if d.CRI == nil || d.CRI.Containerd == nil {
		return nil
	}
	return d.CRI.Containerd.Registries
}

// containerd is the configuration of containerd itself, without the registries, which it reads by itself.
func (d *desired) containerd() *extensionsv1alpha1.CRIConfig {
	if d.CRI == nil || d.CRI.Containerd == nil {
		return d.CRI
	}
	config := d.CRI.DeepCopy()
	config.Containerd.Registries = nil
	return config
}

// decode reads what an OperatingSystemConfig asks of the machine of the given host name.
func decode(data []byte, host string) (*desired, error) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(data, osc); err != nil {
		return nil, fmt.Errorf("%s: %w", DataKey, err)
	}
	err := errors.Join(checkFiles("spec.files", osc.Spec.Files),
		checkFiles("status.extensionFiles", osc.Status.ExtensionFiles))
	if err != nil {
		return nil, err
	}
	return &desired{
		Files: filesOf(host, append(slices.Clone(osc.Spec.Files), osc.Status.ExtensionFiles...)),
		Units: mergeUnits(osc.Spec.Units, osc.Status.ExtensionUnits),
		CRI:   osc.Spec.CRIConfig, InPlace: inPlaceOf(osc),
	}, nil
}

// cgroupDriver is the one that is asked for, or empty.
func (d *desired) cgroupDriver() extensionsv1alpha1.CgroupDriverName {
	if d.CRI == nil || d.CRI.CgroupDriver == nil {
		return ""
	}
	return *d.CRI.CgroupDriver
}

// filesOf are the files that a machine gets. One for it alone takes the place of one of the same path for all.
func filesOf(host string, files []extensionsv1alpha1.File) []extensionsv1alpha1.File {
	isOwn := func(file extensionsv1alpha1.File) bool { return file.HostName != nil && *file.HostName == host }
	own := map[string]bool{}
	for _, file := range files {
		if isOwn(file) {
			own[file.Path] = true
		}
	}
	return slices.DeleteFunc(files, func(file extensionsv1alpha1.File) bool {
		return !isOwn(file) && (file.HostName != nil || own[file.Path])
	})
}

func checkFiles(field string, files []extensionsv1alpha1.File) error {
	for i, file := range files {
		if file.Path == "" {
			return fmt.Errorf("%s: %s[%d].path: must be set", DataKey, field, i)
		}
		if file.Content.Inline == nil && file.Content.ImageRef == nil {
			return fmt.Errorf("%s: %s[%d].content (%s): must have inline or imageRef", DataKey, field, i, file.Path)
		}
	}
	return nil
}

// mergeUnits joins units of the same name: the extension's content wins, drop-ins and file paths add up.
func mergeUnits(core, extension []extensionsv1alpha1.Unit) []extensionsv1alpha1.Unit {
	merged := slices.Clone(core)
	for _, unit := range extension {
		i := slices.IndexFunc(merged, func(u extensionsv1alpha1.Unit) bool { return u.Name == unit.Name })
		if i < 0 {
			merged = append(merged, unit)
			continue
		}
		if unit.Content != nil {
			merged[i].Content = unit.Content
		}
		merged[i].DropIns = append(slices.Clone(merged[i].DropIns), unit.DropIns...)
		merged[i].FilePaths = append(slices.Clone(merged[i].FilePaths), unit.FilePaths...)
	}
	return merged
}

// changes is what has to be done to get from one configuration to another.
type changes struct {
	// writeFiles are new or different, removeFiles are gone from the configuration.
	writeFiles  []extensionsv1alpha1.File
	removeFiles []string
	// writeUnits have new or different content or drop-ins; restart also has those whose files changed.
	writeUnits []extensionsv1alpha1.Unit
	restart    []extensionsv1alpha1.Unit
	// removeUnits are gone altogether; removeUnitFiles are content and drop-ins that units have no longer.
	removeUnits     []string
	removeUnitFiles []string
	// containerd is set when it has to be configured anew.
	containerd *extensionsv1alpha1.CRIConfig
	// registries are new or different, removeRegistries are the names of those that are gone.
	registries       []extensionsv1alpha1.RegistryConfig
	removeRegistries []string
}

func (c changes) empty() bool { return c.onlyAwaits() && len(c.registries) == 0 }

// onlyAwaits says whether there is nothing to do but to wait for registries.
func (c changes) onlyAwaits() bool {
	files, units := len(c.writeFiles)+len(c.removeFiles), len(c.writeUnits)+len(c.removeUnits)+len(c.restart)
	return files+units+len(c.removeRegistries) == 0 && c.containerd == nil &&
		!slices.ContainsFunc(c.registries, func(r extensionsv1alpha1.RegistryConfig) bool { return !isAwaited(r) })
}

// diff compares what was applied with what is wanted.
func diff(applied, wanted *desired) changes {
	var result changes
	oldFiles := index(applied.Files, func(f extensionsv1alpha1.File) string { return f.Path })
	newFiles := index(wanted.Files, func(f extensionsv1alpha1.File) string { return f.Path })
	changed := map[string]bool{}
	for _, file := range wanted.Files {
		if old, known := oldFiles[file.Path]; !known || !sameYAML(old, file) {
			result.writeFiles = append(result.writeFiles, file)
			changed[file.Path] = true
		}
	}
	for _, file := range applied.Files {
		if _, wanted := newFiles[file.Path]; !wanted {
			result.removeFiles = append(result.removeFiles, file.Path)
		}
	}
	oldUnits := index(applied.Units, func(u extensionsv1alpha1.Unit) string { return u.Name })
	newUnits := index(wanted.Units, func(u extensionsv1alpha1.Unit) string { return u.Name })
	for _, unit := range wanted.Units {
		old, known := oldUnits[unit.Name]
		different := !known || !sameYAML(old, unit)
		if different {
			result.writeUnits = append(result.writeUnits, unit)
			result.removeUnitFiles = append(result.removeUnitFiles, without(old, unit)...)
		}
		if different || slices.ContainsFunc(unit.FilePaths, func(path string) bool { return changed[path] }) {
			result.restart = append(result.restart, unit)
		}
	}
	for _, unit := range applied.Units {
		if _, wanted := newUnits[unit.Name]; !wanted {
			result.removeUnits = append(result.removeUnits, unit.Name)
		}
	}
	result.diffContainerd(applied, wanted)
	if applied.waitsForDrain(wanted) || applied.renews(wanted) {
		// Only a kubelet that is started again reports soon; one that has nothing new to say, every five minutes.
		result.restartKubelet(wanted)
	}
	return result
}

func (c *changes) diffContainerd(applied, wanted *desired) {
	if config := wanted.containerd(); config != nil && !sameYAML(applied.containerd(), config) {
		c.containerd = config
		if applied.cgroupDriver() != wanted.cgroupDriver() {
			c.restartKubelet(wanted)
		}
	}
	upstream := func(r extensionsv1alpha1.RegistryConfig) string { return r.Upstream }
	oldRegistries, newRegistries := index(applied.registries(), upstream), index(wanted.registries(), upstream)
	for _, registry := range wanted.registries() {
		if old, known := oldRegistries[registry.Upstream]; !known || !sameYAML(old, registry) {
			c.registries = append(c.registries, registry)
		}
	}
	for _, registry := range applied.registries() {
		if _, wanted := newRegistries[registry.Upstream]; !wanted {
			c.removeRegistries = append(c.removeRegistries, registry.Upstream)
		}
	}
}

// restartKubelet starts kubelet again for another cgroup driver, which it asks containerd for only when it starts, or
// in an update in place. apply does that after containerd's own start.
func (c *changes) restartKubelet(wanted *desired) {
	i := slices.IndexFunc(wanted.Units, isKubelet)
	if i >= 0 && !slices.ContainsFunc(c.restart, isKubelet) {
		c.restart = append(c.restart, wanted.Units[i])
	}
}

// without are the paths of content and drop-ins that a unit had and has no longer.
func without(old, unit extensionsv1alpha1.Unit) []string {
	var paths []string
	if old.Content != nil && unit.Content == nil {
		paths = append(paths, unitPath(unit.Name))
	}
	for _, dropIn := range old.DropIns {
		if !slices.ContainsFunc(unit.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == dropIn.Name }) {
			paths = append(paths, dropInPath(unit.Name, dropIn.Name))
		}
	}
	return paths
}

func index[T any](items []T, key func(T) string) map[string]T {
	result := make(map[string]T, len(items))
	for _, item := range items {
		result[key(item)] = item
	}
	return result
}

func sameYAML(a, b any) bool {
	left, leftErr := yaml.Marshal(a)
	right, rightErr := yaml.Marshal(b)
	return leftErr == nil && rightErr == nil && bytes.Equal(left, right)
}

// defaultPermissions is the mode of files that name none.
const defaultPermissions fs.FileMode = 0o644

func permissions(file extensionsv1alpha1.File) fs.FileMode {
	if file.Permissions == nil {
		return defaultPermissions
	}
	return fs.FileMode(*file.Permissions).Perm()
}
