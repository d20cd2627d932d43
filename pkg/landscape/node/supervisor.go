package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// InitCommand and ForwardCommand are the sub-commands of the landscape binary that the supervisor runs.
const (
	InitCommand    = "node-init"
	ForwardCommand = "forward"
)

// initReady is what the node's first process reports before it becomes systemd.
const initReady = "ready"

// helperPause is how long the supervisor waits before it starts a helper again.
const helperPause = time.Second

// Supervise runs a node until the context ends or the node does. The calling goroutine's thread must be the one that
// stays alive for as long as the process does: the kernel ends the node with it.
func Supervise(ctx context.Context, specPath string) error {
	runtime.LockOSThread()
	spec, err := LoadSpec(specPath)
	if err != nil {
		return err
	}
	unlock, err := lock(spec)
	if err != nil {
		return err
	}
	defer unlock()
	if err := createCgroups(spec); err != nil {
		return err
	}
	if err := joinCgroup(spec.Name, supervisorCgroup); err != nil {
		return err
	}
	listeners, err := listen(spec.Forwards)
	if err != nil {
		return err
	}
	first, identity, err := startInit(spec, specPath)
	if err != nil {
		return err
	}
	if err := record(spec, identity); err != nil {
		return errors.Join(err, first.Process.Kill())
	}
	defer os.Remove(spec.pidFile())
	context.AfterFunc(ctx, func() { first.Process.Kill() })
	running, stop := context.WithCancel(ctx)
	defer stop()
	if spec.Switch != "" {
		go func() {
			if err := awaitEnd(spec.Switch); err != nil {
				log.Printf("node of %s: %v", spec.Switch, err)
			}
			log.Printf("ending the node, as that of %s has ended, which it was connected to", spec.Switch)
			first.Process.Kill()
		}()
	}
	for _, helper := range withForwarder(spec) {
		go keepRunning(running, spec, helper, first.Process.Pid, listeners)
	}
	err = first.Wait()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the node ended by itself: %w", err)
	}
	return errors.New("the node ended by itself")
}

// lock makes sure that a node has one supervisor.
func lock(spec Spec) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(spec.Dir, "supervisor.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("supervisor lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("node %s has a supervisor already (%s is locked)", spec.Name, file.Name())
	}
	return func() { file.Close() }, nil
}

// listen opens the host's ways into the node. They must be opened here, in the host's network.
func listen(forwards []Forward) ([]*os.File, error) {
	files := make([]*os.File, 0, len(forwards))
	for _, forward := range forwards {
		listener, err := net.Listen("tcp", forward.Listen)
		if err != nil {
			return nil, fmt.Errorf("listening for %s: %w", forward.Target, err)
		}
		file, err := listener.(*net.TCPListener).File()
		if err != nil {
			return nil, fmt.Errorf("listening for %s: %w", forward.Target, err)
		}
		listener.Close()
		files = append(files, file)
	}
	return files, nil
}

// startInit starts the node's first process and returns when it is about to become systemd.
func startInit(spec Spec, specPath string) (*exec.Cmd, Process, error) {
	report, reporter, err := os.Pipe()
	if err != nil {
		return nil, Process{}, fmt.Errorf("starting the node: %w", err)
	}
	defer report.Close()
	output, err := logFile(spec, "node")
	if err != nil {
		return nil, Process{}, err
	}
	defer output.Close()
	command := exec.Command("/proc/self/exe", InitCommand, "--spec", specPath)
	command.Stdout, command.Stderr = output, output
	command.ExtraFiles = []*os.File{reporter}
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Setsid:     true,
		Pdeathsig:  unix.SIGKILL,
	}
	err = command.Start()
	reporter.Close()
	if err != nil {
		return nil, Process{}, fmt.Errorf("starting the node in namespaces of its own: %w", err)
	}
	// Not later: while a process of several threads becomes another program it looks as if it were dead.
	identity, lost := LookUp(command.Process.Pid)
	// What it reports says more than that it is dead already.
	if err := cmp.Or(awaitReport(report), lost); err != nil {
		return nil, Process{}, errors.Join(fmt.Errorf("starting the node: %w", err), command.Process.Kill(),
			command.Wait())
	}
	return command, identity, nil
}

