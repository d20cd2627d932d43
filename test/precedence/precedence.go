// Package precedence has a test program come before compilers and other tests when processors are short: those that run
// etcd, API servers and controllers of their own have to be done with things in time. `go test -exec nice` would do the
// same, but what is run so is never taken for known.
package precedence

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// niceness is less than that of others, which is 0.
const niceness = -10

// Take gives this program precedence, and all that it starts from now on. It is for TestMain, before there is much to
// give it to. Only root may do so; for others nothing changes.
func Take() {
	if os.Geteuid() != 0 {
		return
	}
	// Twice: a thread may have begun another one meanwhile. What Linux calls a process there is a thread.
	for range 2 {
		for _, thread := range threads() {
			_ = unix.Setpriority(unix.PRIO_PROCESS, thread, niceness)
		}
	}
}

// threads are those of this program. Package os would tell the Go command that the test has read a folder that is never
// the same.
func threads() []int {
	folder, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(folder)
	var names []string
	buffer := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(folder, buffer)
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
	var found []int
	for _, name := range names {
		if thread, err := strconv.Atoi(name); err == nil {
			found = append(found, thread)
		}
	}
	return found
}
