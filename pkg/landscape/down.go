package landscape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// Down ends the landscape and removes everything that belongs to it: processes, cgroups and the state folder; links,
// mounts, routes and firewall rules are in namespaces that end with the processes. It also removes what an interrupted
// run of another clone left under the same name, and what landscapes of other names left in the kernel when they were
// killed.
func (l *Landscape) Down(progress *Progress) error {
	if os.Geteuid() != 0 {
		return errors.New("a landscape must be removed as root, as it was started; try `sudo make down`")
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := recorded()
	if err != nil {
		return err
	}
	dirs := map[string]bool{l.StateDir(): true}
	for _, s := range all {
		if s.Name == l.Name {
			dirs[s.Dir] = true
		}
	}
	for dir := range dirs {
		if err := removeLandscape(progress, l.Name, dir); err != nil {
			return err
		}
	}
	if err := node.Cleanup(l.Name); err != nil {
		return err
	}
	return l.leave(progress)
}

// leave takes the landscape out of the machine's record. The last one gives the machine its kernel settings back; only
// then is it taken out, so that an interrupted `down` finds them the next time.
func (l *Landscape) leave(progress *Progress) error {
	unlock, err := lockRecord()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := recorded()
	if err != nil {
		return err
	}
	if err := restoreKernelSettings(settingsToRestore(l.Name, all, state.inUse)); err != nil {
		return err
	}
	for _, path := range []string{recordPath(l.Name), lockPath(l.Name)} {
		if err := remove(path); err != nil {
			return err
		}
	}
	return l.sweep(progress, all)
}

// removeLandscape ends the nodes of a state folder and removes the folder.
func removeLandscape(progress *Progress, name, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	progress.begin(fmt.Sprintf("Remove landscape %s in %s", name, dir))
	err := func() error {
		for _, n := range slices.Backward(nodesOf(maxNodes)) {
			if _, running := node.Running(filepath.Join(dir, n.folder())); !running {
				continue
			}
			progress.Step("ending %s", n.hostname())
			if err := node.Stop(filepath.Join(dir, n.folder())); err != nil {
				return err
			}
		}
		if err := node.Cleanup(name); err != nil {
			return err
		}
		progress.Step("removing %s", dir)
		return removeState(dir)
	}()
	progress.end(err)
	return err
}

// removeState removes a state folder. Nothing may be mounted below it: mounts of a node are in the node's namespace.
func removeState(dir string) error {
	if err := checkNoMounts(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

// sweep removes what is left of landscapes whose supervisor was killed. Their state folders stay, `up` can use them
// again.
func (l *Landscape) sweep(progress *Progress, all []state) error {
	for _, s := range all {
		if s.Name == l.Name || s.inUse() {
			continue
		}
		progress.begin(fmt.Sprintf("Remove what landscape %s in %s left behind", s.Name, s.Dir))
		err := errors.Join(node.Cleanup(s.Name), remove(recordPath(s.Name)), remove(lockPath(s.Name)))
		progress.end(err)
		if err != nil {
			return err
		}
	}
	return remove(registryDir)
}

// remove removes a file or an empty folder, if there is one.
func remove(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return nil
	}
	return fmt.Errorf("removing the record of landscapes: %w", err)
}
