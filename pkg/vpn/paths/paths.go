// Package paths leads kube-apiserver into a shoot by one of several paths, as highly available control planes have
// them. A path is a vpn-seed-server with a tunnel of its own. All are asked all the time whether the shoot answers
// through them; one that does not is left within five seconds.
//
// It listens, as an HTTP CONNECT proxy, on a socket that only the pod of the kube-apiserver has.
package paths

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/vpn/connectproxy"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

// Path is one way into the shoot.
type Path interface {
	// String names it.
	fmt.Stringer
	// Probe returns nil when the shoot has answered through it.
	Probe(ctx context.Context) error
	// Dial connects to host:port in the shoot. What the path itself has refused is a connectproxy.DialError.
	Dial(ctx context.Context, address string) (splice.Conn, error)
}

// Timing says how paths are watched.
type Timing struct {
	// Probe is the pause after a probe that was answered, ProbeFailed that after one that was not.
	Probe, ProbeFailed time.Duration
	// Timeout is how long an answer may take.
	Timeout time.Duration
	// Failures is how many probes in a row must fail before a path is left.
	Failures int
}

// DefaultTiming leaves a path that does not answer after 3.25 seconds at the latest, and tolerates one lost packet.
var DefaultTiming = Timing{
	Probe: time.Second, ProbeFailed: 250 * time.Millisecond, Timeout: time.Second, Failures: 2,
}

// Chooser chooses among paths.
type Chooser struct {
	timing Timing
	log    logr.Logger
	paths  []Path

	mu     sync.Mutex
	choice choice
	// uses are those of the paths since they were left last.
	uses []use
}

// use ends when a path is left; then there is another one for when it comes back.
type use struct {
	ctx context.Context
	end context.CancelCauseFunc
}

// errLeft is why connections of a path end.
var errLeft = errors.New("the shoot does not answer through this path, and does through another")

// New returns a Chooser of one path or more.
func New(paths []Path, timing Timing, log logr.Logger) *Chooser {
	c := &Chooser{timing: timing, log: log, paths: paths, choice: newChoice(len(paths), timing.Failures)}
	for range paths {
		c.uses = append(c.uses, newUse())
	}
	return c
}

func newUse() use {
	ctx, end := context.WithCancelCause(context.Background())
	return use{ctx, end}
}

// Run watches the paths until ctx is done.
func (c *Chooser) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.paths {
		group.Go(func() error {
			c.watch(ctx, i)
			return nil
		})
	}
	return group.Wait()
}

func (c *Chooser) watch(ctx context.Context, i int) {
	for {
		err := c.probe(ctx, i)
		if ctx.Err() != nil {
			return
		}
		c.observe(i, err)
		pause := c.timing.Probe
		if err != nil {
			pause = c.timing.ProbeFailed
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (c *Chooser) probe(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, c.timing.Timeout)
	defer cancel()
	return c.paths[i].Probe(ctx)
}

// observe takes the result of a probe, and ends the uses of paths that are left.
func (c *Chooser) observe(i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lived, current := c.choice.paths[i].lives, c.choice.current
	c.choice.observe(i, err == nil)
	switch lives := c.choice.paths[i].lives; {
	case lives && !lived:
		c.log.Info("The shoot answers", "path", c.paths[i].String())
	case lived && !lives:
		c.log.Info("The shoot does not answer", "path", c.paths[i].String(), "reason", err.Error())
	}
	if c.choice.current != current {
		c.log.Info("New connections take another path", "path", c.paths[c.choice.current].String())
	}
	for path := range c.paths {
		ended := c.uses[path].ctx.Err() != nil
		switch isLeft := c.choice.isLeft(path); {
		case isLeft && !ended:
			c.uses[path].end(errLeft)
		case !isLeft && ended:
			c.uses[path] = newUse()
		}
	}
}

// Dial connects to host:port in the shoot: by the current path, and by another when that does not do. It is a
// connectproxy.DialFunc.
func (c *Chooser) Dial(ctx context.Context, address string) (splice.Conn, error) {
	var failures []error
	for _, i := range c.order() {
		conn, err := c.dialBy(ctx, i, address)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || c.isAnswer(i, err) {
			return nil, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", c.paths[i], err))
	}
	return nil, &connectproxy.DialError{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf(
		"no path leads to %s: %v", address, errors.Join(failures...))}
}

func (c *Chooser) order() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.choice.order()
}

// isAnswer says whether another path would fail in the same way: the shoot refused, or was silent although it answers
// through this path.
func (c *Chooser) isAnswer(i int, err error) bool {
	refused := (*connectproxy.DialError)(nil)
	if !errors.As(err, &refused) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return refused.Status != http.StatusGatewayTimeout || c.choice.paths[i].lives
}

// dialBy connects by one path, unless that is left meanwhile. The connection ends when it is left later.
func (c *Chooser) dialBy(ctx context.Context, i int, address string) (splice.Conn, error) {
	c.mu.Lock()
	left := c.uses[i].ctx
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(left, func() { cancel(context.Cause(left)) })
	defer stop()
	conn, err := c.paths[i].Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	if left.Err() != nil {
		_ = conn.Close()
		return nil, context.Cause(left)
	}
	return &boundConn{Conn: conn, stop: context.AfterFunc(left, func() { _ = conn.Close() })}, nil
}

// boundConn ends with the use of its path.
type boundConn struct {
	splice.Conn
	stop func() bool
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
