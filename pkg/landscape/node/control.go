package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SuperviseCommand is the sub-command of the landscape binary that runs Supervise.
const SuperviseCommand = "node"

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
)

// Start starts a node in the background and returns when its systemd runs. It does nothing when the node runs already.
func Start(ctx context.Context, spec Spec) (Processes, error) {
	if processes, ok := Running(spec.Dir); ok {
		return processes, nil
	}
	specPath, err := spec.Save()
	if err != nil {
		return Processes{}, err
	}
	output, err := logFile(spec, "supervisor")
	if err != nil {
		return Processes{}, err
	}
	defer output.Close()
	offset, err := output.Seek(0, 2)
	if err != nil {
		return Processes{}, fmt.Errorf("supervisor log: %w", err)
	}
	command := exec.Command("/proc/self/exe", SuperviseCommand, "--spec", specPath)
	command.Stdout, command.Stderr = output, output
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return Processes{}, fmt.Errorf("starting the node's supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return awaitStart(ctx, spec, ended, offset)
}

func awaitStart(ctx context.Context, spec Spec, ended <-chan error, logOffset int64) (Processes, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		if processes, ok := Running(spec.Dir); ok {
			return processes, nil
		}
		select {
		case <-ended:
			return Processes{}, fmt.Errorf("the node did not start: %s", logSince(spec, logOffset))
		case <-ctx.Done():
			return Processes{}, fmt.Errorf("the node did not start: %w; see %s", context.Cause(ctx), spec.LogDir())
		case <-poll.C:
		}
	}
}

// logSince returns what the supervisor has written since offset.
func logSince(spec Spec, offset int64) string {
	path := filepath.Join(spec.LogDir(), "supervisor.log")
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) <= offset {
		return "see " + path
	}
	return strings.TrimSpace(string(data[offset:]))
}

// Stop ends the node of a folder, when it runs, and everything in it.
func Stop(dir string) error {
	processes, ok := Running(dir)
	if !ok {
		return nil
	}
	if err := processes.Supervisor.Terminate(stopTimeout); err != nil {
		if err := processes.Supervisor.Kill(stopTimeout); err != nil {
			return fmt.Errorf("stopping the node: %w", err)
		}
	}
	return processes.Init.Kill(stopTimeout)
}

// Cleanup removes what outlives a node in the kernel: it ends processes that are still in the landscape's cgroups and
// removes these. The calling process must not be one of them.
func Cleanup(name string) error {
	pids, err := cgroupProcesses(name)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending process %d of landscape %s: %w", pid, name, err)
		}
	}
	return removeCgroups(name, stopTimeout)
}

// CleanUp removes what an earlier node of this folder left in the kernel, and nothing of the landscape's other nodes.
// The node must not run.
func (s Spec) CleanUp() error { return Cleanup(filepath.Join(s.Name, s.cgroup())) }

// Command returns a command that runs in all namespaces of a running node.
func (p Processes) Command(ctx context.Context, args ...string) *exec.Cmd {
	enter := []string{
		"--target", strconv.Itoa(p.Init.PID), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
		"--wd", "--",
	}
	command := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	command.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "TERM=" + os.Getenv("TERM"), "KUBECONFIG=/etc/kubernetes/admin.kubeconfig",
	}
	return command
}

// Run runs a command in the node and returns its output; an error carries what the command said.
func (p Processes) Run(ctx context.Context, args ...string) (string, error) {
	var output, complaint bytes.Buffer
	command := p.Command(ctx, args...)
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("%s in the node: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(complaint.String()))
	}
	return output.String(), nil
}

// Dial connects to an address in the network of a running node. The address is no name: the host would look it up.
func (p Processes) Dial(ctx context.Context, network, address string) (connection net.Conn, err error) {
	err = inside(p.Init.PID, map[string]int{"net": unix.CLONE_NEWNET}, func() (err error) {
		connection, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}
