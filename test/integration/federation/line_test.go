package federation

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// line is a way to a member that can be cut. The member itself goes on.
type line struct {
	mu          sync.Mutex
	address     string
	listener    net.Listener
	connections map[net.Conn]bool
	isCut       bool
}

// connect puts the line before the member: config leads to its near end.
func (l *line) connect(config *rest.Config) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l.address, l.listener, l.connections = strings.TrimPrefix(config.Host, "https://"), listener, map[net.Conn]bool{}
	config.Host = "https://" + listener.Addr().String()
	go l.accept()
	return nil
}

func (l *line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(near)
	}
}

func (l *line) carry(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", l.address)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	if !l.register(near, far) {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.connections, near)
	delete(l.connections, far)
}

func (l *line) register(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		l.connections[end] = true
	}
	return !l.isCut
}

func (l *line) set(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
	if isCut {
		for end := range l.connections {
			_ = end.Close()
			delete(l.connections, end)
		}
	}
}

func (l *line) cut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isCut
}

// cutOff a member; the line is repaired when the test ends at the latest.
func (w *world) cutOff(t *testing.T, name string) {
	t.Helper()
	w.lines[name].set(true)
	t.Cleanup(func() { w.reconnect(name) })
}

func (w *world) reconnect(name string) { w.lines[name].set(false) }
