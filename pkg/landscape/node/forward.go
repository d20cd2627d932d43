package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// dialTimeout bounds how long a client of the host waits for a port of the node.
const dialTimeout = 5 * time.Second

// firstInherited is the first file descriptor after standard input, output and error.
const firstInherited = 3

// ServeForwards serves listeners that were opened in the host's network and inherited as the file descriptors from 3
// on, in the order of targets. It runs in the node's network and returns when the context ends or a listener fails.
func ServeForwards(ctx context.Context, targets []string) error {
	errs := make(chan error, len(targets))
	for i, target := range targets {
		file := os.NewFile(uintptr(firstInherited+i), "listener for "+target)
		listener, err := net.FileListener(file)
		if err != nil {
			return fmt.Errorf("inherited listener %d for %s: %w", i, target, err)
		}
		file.Close()
		context.AfterFunc(ctx, func() { listener.Close() })
		go func() { errs <- forward(ctx, listener, target) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-errs:
		return err
	}
}

func forward(ctx context.Context, listener net.Listener, target string) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("forwarding to %s: %w", target, err)
		}
		go join(ctx, connection, target)
	}
}

// join connects a client with the target until both have said all they have to say.
func join(ctx context.Context, client net.Conn, target string) {
	defer client.Close()
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	toClient, errClient := splice.Of(client)
	toServer, errServer := splice.Of(server)
	if errClient == nil && errServer == nil {
		_, _, _ = splice.Join(ctx, toClient, toServer) // How a connection ends is for its ends to know.
	}
}
