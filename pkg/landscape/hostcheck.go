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

	"github.com/trellis-garden/trellis/pkg/component/operatingsystemconfig"
)

// What a landscape needs of the machine.
const (
	minimumDiskGiB = 12
	// Beside this, there has to be what machines keep free.
	diskToFillGiB    = 8
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
	if err := enoughDisk(fs.Bavail*uint64(fs.Bsize), fs.Blocks*uint64(fs.Bsize)); err != nil {
		return fmt.Errorf("the disk of %s: %w", dir, err)
	}
	return nil
}

// enoughDisk says whether so many free bytes of a disk are enough. The machines of shoots share it, and their kubelets
// evict pods when less of it is free than they keep.
func enoughDisk(free, size uint64) error {
	const gib, percent = 1 << 30, operatingsystemconfig.DiskKeptFreePercent
	needed := max(minimumDiskGiB*gib, size/100*percent+diskToFillGiB*gib)
	if free >= needed {
		return nil
	}
	return fmt.Errorf("%d GiB are free, and a landscape needs %d GiB: %d GiB to fill, and %d %% of all %d GiB, as "+
		"machines of shoots have DiskPressure and evict pods when less is free; `make clean` removes what was built",
		free/gib, (needed+gib-1)/gib, diskToFillGiB, percent, size/gib)
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
