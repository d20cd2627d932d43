package paths

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// most is what high-availability.md promises.
const most = 5 * time.Second

// health of a fakePath.
type health int32

const (
	answers health = iota
	// silent is a node that is gone, or a tunnel: nothing comes back.
	silent
	// refuses is a server that is gone from a node that lives.
	refuses
	// tunnelDown is a server that lives, and lost the shoot.
	tunnelDown
)

// fakePath is a path whose connections go nowhere.
type fakePath struct {
	name   string
	health atomic.Int32
	// refusal is what the shoot answers to connections; nil for none.
	refusal error
	dialled atomic.Int32
}

func (p *fakePath) String() string  { return p.name }
func (p *fakePath) become(h health) { p.health.Store(int32(h)) }

func (p *fakePath) Probe(ctx context.Context) error {
	return p.fate(ctx, 900*time.Millisecond)
}

// fate is what comes of asking; a server that lost the shoot says so after some time.
func (p *fakePath) fate(ctx context.Context, patience time.Duration) error {
	switch health(p.health.Load()) {
	case silent:
		<-ctx.Done()
		return context.Cause(ctx)
	case refuses:
		return errors.New("connection refused")
	case tunnelDown:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			return &connectproxy.DialError{Status: http.StatusGatewayTimeout, Message: "tunnel: down"}
		}
	}
	return nil
}

func (p *fakePath) Dial(ctx context.Context, _ string) (splice.Conn, error) {
	p.dialled.Add(1)
	if err := p.fate(ctx, 10*time.Second); err != nil {
		return nil, err
	}
	if p.refusal != nil {
		return nil, p.refusal
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(far, far) }()
	return fakeConn{near, p}, nil
}

type fakeConn struct {
	net.Conn
	by *fakePath
}

func (fakeConn) CloseWrite() error { return nil }

// start runs a Chooser of two paths, the first of which is taken, until the test's bubble ends.
func start(t *testing.T) (c *Chooser, first, second *fakePath) {
	t.Helper()
	first, second = &fakePath{name: "first"}, &fakePath{name: "second"}
	second.become(refuses)
	c = New([]Path{first, second}, DefaultTiming, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	second.become(answers)
	time.Sleep(time.Second)
	synctest.Wait()
	return c, first, second
}

// dial returns a connection that is there and the path that it takes.
func dial(t *testing.T, c *Chooser) (splice.Conn, *fakePath) {
	t.Helper()
	conn, err := c.Dial(t.Context(), "10.3.0.5:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, conn.(*boundConn).Conn.(fakeConn).by
}

// echo says whether what is sent through a connection comes back.
func echo(conn net.Conn) error {
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

// Whenever and however a path fails, who connects at that moment is connected in time by the other one, and who was
// connected learns that it was lost.
func TestAPathThatDoesNotAnswerIsLeftInTime(t *testing.T) {
	for name, h := range map[string]health{"silent": silent, "refuses": refuses, "tunnel down": tunnelDown} {
		for phase := time.Duration(0); phase <= 2*time.Second; phase += 50 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				c, first, second := start(t)
				old, by := dial(t, c)
				if by != first {
					t.Fatalf("the first connection takes path %s", by)
				}
				time.Sleep(phase)

				first.become(h)
				failed := time.Now()
				if _, by := dial(t, c); by != second || time.Since(failed) >= most {
					t.Errorf("%s, %v after the start: %s was taken after %v", name, phase, by, time.Since(failed))
				}
				if _, err := old.Read(make([]byte, 1)); err == nil || time.Since(failed) >= most {
					t.Errorf("%s, %v after the start: a connection of the path that failed: %v after %v", name, phase,
						err, time.Since(failed))
				}
			})
		}
	}
}

// Nobody is moved when a path comes back, and it is there when the other fails.
func TestAPathThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, first, second := start(t)
		first.become(silent)
		time.Sleep(most)
		conn, _ := dial(t, c)
		first.become(answers)
		time.Sleep(most)
		if _, by := dial(t, c); by != second {
			t.Errorf("a path that came back is taken")
		}
		if err := echo(conn); err != nil {
			t.Errorf("a connection of the other path: %v", err)
		}

		second.become(silent)
		time.Sleep(most)
		conn, by := dial(t, c)
		if by != first {
			t.Errorf("%s is taken", by)
		}
		if err := echo(conn); err != nil {
			t.Errorf("a connection of the path that came back: %v", err)
		}
	})
}

// Where the gateway is away, or all nodes of the shoot, there is no better path, and connections outlast it.
func TestConnectionsStayWhileNoPathLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, first, second := start(t)
		conn, _ := dial(t, c)
		second.become(silent)
		time.Sleep(most)
		first.become(silent)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		if _, err := c.Dial(ctx, "10.3.0.5:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while no path lives: %v", err)
		}
		first.become(answers)
		time.Sleep(most)
		if err := echo(conn); err != nil {
			t.Error(err)
		}
		if _, by := dial(t, c); by != first {
			t.Errorf("%s is taken", by)
		}
	})
}

// What the shoot says is not asked twice.
func TestAnAnswerOfTheShootIsTheAnswer(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusBadGateway, http.StatusGatewayTimeout} {
		synctest.Test(t, func(t *testing.T) {
			c, first, second := start(t)
			first.refusal = &connectproxy.DialError{Status: status, Message: "shoot: no"}
			_, err := c.Dial(t.Context(), "10.3.0.5:81")
			if refused := (*connectproxy.DialError)(nil); !errors.As(err, &refused) || refused.Status != status ||
				second.dialled.Load() != 0 {
				t.Errorf("%d: got %v, and the other path was asked %d times", status, err, second.dialled.Load())
			}
		})
	}
}

func TestNoPathLeadsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, first, second := start(t)
		first.become(tunnelDown)
		second.become(refuses)
		time.Sleep(most)
		_, err := c.Dial(t.Context(), "10.3.0.5:80")
		if refused := (*connectproxy.DialError)(nil); !errors.As(err, &refused) ||
			refused.Status != http.StatusGatewayTimeout ||
			!strings.Contains(err.Error(), "first: tunnel: down") ||
			!strings.Contains(err.Error(), "second: connection refused") {
			t.Errorf("got %v", err)
		}
	})
}
