package landscape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// registryDir is where all landscapes of the machine are recorded, from whatever clone they were started. It is gone
// after a reboot, as are their processes.
const registryDir = "/run/trellis"

// state is what a landscape remembers between runs.
type state struct {
	// Name of the landscape.
	Name string `json:"name"`
	// Dir is its state folder.
	Dir string `json:"dir"`
	// Loopback is the host's address for it.
	Loopback netip.Addr `json:"loopback"`
	// Nodes is how many nodes were started; 0 is one.
	Nodes int `json:"nodes,omitempty"`
	// KernelSettings are the machine's values from before there was any landscape. Those in the machine's record count:
	// after a reboot the machine may have others.
	KernelSettings map[string]string `json:"kernelSettings,omitempty"`
}

// running says whether the landscape's first node runs. Others do not outlive it.
func (s state) running() bool {
	_, ok := node.Running(filepath.Join(s.Dir, firstNode.folder()))
	return ok
}

// inUse says whether the landscape's node runs, or an `up` or `down` of it is under way. The record must be locked: the
// look at the lock would be in the way of who wants it.
func (s state) inUse() bool { return s.running() || locked(lockPath(s.Name)) }

func recordPath(name string) string { return filepath.Join(registryDir, name+".json") }

// recorded returns the landscapes that were started since the machine booted, by name.
func recorded() ([]state, error) {
	entries, err := os.ReadDir(registryDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of landscapes: %w", err)
	}
	var all []state
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		s, err := readState(filepath.Join(registryDir, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

func readState(path string) (state, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return state{}, fmt.Errorf("landscape state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("landscape state %s: %w", path, err)
	}
	return s, nil
}

// state reads what the landscape remembers: nothing when it was never started.
func (l *Landscape) state() (state, error) {
	s, err := readState(l.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	return s, err
}

// register remembers the landscape in its folder and in the machine's record, and gives it a loopback address. It fails
// when another clone runs a landscape of the same name.
func (l *Landscape) register() (state, error) {
	unlock, err := lockRecord()
	if err != nil {
		return state{}, err
	}
	defer unlock()
	all, err := recorded()
	if err != nil {
		return state{}, err
	}
	others, err := l.others(all)
	if err != nil {
		return state{}, err
	}
	s, err := l.state()
	if err != nil {
		return state{}, err
	}
	s.Name, s.Dir = l.Name, l.StateDir()
	if s.KernelSettings = kernelSettingsBefore(all); s.KernelSettings == nil {
		s.KernelSettings = readKernelSettings()
	}
	if !s.running() {
		// What a node left behind that was not ended properly would hold its ports and volumes.
		if err := node.Cleanup(l.Name); err != nil {
			return state{}, err
		}
		if s.Loopback, err = allocate(l.Name, s.Loopback, taken(others), bindable); err != nil {
			return state{}, err
		}
	}
	return s, save(s)
}

// others returns the recorded landscapes except this one.
func (l *Landscape) others(all []state) ([]state, error) {
	var others []state
	for _, s := range all {
		if s.Name != l.Name {
			others = append(others, s)
			continue
		}
		if s.Dir != l.StateDir() && s.running() {
			return nil, fmt.Errorf("landscape %q runs already, from %s: end it there with %s, or choose another "+
				"name (make up NAME=…)", l.Name, s.Dir, l.make("down"))
		}
	}
	return others, nil
}

func save(s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("landscape state: %w", err)
	}
	for _, path := range []string{filepath.Join(s.Dir, "state.json"), recordPath(s.Name)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("landscape state: %w", err)
		}
		if err := replaceFile(path, data, 0o644); err != nil {
			return fmt.Errorf("landscape state: %w", err)
		}
	}
	return nil
}

// lock keeps a second `up` or `down` of the landscape away until unlock is called or the process ends.
func (l *Landscape) lock() (unlock func(), err error) {
	unlockRecord, err := lockRecord()
	if err != nil {
		return nil, err
	}
	defer unlockRecord()
	path := lockPath(l.Name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record of landscapes: %w", err)
	}
	if err := flock(file, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(file)
		file.Close()
		return nil, fmt.Errorf("another `up` or `down` of landscape %s is running (process %s): wait for it, or end "+
			"it and try again", l.Name, holder)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid()))); err != nil {
		file.Close()
		return nil, fmt.Errorf("record of landscapes: %w", err)
	}
	return func() { file.Close() }, nil
}

// lockRecord makes the machine's record, and keeps all other landscapes from changing it until unlock is called. It
// waits for who holds it, who does so for moments only.
func lockRecord() (unlock func(), err error) {
	for {
		if err := os.MkdirAll(registryDir, 0o755); err != nil {
			return nil, fmt.Errorf("record of landscapes: %w", err)
		}
		dir, err := os.Open(registryDir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("record of landscapes: %w", err)
		}
		if err := flock(dir, unix.LOCK_EX); err != nil {
			dir.Close()
			return nil, fmt.Errorf("record of landscapes: locking it: %w", err)
		}
		// Whoever held it may have removed the folder.
		if isAt(dir, registryDir) {
			return func() { dir.Close() }, nil
		}
		dir.Close()
	}
}

// isAt says whether an open file is still the one of that path.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	present, err := os.Stat(path)
	return err == nil && os.SameFile(opened, present)
}

// flock locks a file; signals do not end the wait for it.
func flock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// locked says whether a process holds the lock of a file.
func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return flock(file, unix.LOCK_SH|unix.LOCK_NB) != nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

func lockPath(name string) string { return filepath.Join(registryDir, name+".lock") }

// replaceFile writes a file so that a reader sees the old or the new content, and leaves it alone when nothing changes.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return os.Chmod(path, mode)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return err
	}
	// One that an interrupted run left has another mode, and a key would be readable by all.
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
