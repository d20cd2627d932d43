package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// steady is hack/steady.sh with a folder of its own in the place of /run/trellis-tree.
func steady(t *testing.T, tree, script string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../../steady.sh", "bash", "-euc", script)
	command.Env = append(os.Environ(), "TRELLIS_STEADY_TREE="+tree)
	command.Stderr = os.Stderr
	return command
}

// A command runs in the tree, below the one name, its outcome is told, and nothing is left of the folder.
func TestSteadyGivesTheHostBack(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	out, err := steady(t, tree, "pwd; ls hack/steady.sh; exit 3").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != tree+"\nhack/steady.sh\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// One that ends leaves the folder to those that go on.
func TestSteadyLeavesOthersTheirTree(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	first := steady(t, tree, "echo begun; read -r line; ls hack/steady.sh")
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if text, err := steady(t, tree, "ls hack/steady.sh").Output(); err != nil || !strings.Contains(string(text), "steady") {
		t.Errorf("the second: got %q, %v", text, err)
	}
	if _, err := io.WriteString(in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "hack/steady.sh\n" {
		t.Errorf("the first, when the second had ended: got %q, %v", rest, err)
	}
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
