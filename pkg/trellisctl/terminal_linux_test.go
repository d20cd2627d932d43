package trellisctl

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// openTerminal opens a pseudo terminal that nobody looks at.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("this test needs a pseudo terminal: %v", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	if terminalOf(terminal) == nil {
		t.Fatal("/dev/ptmx is no terminal")
	}
	return terminal
}

// A deletion waits on a terminal, and elsewhere when it is told so; it never waits when it is told not to.
func TestWaitingOnTerminals(t *testing.T) {
	terminal := openTerminal(t)
	for line, want := range map[string][2]bool{
		"": {true, false}, "--wait": {true, true}, "--wait=false": {false, false}, "--wait --wait=false": {false, false},
	} {
		for i, out := range []io.Writer{terminal, &bytes.Buffer{}} {
			var w waiting
			command := &cobra.Command{Use: "test"}
			w.flagsFor(command, false, time.Minute, "it is gone")
			command.SetOut(out)
			command.SetErr(terminal)
			if err := command.ParseFlags(strings.Fields(line)); err != nil {
				t.Fatal(err)
			}
			if got := w.onTerminals(command); got.wait != want[i] || got.timeout != time.Minute {
				t.Errorf("%q on %T: got %+v", line, out, got)
			}
		}
	}
}
