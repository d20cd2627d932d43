package splice

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// tcpPair returns both ends of a TCP connection.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}

type result struct {
	toB, toA int64
	err      error
}

// joined returns the outer ends of two connections whose inner ends are joined.
func joined(t *testing.T, ctx context.Context, ahead []byte) (left, right *net.TCPConn, ended chan result) {
	t.Helper()
	left, a := tcpPair(t)
	b, right := tcpPair(t)
	ended = make(chan result, 1)
	go func() {
		toB, toA, err := Join(ctx, PrependBytes(a, ahead), b)
		ended <- result{toB, toA, err}
	}()
	return left, right, ended
}

func TestJoinKeepsHalfClosedStreamsOpen(t *testing.T) {
	left, right, ended := joined(t, context.Background(), []byte("ahead "))
	write(t, left, "request")
	if err := left.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(right); string(got) != "ahead request" || err != nil {
		t.Errorf("right got %q, %v", got, err)
	}
	write(t, right, "answer")
	_ = right.Close()
	if got, err := io.ReadAll(left); string(got) != "answer" || err != nil {
		t.Errorf("left got %q, %v", got, err)
	}
	if r := <-ended; r != (result{13, 6, nil}) {
		t.Errorf("Join returned %+v", r)
	}
}

func TestJoinEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	left, _, ended := joined(t, ctx, nil)
	cancel()
	if r := <-ended; r.err != nil {
		t.Errorf("Join returned %+v", r)
	}
	_ = left.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := left.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open: %v", err)
	}
}

func TestJoinEndsWhenOneSideIsReset(t *testing.T) {
	left, right, ended := joined(t, context.Background(), nil)
	_ = right.SetLinger(0)
	_ = right.Close()
	if _, err := left.Read(make([]byte, 1)); err == nil {
		t.Error("left did not notice")
	}
	<-ended
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}
