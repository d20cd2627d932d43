//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// changedSinceEnv names the commit since which changes count: tests that cover nothing of them are skipped. Without it
// all run.
const changedSinceEnv = "TRELLIS_CHANGED_SINCE"

const root = "../.."

// Of these two files, only some changes are of what tests depend on.
const (
	makefile = "Makefile"
	modFile  = "go.mod"
)

// changedFiles are the files that differ from those of the commit, by their paths in the repository, but for those that
// differ in nothing that a landscape and its tests are made of.
var changedFiles = sync.OnceValues(func() ([]string, error) {
	since := os.Getenv(changedSinceEnv)
	out, err := output("git", "diff", "--name-only", "--no-renames", since, "--")
	if err != nil {
		return nil, fmt.Errorf("what changed since %s=%s: %w", changedSinceEnv, since, err)
	}
	changed := strings.Fields(out)
	for file, matters := range map[string]func(since string) (bool, error){
		makefile: otherCommands, modFile: otherModules,
	} {
		if !slices.Contains(changed, file) {
			continue
		}
		counts, err := matters(since)
		if err != nil {
			return nil, fmt.Errorf("what changed in %s since %s=%s: %w", file, changedSinceEnv, since, err)
		}
		if !counts {
			changed = slices.DeleteFunc(changed, func(other string) bool { return other == file })
		}
	}
	return changed, nil
})

// output runs a command in the repository as a person would.
func output(name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Dir = root
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS")
	})
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", name, err, exit.Stderr)
	}
	return string(out), err
}

// otherCommands tells whether a landscape is started, tested or ended by other commands than those of the Makefile of
// the commit.
func otherCommands(since string) (bool, error) {
	before, err := output("git", "show", since+":"+makefile)
	if err != nil {
		return false, err
	}
	folder, err := os.MkdirTemp("", "trellis-makefile-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	of := filepath.Join(folder, makefile)
	if err := os.WriteFile(of, []byte(before), 0o600); err != nil {
		return false, err
	}
	var commands [2]string
	for i, file := range []string{of, makefile} {
		out, err := output("make", "--dry-run", "--always-make", "--no-print-directory", "-f", file, "up", "test-e2e",
			"down", "NAME=any")
		if err != nil {
			return false, err
		}
		commands[i] = out
	}
	return commands[0] != commands[1], nil
}

// otherModules tells whether anything but commands for people is made of a module that go.mod did not have, or has in
// another version.
func otherModules(since string) (bool, error) {
	diff, err := output("git", "diff", "--unified=0", since, "--", modFile)
	if err != nil {
		return false, err
	}
	used, err := landscapePackages("{{with .Module}}{{.Path}}{{end}}")
	if err != nil {
		return false, err
	}
	return changesAny(diff, used), nil
}

// changesAny tells whether a difference of go.mod is more than new modules that are none of these, and lines elsewhere.
func changesAny(diff string, used []string) bool {
	added, removed := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(diff) {
		text := strings.TrimPrefix(strings.TrimSpace(line[1:]), "require ")
		text, _, _ = strings.Cut(text, " // indirect")
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), text == "", text == "(", text == ")":
		case line[0] == '-':
			removed[text] = true
		case line[0] == '+':
			added[text] = true
		}
	}
	for text := range removed {
		if !added[text] {
			return true
		}
	}
	for text := range added {
		fields := strings.Fields(text)
		isModule := len(fields) == 2 && strings.HasPrefix(fields[1], "v")
		if !removed[text] && (!isModule || slices.Contains(used, fields[0])) {
			return true
		}
	}
	return false
}

func TestChangesOfModules(t *testing.T) {
	used := []string{"example.com/used"}
	for name, test := range map[string]struct {
		diff string
		want bool
	}{
		"nothing": {"", false},
		"one that is new": {
			"--- a/go.mod\n+++ b/go.mod\n@@ -1 +1 @@\n+\texample.com/new v1.0.0 // indirect\n", false,
		},
		"one that is used":  {"+\texample.com/used v1.0.0\n", true},
		"another version":   {"-\texample.com/new v1.0.0\n+\texample.com/new v1.1.0\n", true},
		"one that is gone":  {"-\texample.com/new v1.0.0\n", true},
		"another Go":        {"+go 1.99\n", true},
		"one in the place":  {"+replace example.com/used => ./used\n", true},
		"only other spaces": {"+\n", false},
		"one that is used directly": {
			"-\texample.com/used v1.0.0 // indirect\n+\texample.com/used v1.0.0\n" +
				"+require example.com/new v1.0.0\n", false,
		},
	} {
		if got := changesAny(test.diff, used); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// What make does for a landscape is told apart from what else is in its file, and that of now is as it is.
func TestChangesOfCommands(t *testing.T) {
	other, err := otherCommands("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := output("git", "status", "--porcelain", makefile); err != nil || changed == "" && other {
		t.Errorf("the Makefile of HEAD starts and tests a landscape otherwise than that of HEAD: %v", err)
	}
}
