// Package splice joins two byte streams and keeps half-closed streams open, as TCP does.
package splice

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Conn is a connection that can end its sending side alone.
type Conn interface {
	net.Conn
	// CloseWrite tells the peer that no more data follows.
	CloseWrite() error
}

// HalfCloseTimeout bounds how long one direction may go on after the other ended. A peer that forgets to end its own side
// would otherwise hold two sockets forever.
const HalfCloseTimeout = 30 * time.Minute

// Join copies both ways between a and b until both directions ended, one failed, or ctx is done. It closes both and
// returns the number of bytes that went each way. The end of a stream is not an error.
func Join(ctx context.Context, a, b Conn) (toB, toA int64, err error) {
	stop := context.AfterFunc(ctx, func() { closeAll(a, b) })
	defer stop()
	defer closeAll(a, b)

	var group errgroup.Group
	var ended atomic.Bool
	direction := func(dst, src Conn, n *int64) func() error {
		return func() (err error) {
			if *n, err = copyHalf(dst, src, &ended); err != nil {
				closeAll(a, b)
			}
			return err
		}
	}
	group.Go(direction(b, a, &toB))
	group.Go(direction(a, b, &toA))
	err = group.Wait()
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return toB, toA, err
}

// copyHalf copies one direction. Whichever direction ends first puts a limit on the other.
func copyHalf(dst, src Conn, ended *atomic.Bool) (int64, error) {
	n, err := io.Copy(dst, src)
	if err != nil {
		return n, err
	}
	if ended.CompareAndSwap(false, true) {
		_ = dst.SetReadDeadline(time.Now().Add(HalfCloseTimeout))
	}
	// The peer may be gone already; then the other direction ends by itself.
	_ = dst.CloseWrite()
	return n, nil
}

func closeAll(conns ...Conn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// KeepAlive is the TCP keepalive of every spliced connection: long idle watches are normal, dead peers are found within
// a minute.
var KeepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4}

// Prepend returns conn with the bytes that ahead has already buffered from it in front of what it reads next.
func Prepend(conn Conn, ahead *bufio.Reader) Conn {
	n := ahead.Buffered()
	if n == 0 {
		return conn
	}
	bytes, _ := ahead.Peek(n)
	return PrependBytes(conn, bytes)
}

// PrependBytes returns conn with bytes, which it owns from then on, in front of what it reads next.
func PrependBytes(conn Conn, bytes []byte) Conn {
	if len(bytes) == 0 {
		return conn
	}
	return &prepended{Conn: conn, ahead: bytes}
}

type prepended struct {
	Conn
	ahead []byte
}

func (p *prepended) Read(b []byte) (int, error) {
	if len(p.ahead) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.ahead)
	p.ahead = p.ahead[n:]
	return n, nil
}

// WriteTo writes what was read ahead and then lets the connection below choose the fastest way, which is splice(2)
// between two TCP connections.
func (p *prepended) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p.ahead)
	p.ahead = nil
	if err != nil {
		return int64(n), err
	}
	rest, err := io.Copy(w, p.Conn)
	return int64(n) + rest, err
}

// ReadFrom lets the connection below choose the fastest way too.
func (p *prepended) ReadFrom(r io.Reader) (int64, error) { return io.Copy(p.Conn, r) }
