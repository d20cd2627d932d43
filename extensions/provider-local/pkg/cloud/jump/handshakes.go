package jump

import (
	"net"
	"slices"
	"sync"
)

// handshakes are the connections of clients that have not proved who they are, oldest first. Whoever opens many and is
// silent loses them to who comes later: a user takes a moment to log in.
type handshakes struct {
	mu      sync.Mutex
	waiting []net.Conn
}

// enter gives a connection a place, if need be that of the oldest one, which it closes.
func (h *handshakes) enter(connection net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == maxHandshakes {
		h.waiting[0].Close()
		h.waiting = slices.Delete(h.waiting, 0, 1)
	}
	h.waiting = append(h.waiting, connection)
}

// leave frees the place of a connection, if it still has one.
func (h *handshakes) leave(connection net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(h.waiting, connection); at >= 0 {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
}
