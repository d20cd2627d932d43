package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestPortsAreTakenOnce(t *testing.T) {
	taken := map[int]bool{}
	for range 20 {
		port, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		if taken[port] || port < first || port > last {
			t.Errorf("port %d was taken before, or is none for tests", port)
		}
		taken[port] = true
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	}
}

func TestPortsOfOtherServersAreLeftAlone(t *testing.T) {
	used, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", used))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if free(used) {
		t.Errorf("port %d is another server's", used)
	}
}
