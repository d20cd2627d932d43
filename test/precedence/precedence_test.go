package precedence

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTake(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may take precedence")
	}
	Take()
	for _, thread := range threads() {
		// The kernel gives 20 minus the niceness.
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, thread); err != nil || 20-got != niceness {
			t.Errorf("thread %d has niceness %d, %v", thread, 20-got, err)
		}
	}
	// Whatever thread starts it.
	if out, err := exec.Command("nice").Output(); err != nil || strings.TrimSpace(string(out)) != "-10" {
		t.Errorf("a program that is started has niceness %s, %v", out, err)
	}
}
