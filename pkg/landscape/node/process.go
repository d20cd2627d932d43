package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process names one process of this boot of the machine: a PID alone may have been given to another process.
type Process struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks after boot.
	Start uint64 `json:"start"`
	// Boot is the id of the boot the process belongs to.
	Boot string `json:"boot"`
}

// LookUp describes a running process.
func LookUp(pid int) (Process, error) {
	start, err := startTime(pid)
	if err != nil {
		return Process{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// Running says whether the process still exists.
func (p Process) Running() bool {
	if p.PID <= 0 {
		return false
	}
	current, err := LookUp(p.PID)
	return err == nil && current == p
}

// Kill ends the process at once and waits until it is gone.
func (p Process) Kill(timeout time.Duration) error {
	return p.end(syscall.SIGKILL, timeout)
}

// Terminate asks the process to end, and waits.
func (p Process) Terminate(timeout time.Duration) error {
	return p.end(syscall.SIGTERM, timeout)
}

func (p Process) end(signal syscall.Signal, timeout time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", p.PID, err)
	}
	deadline := time.Now().Add(timeout)
	for p.Running() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d did not end within %s of %s", p.PID, timeout, signal)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// awaitEnd returns when the node of a folder has ended, or does not run. An error says why it could not be waited for.
func awaitEnd(dir string) error {
	processes, running := Running(dir)
	if !running {
		return nil
	}
	end, err := unix.PidfdOpen(processes.Init.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for the end of process %d: %w", processes.Init.PID, err)
	}
	defer unix.Close(end)
	// What was opened may be another process that got the number meanwhile.
	if !processes.Init.Running() {
		return nil
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(end), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// startTime reads when a process started. A process that is dead and only waits for its parent counts as gone.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	state, start, err := parseStat(data)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return 0, fmt.Errorf("process %d is dead", pid)
	}
	return start, nil
}

// parseStat takes state and start time out of /proc/<pid>/stat (proc(5)); the command in parentheses may hold anything.
func parseStat(data []byte) (state byte, start uint64, err error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, 0, errors.New("no command in its stat line")
	}
	fields := strings.Fields(string(data[end+1:]))
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("%d fields in its stat line", len(fields))
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return fields[stateField][0], start, err
}

// Processes are the two that carry a node.
type Processes struct {
	// Supervisor runs in the host's namespaces; the node ends with it.
	Supervisor Process `json:"supervisor"`
	// Init is the node's PID 1 as the host sees it.
	Init Process `json:"init"`
}

// Running reads which processes carry the node of a folder. ok is false when there is none.
func Running(dir string) (processes Processes, ok bool) {
	data, err := os.ReadFile(Spec{Dir: dir}.pidFile())
	if err != nil || json.Unmarshal(data, &processes) != nil {
		return Processes{}, false
	}
	return processes, processes.Supervisor.Running()
}
