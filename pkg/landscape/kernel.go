package landscape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machineSettings are kernel settings of the whole machine that a kubelet in a privileged pod may change: the node
// itself cannot, but its machines see /proc/sys of the machine.
var machineSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "kernel/pid_max", inotifyInstances,
}

const (
	// inotifyInstances bounds how many instances a user has, of which every control plane and node watches files with
	// some: too few show as "too many open files".
	inotifyInstances = "fs/inotify/max_user_instances"
	// A landscape with two shoots has about 100, six to eight of each kube-apiserver, which makes one for each file of
	// certificates. Integration tests of the federation beside it have as many. Each further node has systemd,
	// containerd and kubelet.
	minimumInotify, inotifyOfNode = 256, 24
	// enoughInotify is what the machine gets when it has less than is needed.
	enoughInotify = 512
)

// raiseInotify raises the limit in the file, unless there are as many instances of inotify as so many nodes need.
func raiseInotify(path string, nodes int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	minimum := minimumInotify + (nodes-1)*inotifyOfNode
	if err != nil || limit >= minimum {
		return nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(max(minimum, enoughInotify))), 0); err != nil {
		return fmt.Errorf("raising %s from %d, as at least %d is needed: %w", inotifyInstances, limit, minimum, err)
	}
	return nil
}

// kernelSettingsBefore returns the machine's values from before there was any of the recorded landscapes; nil when
// there is none. Each landscape keeps a copy for the ones that go after it.
func kernelSettingsBefore(recorded []state) map[string]string {
	for _, s := range recorded {
		if len(s.KernelSettings) > 0 {
			return s.KernelSettings
		}
	}
	return nil
}

// settingsToRestore returns the values that the machine gets back when a landscape goes: none while another one is in
// use, whose kubelets rely on what they have set. Landscapes that were killed do not count, and what they changed goes
// back too.
func settingsToRestore(leaving string, recorded []state, inUse func(state) bool) map[string]string {
	for _, s := range recorded {
		if s.Name != leaving && inUse(s) {
			return nil
		}
	}
	return kernelSettingsBefore(recorded)
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
