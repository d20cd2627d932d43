// Package relay forwards WireGuard packets between the clients of one UDP port and the servers behind it, as package
// demux decides. Each session has its own connected socket to its server, so that servers see clients apart.
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

	"github.com/trellis-garden/trellis/pkg/vpn/demux"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
)

const expiryInterval = 5 * time.Second

// Relay serves one UDP port.
type Relay struct {
	log   logr.Logger
	table *demux.Table
	conn  *net.UDPConn
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
func Listen(ctx context.Context, log logr.Logger, address string, limits demux.Limits) (*Relay, error) {
	packetConn, err := (&net.ListenConfig{Control: listenControl}).ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("WireGuard port: %w", err)
	}
	conn := packetConn.(*net.UDPConn)
	tune(conn)
	r := &Relay{log: log, conn: conn}
	r.buffers.New = func() any { return new([maxDatagram]byte) }
	r.table = demux.New(limits, r.closeLink)
	return r, nil
}

// Addr is the address of the port.
func (r *Relay) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// SetServers replaces the servers that packets are forwarded to.
func (r *Relay) SetServers(servers []demux.Server) { r.table.SetServers(servers) }

// Metrics returns the relay's counters.
func (r *Relay) Metrics() []prometheus.Collector {
	return []prometheus.Collector{
		health.Gauge("gateway_wireguard_servers", "WireGuard servers that packets are forwarded to.", func() int { servers, _ := r.table.Len(); return servers }),
		health.Gauge("gateway_wireguard_sessions", "Sessions of clients with servers.", func() int { _, sessions := r.table.Len(); return sessions }),
		health.Counter("gateway_wireguard_client_packets_total", "Packets from clients that were forwarded.", r.fromClients.Load),
		health.Counter("gateway_wireguard_server_packets_total", "Packets from servers that were forwarded.", r.fromServers.Load),
		health.Counter("gateway_wireguard_client_packets_lost_total", "Packets from clients that were for nobody or could not be forwarded.", r.dropped.Load),
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
	r.table.SetServers(nil)
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
			r.table.Expire(now)
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
				return fmt.Errorf("WireGuard port: %w", err)
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
	var session *demux.Session
	var to *link
	start := 0
	each(batch, info.segment, func(from, end int) {
		next, verdict := r.table.FromClient(now, client, batch[from:end])
		if next != session || verdict == demux.Redial {
			to.sendToServer(batch[start:from], info.segment)
			session, to, start = next, r.connect(next, verdict, info), from
		}
		if to == nil {
			r.dropped.Add(1)
			return
		}
		r.fromClients.Add(1)
	})
	to.sendToServer(batch[start:], info.segment)
}

// connect returns the link of a session as the verdict asks for it. It returns nil when there is no session, or no socket
// for it.
func (r *Relay) connect(session *demux.Session, verdict demux.Verdict, info received) *link {
	if session == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, _ := session.Link.(*link)
	if old == ended {
		return nil
	}
	if old != nil && verdict != demux.Redial {
		old.learnLocal(info)
		return old
	}
	fresh, err := r.openLink(session, info)
	if err != nil {
		r.log.Info("Cannot reach WireGuard server", "server", session.Server.Name, "reason", err.Error())
		return old
	}
	if old != nil {
		old.close()
	}
	session.Link = fresh
	r.log.V(1).Info("WireGuard session", "client", session.Client, "server", session.Server.Name, "again", old != nil)
	return fresh
}

// ended takes the place of the link in sessions that ended.
var ended = &link{}

func (r *Relay) closeLink(session *demux.Session) {
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
