package landscape

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What a landscape needs of the machine.
const (
	minimumDiskGiB   = 12
	minimumMemoryGiB = 7
	// Each further node has systemd, containerd and kubelet.
	memoryOfNodeGiB = 1
)

// checkHost finds everything at once that is missing for so many nodes.
func (l *Landscape) checkHost(nodes int) error {
	if os.Geteuid() != 0 {
		return errors.New("a landscape must be started as root: its node is a container that is made here, and " +
			"making " +
			"namespaces, mounts and cgroups is root's privilege. Nothing outside of them is changed; try `sudo make " +
			"up`")
	}
	return errors.Join(
		checkNamespaces(), checkFileSystems(), checkCgroups(), checkDevices(), checkPrograms(),
		checkDisk(l.Root), checkMemory(nodes),
	)
}

func checkNamespaces() error {
	var missing []string
	for _, kind := range []string{"mnt", "pid", "net", "uts", "ipc", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
			missing = append(missing, kind)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the kernel lacks namespaces: %s", strings.Join(missing, ", "))
	}
	return nil
}

func checkFileSystems() error {
	data, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "\toverlay\n") && exec.Command("modprobe", "overlay").Run() != nil {
		return errors.New("the kernel lacks overlayfs (module overlay), in which containers keep their files")
	}
	return nil
}

func checkCgroups() error {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return nil
	}
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if _, err := os.Stat("/sys/fs/cgroup/" + controller); err != nil {
			return fmt.Errorf("cgroup controller %s is not mounted under /sys/fs/cgroup", controller)
		}
	}
	return nil
}

func checkDevices() error {
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return errors.New("/dev/net/tun is missing (module tun): the VPN of shoots needs it")
	}
	return nil
}

func checkPrograms() error {
	var missing []string
	for _, name := range []string{"go", "nsenter", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("programs are missing: %s (a Debian or Ubuntu machine with Go has them all)",
			strings.Join(missing, ", "))
	}
	return nil
}

func checkDisk(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("free disk space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize) >> 30; free < minimumDiskGiB {
		return fmt.Errorf("%s has %d GiB free; a landscape needs %d GiB", dir, free, minimumDiskGiB)
	}
	return nil
}

func checkMemory(nodes int) error {
	minimum := uint64(minimumMemoryGiB + (nodes-1)*memoryOfNodeGiB)
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		total, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("/proc/meminfo: %w", err)
		}
		if total>>20 < minimum {
			return fmt.Errorf("the machine has %d GiB of memory; a landscape with two shoots and a fleet needs %d GiB "+
				"on %d node(s)", total>>20, minimum, nodes)
		}
	}
	return scanner.Err()
}