// awaitReport reads what the first process says: that it is ready, or what went wrong. The report ends when it has
// become systemd.
func awaitReport(report io.Reader) error {
	said, err := io.ReadAll(report)
	text := strings.TrimSpace(string(said))
	switch {
	case err != nil:
		return fmt.Errorf("reading what its first process says: %w", err)
	case text == initReady:
		return nil
	case text != "":
		return errors.New(strings.TrimSpace(strings.TrimPrefix(text, initReady)))
	default:
		return errors.New("its first process ended without a word")
	}
}

// record writes which processes carry the node.
func record(spec Spec, first Process) error {
	supervisor, err := LookUp(os.Getpid())
	if err != nil {
		return fmt.Errorf("recording the supervisor: %w", err)
	}
	data, err := json.Marshal(Processes{Supervisor: supervisor, Init: first})
	if err != nil {
		return fmt.Errorf("recording the supervisor: %w", err)
	}
	return writeFile(spec.pidFile(), data, 0o644)
}

// withForwarder returns the helpers of a node and the one that serves its forwards.
func withForwarder(spec Spec) []Helper {
	if len(spec.Forwards) == 0 {
		return spec.Helpers
	}
	forwarder := Helper{Name: "forwarder", Args: []string{ForwardCommand}}
	for _, forward := range spec.Forwards {
		forwarder.Args = append(forwarder.Args, forward.Target)
	}
	return append([]Helper{forwarder}, spec.Helpers...)
}

// keepRunning runs a helper in the node's network and PID namespaces, again and again until the context ends.
func keepRunning(ctx context.Context, spec Spec, helper Helper, initPID int, listeners []*os.File) {
	for ctx.Err() == nil {
		if err := runHelper(spec, helper, initPID, listeners); err != nil && ctx.Err() == nil {
			log.Printf("%s: %v; starting it again in %s", helper.Name, err, helperPause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(helperPause):
		}
	}
}

func runHelper(spec Spec, helper Helper, initPID int, listeners []*os.File) error {
	output, err := logFile(spec, helper.Name)
	if err != nil {
		return err
	}
	defer output.Close()
	command := exec.Command("/proc/self/exe", helper.Args...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if helper.Args[0] == ForwardCommand {
		command.ExtraFiles = listeners
	}
	if err := startInNode(command, initPID); err != nil {
		return err
	}
	return command.Wait()
}

// startInNode starts a command in the node's network, and in its PID namespace so that it ends with the node.
func startInNode(command *exec.Cmd, initPID int) error {
	return inside(initPID, map[string]int{"net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID}, command.Start)
}

// inside runs a function in namespaces of a process. The thread that entered them is never used again. It is not the
// main thread, which stands for the whole process in /proc.
func inside(pid int, namespaces map[string]int, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// As long as this goroutine has it, another one has another thread.
			done <- inside(pid, namespaces, do)
			runtime.UnlockOSThread()
			return
		}
		done <- func() error {
			for kind, flag := range namespaces {
				if err := enter(pid, kind, flag); err != nil {
					return err
				}
			}
			return do()
		}()
	}()
	return <-done
}

func enter(pid int, kind string, flag int) error {
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns", kind))
	if err != nil {
		return fmt.Errorf("entering the node's %s namespace: %w", kind, err)
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), flag); err != nil {
		return fmt.Errorf("entering the node's %s namespace: %w", kind, err)
	}
	return nil
}

func logFile(spec Spec, name string) (*os.File, error) {
	if err := os.MkdirAll(spec.LogDir(), 0o755); err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(spec.LogDir(), name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return file, nil
}

// writeFile replaces a file at once, so that no reader sees half of it.
func writeFile(path string, data []byte, mode os.FileMode) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
