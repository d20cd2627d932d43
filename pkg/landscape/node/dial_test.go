package node

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A connection is made in the network of the node, and in no other: neither is what the host serves reached through a
// node, nor does the host lose its own network by that.
func TestConnectionsAreMadeInTheNode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("entering another network needs root")
	}
	elsewhere := exec.Command("sleep", "600")
	elsewhere.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := elsewhere.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = elsewhere.Process.Kill(); _ = elsewhere.Wait() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	dial := func(pid int) error {
		connection, err := Processes{Init: Process{PID: pid}}.Dial(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			err = connection.Close()
		}
		return err
	}
	for range 3 {
		if err := dial(elsewhere.Process.Pid); err == nil {
			t.Error("another network has what the host serves")
		}
		if err := dial(os.Getpid()); err != nil {
			t.Errorf("in the own network: %v", err)
		}
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatalf("the host has lost its network: %v", err)
		}
		_ = connection.Close()
	}
	if err := dial(-1); err == nil {
		t.Error("a process that does not run has a network")
	}
}
