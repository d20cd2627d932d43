package splice

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/iotest"
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

// What comes in pieces of any size arrives whole, with the error that ended it.
func TestCopyWaiting(t *testing.T) {
	data := make([]byte, 200<<10)
	for i := range data {
		data[i] = byte(i * 7)
	}
	broken := errors.New("broken")
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"all at once":         func(r io.Reader) io.Reader { return r },
		"byte by byte":        iotest.OneByteReader,
		"halves":              iotest.HalfReader,
		"the end with data":   iotest.DataErrReader,
		"an error in the end": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
		"full small buffers":  func(r io.Reader) io.Reader { return limited{r, smallSize} },
	} {
		var got bytes.Buffer
		n, err := copyWaiting(&got, wrap(bytes.NewReader(data)))
		if failed := name == "an error in the end"; errors.Is(err, broken) != failed || !failed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n != int64(len(data)) || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s: %d of %d bytes came", name, n, len(data))
		}
	}
}

// limited gives no more than so many bytes at a time.
type limited struct {
	io.Reader
	most int
}

func (l limited) Read(b []byte) (int, error) { return l.Reader.Read(b[:min(len(b), l.most)]) }
