// Package splice joins two byte streams and keeps half-closed streams open, as TCP does.
package splice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Stream is what can end its sending side alone: a connection, or a channel within one.
type Stream interface {
	io.ReadWriteCloser
	// CloseWrite tells the peer that no more data follows.
	CloseWrite() error
}

// Conn is a connection that can end its sending side alone.
type Conn interface {
	net.Conn
	// CloseWrite tells the peer that no more data follows.
	CloseWrite() error
}

// Of returns a connection as a Conn. One that cannot end its sending side alone is closed, which is an error.
func Of(conn net.Conn) (Conn, error) {
	result, ok := conn.(Conn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("connection of type %T cannot be half-closed", conn)
	}
	return result, nil
}

// HalfCloseTimeout bounds how long one direction may go on after the other ended. A peer that forgets to end its own
// side would otherwise hold two sockets forever.
const HalfCloseTimeout = 30 * time.Minute

// Join copies both ways between a and b until both directions ended, one failed, or ctx is done. It closes both and
// returns the number of bytes that went each way. The end of a stream is not an error.
func Join(ctx context.Context, a, b Stream) (toB, toA int64, err error) {
	stop := context.AfterFunc(ctx, func() { closeAll(a, b) })
	defer stop()
	defer closeAll(a, b)

	var group errgroup.Group // of one, so that the other direction needs no goroutine of its own
	limit := &halfClose{end: func() { closeAll(a, b) }}
	defer limit.stop()
	direction := func(dst, src Stream, n *int64) func() error {
		return func() (err error) {
			if *n, err = copyHalf(dst, src, limit); err != nil {
				closeAll(a, b)
			}
			return err
		}
	}
	group.Go(direction(b, a, &toB))
	err = direction(a, b, &toA)()
	if first := group.Wait(); first != nil && (err == nil || errors.Is(err, net.ErrClosed)) {
		err = first
	}
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return toB, toA, err
}

// halfClose ends what goes on for too long after one direction has ended.
type halfClose struct {
	begun sync.Once
	timer *time.Timer
	end   func()
}

func (h *halfClose) begin() {
	h.begun.Do(func() { h.timer = time.AfterFunc(HalfCloseTimeout, h.end) })
}

// stop is for when both directions have ended.
func (h *halfClose) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// copyHalf copies one direction. Whichever direction ends first puts a limit on the other.
func copyHalf(dst, src Stream, limit *halfClose) (int64, error) {
	n, err := transfer(dst, src)
	if err != nil {
		return n, err
	}
	limit.begin()
	// The peer may be gone already; then the other direction ends by itself.
	_ = dst.CloseWrite()
	return n, nil
}

// transfer copies until src ends. From a TCP connection it waits for data without holding a buffer, from others with a
// small one: most connections are idle most of the time. splice(2) as io.Copy uses it would hold a pipe for each
// direction of each.
func transfer(dst io.Writer, src io.Reader) (int64, error) {
	var written int64
	if ahead, ok := src.(*prepended); ok {
		n, err := dst.Write(ahead.ahead)
		ahead.ahead = nil
		if err != nil {
			return int64(n), err
		}
		written, src = int64(n), ahead.Conn
	}
	if behind, ok := dst.(*prepended); ok {
		dst = behind.Conn
	}
	from, ok := src.(*net.TCPConn)
	if !ok {
		n, err := copyWaiting(dst, src)
		return written + n, err
	}
	raw, err := from.SyscallConn()
	if err != nil {
		return written, err
	}
	n, err := (&reader{raw: raw}).copyTo(dst)
	return written + n, err
}

// smallSize is what a stream waits with that tells nothing before it is read, as one with TLS.
const smallSize = 1 << 10

// copyWaiting copies with a small buffer as long as little comes, and a large one while that is full.
func copyWaiting(dst io.Writer, src io.Reader) (written int64, err error) {
	small := make([]byte, smallSize)
	for {
		n, err := src.Read(small)
		if n > 0 {
			m, failed := dst.Write(small[:n])
			if written += int64(m); failed != nil {
				return written, failed
			}
		}
		if err == nil && n == smallSize {
			m, failed := copyMuch(dst, src)
			written, err = written+m, failed
		}
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// copyMuch copies until less comes at once than fits into a small buffer. It returns io.EOF at the end of the stream.
func copyMuch(dst io.Writer, src io.Reader) (written int64, err error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			m, failed := dst.Write(buf[:n])
			if written += int64(m); failed != nil {
				return written, failed
			}
		}
		if err != nil || n < smallSize {
			return written, err
		}
	}
}

// buffers holds *[bufferSize]byte.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const bufferSize = 32 << 10

// reader reads from a socket into a buffer that it takes only when there is something to read.
type reader struct {
	raw syscall.RawConn
	buf *[bufferSize]byte
	n   int
	err error
}

func (r *reader) copyTo(dst io.Writer) (written int64, err error) {
	tryRead := r.tryRead
	for {
		if err := r.raw.Read(tryRead); err != nil {
			return written, err
		}
		if r.buf == nil {
			return written, r.err
		}
		n, err := dst.Write(r.buf[:r.n])
		buffers.Put(r.buf)
		r.buf = nil
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// tryRead reads what there is; false means nothing yet. At the end of the stream, and when it fails, no buffer is left.
func (r *reader) tryRead(fd uintptr) bool {
	buf := buffers.Get().(*[bufferSize]byte)
	n, err := syscall.Read(int(fd), buf[:])
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(int(fd), buf[:])
	}
	if n > 0 {
		r.buf, r.n = buf, n
		return true
	}
	buffers.Put(buf)
	if errors.Is(err, syscall.EAGAIN) {
		return false
	}
	r.err = err
	return true
}

func closeAll(streams ...Stream) {
	for _, stream := range streams {
		_ = stream.Close()
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
