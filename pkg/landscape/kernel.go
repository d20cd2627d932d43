package landscape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// machineSettings are kernel settings of the whole machine that a kubelet in a privileged pod may change: the node itself
// cannot, but its machines see /proc/sys of the machine.
var machineSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "kernel/pid_max",
}

// kernelSettingsBefore returns the machine's values from before there was any landscape.
func kernelSettingsBefore(others []state) map[string]string {
	for _, other := range others {
		if len(other.KernelSettings) > 0 {
			return other.KernelSettings
		}
	}
	return readKernelSettings()
}

func readKernelSettings() map[string]string {
	settings := map[string]string{}
	for _, name := range machineSettings {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			settings[name] = strings.TrimSpace(string(value))
		}
	}
	return settings
}

// restoreKernelSettings gives the machine back the values it had.
func restoreKernelSettings(before map[string]string) error {
	var failed []error
	now := readKernelSettings()
	for name, value := range before {
		if now[name] == value {
			continue
		}
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0); err != nil {
			failed = append(failed, fmt.Errorf("restoring kernel setting %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}
