package tunnel

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// Protocol is what a connection is upgraded to.
	Protocol = "trellis-tunnel"
	// Subresource of the Cluster whose agent asks. For kube-apiserver requests for one of this name last as long as
	// they like, which it decides by the name.
	Subresource = "attach"

	// heldHeader, of a request to attach, lists the replicas of the federation that the agent has a tunnel to.
	heldHeader = "Trellis-Tunnel-Held"
	// replicaHeader and replicasHeader, of the answer, tell which replica answers, and how many there are.
	replicaHeader  = "Trellis-Tunnel-Replica"
	replicasHeader = "Trellis-Tunnel-Replicas"
	// upgradeHeader, within a tunnel, says which protocol is asked for, and in the answer that it is spoken.
	upgradeHeader = "Trellis-Tunnel-Upgrade"
)

const (
	// maxStreams bounds the requests that are under way in one tunnel.
	maxStreams = 200
	// maxUserStreams bounds those of one user.
	maxUserStreams = maxStreams / 4
	// streamBuffer bounds what is kept of a stream that is not read from; all streams together fill what a connection
	// has, so that none makes others wait.
	streamBuffer = 128 << 10
	// maxHeader bounds the header of an answer, as that of a member that the fleet talks to itself.
	maxHeader = 1 << 20
	// pingAfter something was heard last, the other end is asked whether it is there; pingTimeout is how long that may
	// take. Together they tell within 15 seconds that a tunnel is dead.
	pingAfter   = 5 * time.Second
	pingTimeout = 10 * time.Second
	// maxReplicas bounds how many tunnels a fleet can have an agent open.
	maxReplicas = 8
	// maxProtocol bounds the name of a protocol that is asked for.
	maxProtocol = 64
)

// upgraded are the headers of an answer that go with a change of the protocol.
var upgraded = []string{
	"Sec-Websocket-Accept", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol", "X-Stream-Protocol-Version",
}

func keepUpgraded(to, from http.Header) {
	for _, key := range upgraded {
		if values := from.Values(key); len(values) > 0 {
			to[key] = values
		}
	}
}

// closing is a connection that tells when it is closed.
type closing struct {
	net.Conn
	once   sync.Once
	err    error
	closed chan struct{}
}

func newClosing(conn net.Conn) *closing { return &closing{Conn: conn, closed: make(chan struct{})} }

// Close implements net.Conn.
func (c *closing) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		close(c.closed)
	})
	return c.err
}

// read takes what was read ahead of a connection before the rest of it.
type read struct {
	net.Conn
	reader io.Reader
}

// Read implements net.Conn.
func (r read) Read(p []byte) (int, error) { return r.reader.Read(p) }

// stream is the body of an answer that changes the protocol, as a connection. That its ends are gone is told by pings,
// not by deadlines.
type stream struct{ io.ReadWriteCloser }

// Deadlines and addresses implement net.Conn.
func (stream) LocalAddr() net.Addr              { return address{} }
func (stream) RemoteAddr() net.Addr             { return address{} }
func (stream) SetDeadline(time.Time) error      { return nil }
func (stream) SetReadDeadline(time.Time) error  { return nil }
func (stream) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

// Network and String implement net.Addr.
func (address) Network() string { return Protocol }
func (address) String() string  { return Protocol }
