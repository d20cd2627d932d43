// Package ports gives tests TCP ports for the servers that they start as processes of their own.
package ports

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The ports lie below those that kernels choose for connections by themselves (net.ipv4.ip_local_port_range begins at
// 32768), which might take one between the choice and the start of its server. NodePorts (30000-32767) and well-known
// servers are left out as well.
const (
	first = 21000
	last  = 29999
)

var (
	mu   sync.Mutex
	next = first + os.Getpid()*37%(last-first)
	// claims keeps the files open whose locks say that a port is taken.
	claims []*os.File
)

// Take returns a port of the loopback address that nobody listens on and that no other test gets before this process
// ends: a lock on a file, which ends with the process, says whose it is.
func Take() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	folder := filepath.Join(os.TempDir(), "trellis-test-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return 0, err
	}
	for range last - first {
		port := next
		if next++; next > last {
			next = first
		}
		claim, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return 0, err
		}
		if syscall.Flock(int(claim.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !free(port) {
			_ = claim.Close()
			continue
		}
		claims = append(claims, claim)
		return port, nil
	}
	return 0, errors.New("all ports for tests are taken")
}

func free(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && listener.Close() == nil
}
