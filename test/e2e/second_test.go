//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// A second landscape runs beside the first. Its start is killed, then its node's supervisor, and both times `up` goes
// on; in the end nothing of it is left on the machine, and the first landscape has not noticed.
func secondLandscape(t *testing.T) {
	l := open(t)
	second := l.name + "-second"
	t.Cleanup(func() { _, _ = l.command(context.Background(), "", "landscape", "down", "--name", second) })
	before := l.hostState(t)
	phases := "host,node,runtime,system,cloud,gateway,garden,content"

	up := exec.Command(l.bin("landscape"), "up", "--name", second, "--no-build", "--phase", phases)
	up.Dir = l.root
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	up.Stderr = up.Stdout
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	begun := false
	for lines := bufio.NewScanner(out); !begun && lines.Scan(); {
		fmt.Fprintln(&printed, lines.Text())
		begun = strings.HasPrefix(lines.Text(), "Runtime cluster")
	}
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = up.Wait()
	if !begun {
		t.Fatalf("the second landscape's start ended before its runtime cluster began:\n%s", &printed)
	}

	if _, err := l.command(t.Context(), "", "landscape", "exec", "--name", second, "--", "true"); err != nil {
		t.Fatalf("the node must outlive the command that started it: %v", err)
	}
	l.killSupervisor(t, second)
	if _, err := l.command(t.Context(), "", "landscape", "up", "--name", second, "--no-build", "--phase",
		phases); err != nil {
		t.Fatal(err)
	}
	garden := kubectl{l: l, kubeconfig: filepath.Join(l.stateOf(second), "garden.kubeconfig")}
	garden.eventually(t, time.Minute, contains("local"), "get", "cloudprofiles", "-o", "name")
	l.gardenKubectl().eventually(t, time.Minute, contains("member1", "fleet"), "-n", "garden-demo", "get", "shoots",
		"-o", "name")

	if _, err := l.command(t.Context(), "", "landscape", "down", "--name", second); err != nil {
		t.Fatal(err)
	}
	if after := l.hostState(t); after != before {
		t.Errorf("the machine is not as it was; before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := os.Stat(l.stateOf(second)); err == nil {
		t.Errorf("the state folder is left")
	}
}

// commandsOfTests matches the processes by which other tests look at the first landscape meanwhile.
var commandsOfTests = regexp.MustCompile(`(?m)^\S*/bin/(kubectl|trellisctl|landscape exec) .*\n`)

// hostState describes what a landscape could leave behind on the machine.
func (l *landscape) hostState(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), l.root+"/hack/host-state.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("host-state.sh: %v %s", err, out)
	}
	return commandsOfTests.ReplaceAllString(string(out), "")
}

// killSupervisor ends the process on the host that holds a landscape's node, as the kernel would when memory is short.
func (l *landscape) killSupervisor(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(l.stateOf(name), "node", "supervisor.json"))
	if err != nil {
		t.Fatal(err)
	}
	var processes node.Processes
	if err := json.Unmarshal(data, &processes); err != nil {
		t.Fatal(err)
	}
	if err := processes.Supervisor.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}
