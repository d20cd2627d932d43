// Package relay forwards the packets of tunnels between the clients of one UDP port and the servers behind it, as a
// transport.Demultiplexer decides. Each session has its own connected socket to its server, so that servers see clients
// apart.
package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

const expiryInterval = 5 * time.Second

// Relay serves one UDP port.
type Relay struct {
	log logr.Logger
	// transport is the name of what is forwarded.
	transport     string
	demultiplexer transport.Demultiplexer
	conn          *net.UDPConn
	// mu guards the Link of every session.
	mu sync.Mutex
	// links counts the goroutines that read from servers.
	links sync.WaitGroup
	// buffers holds *[maxDatagram]byte for reads from servers: only sessions with traffic hold one.
	buffers sync.Pool
	segment segmentation

	fromClients, fromServers, dropped atomic.Uint64
}

// Listen opens the port, an address like ":51820".
func Listen(
	ctx context.Context, log logr.Logger, address string, demultiplexing transport.Demultiplexing,
) (*Relay, error) {
	packetConn, err := (&net.ListenConfig{Control: listenControl}).ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("%s port: %w", demultiplexing.Name(), err)
	}
	conn := packetConn.(*net.UDPConn)
	tune(conn)
	r := newRelay(log, demultiplexing)
	r.conn = conn
	return r, nil
}

func newRelay(log logr.Logger, demultiplexing transport.Demultiplexing) *Relay {
	r := &Relay{log: log, transport: demultiplexing.Name()}
	r.buffers.New = func() any { return new([maxDatagram]byte) }
	r.demultiplexer = demultiplexing.New(r.closeLink)
	return r
}

// Addr is the address of the port.
func (r *Relay) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// SetServers replaces the servers that packets are forwarded to.
func (r *Relay) SetServers(servers []transport.Server) { r.demultiplexer.SetServers(servers) }

// Metrics returns the relay's counters.
func (r *Relay) Metrics() []prometheus.Collector {
	prefix := "gateway_" + r.transport
	servers := func() int { servers, _ := r.demultiplexer.Len(); return servers }
	sessions := func() int { _, sessions := r.demultiplexer.Len(); return sessions }
	return []prometheus.Collector{
		health.Gauge(prefix+"_servers", "Servers that packets are forwarded to.", servers),
		health.Gauge(prefix+"_sessions", "Sessions of clients with servers.", sessions),
		health.Counter(prefix+"_client_packets_total", "Packets from clients that were forwarded.", r.fromClients.Load),
		health.Counter(prefix+"_server_packets_total", "Packets from servers that were forwarded.", r.fromServers.Load),
		health.Counter(prefix+"_client_packets_lost_total",
			"Packets from clients that were for nobody or could not be forwarded.", r.dropped.Load),
	}
}

// Run forwards until ctx is done.
func (r *Relay) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = r.conn.Close() })
	defer stop()
	group.Go(func() error { return r.readClients(ctx) })
	group.Go(func() error { return r.expire(ctx) })
	err := group.Wait()
	r.demultiplexer.SetServers(nil)
	r.links.Wait()
	return err
}

func (r *Relay) expire(ctx context.Context) error {
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			r.demultiplexer.Expire(now)
		}
	}
}

func (r *Relay) readClients(ctx context.Context) error {
	buf, control := make([]byte, maxDatagram), make([]byte, maxControl)
	for failures := 0; ; {
		n, controlLength, _, client, err := r.conn.ReadMsgUDPAddrPort(buf, control)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if failures++; failures > maxReadFailures || errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("%s port: %w", r.transport, err)
			}
			continue
		}
		failures = 0
		client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
		r.forward(time.Now(), client, buf[:n], parseControl(control[:controlLength]))
	}
}

// forward sends the datagrams of one read to their servers: neighbours with the same server in one write.
func (r *Relay) forward(now time.Time, client netip.AddrPort, batch []byte, info received) {
	var session *transport.Session
	var to *link
	start := 0
	each(batch, info.segment, func(from, end int) {
		next, action := r.demultiplexer.FromClient(now, client, batch[from:end])
		if next != session || action == transport.Redial {
			to.sendToServer(batch[start:from], info.segment)
			session, to, start = next, r.connect(next, action, info), from
		}
		if to == nil {
			r.dropped.Add(1)
			return
		}
		r.fromClients.Add(1)
	})
	to.sendToServer(batch[start:], info.segment)
}

// connect returns the link of a session as the action asks for it. It returns nil when there is no session, or no
// socket for it.
func (r *Relay) connect(session *transport.Session, action transport.Action, info received) *link {
	if session == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, _ := session.Link.(*link)
	if old == ended {
		return nil
	}
	if old != nil && action != transport.Redial {
		old.learnLocal(info)
		return old
	}
	fresh, err := r.openLink(session, info)
	if err != nil {
		r.log.Info("Cannot reach the server of a tunnel", "server", session.Server.Name, "reason", err.Error())
		return old
	}
	if old != nil {
		old.close()
	}
	session.Link = fresh
	r.log.V(1).Info("Session of a tunnel", "client", session.Client, "server", session.Server.Name, "again", old != nil)
	return fresh
}

// ended takes the place of the link in sessions that ended.
var ended = &link{}

func (r *Relay) closeLink(session *transport.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := session.Link.(*link); ok && old != ended {
		old.close()
	}
	session.Link = ended
}

// each calls f with the bounds of each datagram in a batch.
func each(batch []byte, segment int, f func(from, to int)) {
	if segment <= 0 {
		segment = len(batch)
	}
	for from := 0; from < len(batch); from += segment {
		f(from, min(from+segment, len(batch)))
	}
}
