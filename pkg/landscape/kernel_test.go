package landscape

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSettingsGoBackWithTheLastLandscape(t *testing.T) {
	before := map[string]string{"vm/overcommit_memory": "0"}
	one := state{Name: "one", KernelSettings: before}
	two := state{Name: "two", KernelSettings: before}
	tests := []struct {
		name     string
		leaving  string
		recorded []state
		inUse    []string
		want     map[string]string
	}{
		{name: "the only one", leaving: "one", recorded: []state{one}, inUse: []string{"one"}, want: before},
		{name: "another one is in use", leaving: "one", recorded: []state{one, two}, inUse: []string{"one", "two"}},
		{
			name: "the other one was killed", leaving: "one", recorded: []state{one, two}, inUse: []string{"one"},
			want: before,
		},
		{name: "the last one", leaving: "two", recorded: []state{two}, inUse: []string{"two"}, want: before},
		{name: "never started, and one was killed", leaving: "three", recorded: []state{one}, want: before},
		{name: "never started, and one is in use", leaving: "three", recorded: []state{one}, inUse: []string{"one"}},
		{name: "its settings went back before the machine was started anew", leaving: "one"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inUse := map[string]bool{}
			for _, name := range test.inUse {
				inUse[name] = true
			}
			got := settingsToRestore(test.leaving, test.recorded, func(s state) bool { return inUse[s.Name] })
			if !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestInotifyIsRaised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "max_user_instances")
	for _, test := range []struct {
		before string
		nodes  int
		want   string
	}{
		{"128\n", 1, "512"}, {"256\n", 1, "256\n"}, {"256\n", 2, "512"}, {"8192", 9, "8192"}, {"10\n", 30, "952"},
		{"none", 3, "none"},
	} {
		if err := os.WriteFile(path, []byte(test.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := raiseInotify(path, test.nodes); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != test.want {
			t.Errorf("%q for %d nodes: got %q, %v, want %q", test.before, test.nodes, got, err, test.want)
		}
	}
	if err := raiseInotify(t.TempDir(), 3); err != nil {
		t.Errorf("a limit that cannot be read: %v", err)
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.lock")
	if locked(path) {
		t.Error("a lock that nobody made is held")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if locked(path) {
		t.Error("a lock is held that nobody took")
	}
	if err := flock(file, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if !locked(path) {
		t.Error("a lock is free that is held")
	}
	// As when its process was killed.
	file.Close()
	if locked(path) {
		t.Error("a lock is held that its process left")
	}
}
