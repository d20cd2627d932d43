package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
)

// hierarchy is one mounted cgroup file system of the host.
type hierarchy struct {
	// path is where it is mounted.
	path string
	// v2 is the unified hierarchy.
	v2 bool
}

// hierarchies returns the cgroup file systems that are mounted on the host.
func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	defer file.Close()
	found, err := parseHierarchies(file)
	if err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	if len(found) == 0 {
		return nil, errors.New("cgroups: none is mounted under /sys/fs/cgroup; mount them (systemd does) and try again")
	}
	return found, nil
}

// parseHierarchies reads mountinfo (proc(5)): … 5th field mount point …, after " - " file system type.
func parseHierarchies(mountinfo io.Reader) ([]hierarchy, error) {
	var found []hierarchy
	scanner := bufio.NewScanner(mountinfo)
	for scanner.Scan() {
		before, after, ok := strings.Cut(scanner.Text(), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(fields[4], cgroupRoot) {
			continue
		}
		switch kind, _, _ := strings.Cut(after, " "); kind {
		case "cgroup":
			found = append(found, hierarchy{path: fields[4]})
		case "cgroup2":
			found = append(found, hierarchy{path: fields[4], v2: true})
		}
	}
	return found, scanner.Err()
}

const cgroupRoot = "/sys/fs/cgroup"

// UnifiedCgroups says whether the machine has cgroup v2 only.
func UnifiedCgroups() (bool, error) {
	all, err := hierarchies()
	if err != nil {
		return false, err
	}
	return len(all) == 1 && all[0].v2, nil
}

// Supervisors have one cgroup below the landscape's, and each node has one of its own.
const (
	supervisorCgroup = "supervisor"
	firstCgroup      = "node"
)

func landscapeCgroup(h hierarchy, name string) string { return filepath.Join(h.path, "trellis-"+name) }

// createCgroups makes the landscape's directories in every hierarchy, as far as a node needs them.
func createCgroups(spec Spec) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		top := landscapeCgroup(h, spec.Name)
		for _, dir := range []string{top, filepath.Join(top, supervisorCgroup), filepath.Join(top, spec.cgroup())} {
			if err := createCgroup(h, dir); err != nil {
				return fmt.Errorf("cgroup %s: %w", dir, err)
			}
		}
		if err := h.prefer(top); err != nil {
			return fmt.Errorf("share of the CPU of cgroup %s: %w", top, err)
		}
	}
	return nil
}

// A landscape is very many processes, but the kernel gives its cgroup no more than a single process beside it, such as
// each of a build's compilers. With ten times the default it holds its own against ten of them.
const (
	cpuWeight = "1000"  // of cpu.weight's 100 in the unified hierarchy
	cpuShares = "10240" // of cpu.shares' 1024 in v1
)

// prefer raises the share of a cgroup, in the hierarchy that divides the CPU.
func (h hierarchy) prefer(dir string) error {
	name, share := "cpu.shares", cpuShares
	if h.v2 {
		name, share = "cpu.weight", cpuWeight
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(share)
	return errors.Join(err, file.Close())
}

// createCgroup makes one directory usable: a v1 cpuset is empty until it is copied from the parent, and in v2 a
// controller has to be enabled in the parent.
func createCgroup(h hierarchy, dir string) error {
	parent := filepath.Dir(dir)
	if h.v2 {
		if err := enableControllers(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.v2 {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if err := inherit(parent, dir, file); err != nil {
			return err
		}
	}
	return nil
}

func inherit(parent, dir, file string) error {
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), value, 0)
}

// controllers that containers need in the unified hierarchy, and those that are welcome.
var (
	neededControllers  = []string{"cpu", "cpuset", "memory", "pids"}
	welcomeControllers = []string{"io"}
)

// enableControllers lets the children of a cgroup use the controllers. In a hierarchy that has none, because they are
// all mounted as v1, nothing is to be done.
func enableControllers(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, controller := range missingControllers(string(available), string(enabled)) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err != nil && slices.Contains(neededControllers, controller) {
			return fmt.Errorf("enabling %s for its children: %w", controller, err)
		}
	}
	return nil
}

// missingControllers returns what is available but not enabled, of that which is of use.
func missingControllers(available, enabled string) []string {
	have, on := strings.Fields(available), strings.Fields(enabled)
	var missing []string
	for _, controller := range slices.Concat(neededControllers, welcomeControllers) {
		if slices.Contains(have, controller) && !slices.Contains(on, controller) {
			missing = append(missing, controller)
		}
	}
	return missing
}

// joinCgroup moves the calling process into the landscape's cgroup of that name in every hierarchy.
func joinCgroup(name, cgroup string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		file := filepath.Join(landscapeCgroup(h, name), cgroup, "cgroup.procs")
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("joining cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroups removes the landscape's directories in every hierarchy. The processes in them must have been ended; the
// kernel may need a moment until it lets go of them.
func removeCgroups(name string, timeout time.Duration) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	for _, h := range all {
		for {
			err := removeTree(landscapeCgroup(h, name))
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("removing cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes the directories of a cgroup from the leaves up. Files in them belong to the kernel.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	sort.Sort(sort.Reverse(sort.StringSlice(dirs)))
	for _, dir := range dirs {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	return nil
}

// cgroupProcesses lists the processes that are in any of the landscape's cgroups.
func cgroupProcesses(name string) ([]int, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	for _, h := range all {
		err := filepath.WalkDir(landscapeCgroup(h, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() || entry.Name() != "cgroup.procs" {
				return err
			}
			return addPIDs(seen, path)
		})
		if err != nil {
			return nil, fmt.Errorf("cgroups of landscape %s: %w", name, err)
		}
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	sort.Ints(pids)
	return pids, nil
}

func addPIDs(seen map[int]bool, file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(string(data)) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err == nil && pid > 0 {
			seen[pid] = true
		}
	}
	return nil
}
