package terminal

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	// Protocol is the subprotocol of the sockets.
	Protocol = "trellis.terminal.v1"
	// lifetime of a terminal at most. Its credential is good for a little longer, so that it can be removed.
	lifetime         = time.Hour
	credentialMargin = 10 * time.Minute
	// DefaultIdle is how long nobody may type.
	DefaultIdle = 30 * time.Minute
)

// Options of a server.
type Options struct {
	Clusters *clusters.Clusters
	Users    *limits.Users
	// Origin of the pages.
	Origin string
	// Image of pods, with kubectl and /bin/sh.
	Image string
	// Revoked tells of sessions that were ended.
	Revoked func(session string) bool
	// Idle is after which time without input a terminal ends.
	Idle time.Duration
	// Now is the time.
	Now func() time.Time
}

// Server answers sockets. What it knows of terminals it forgets with them.
type Server struct {
	options  Options
	upgrader websocket.Upgrader

	mutex   sync.Mutex
	sockets map[*socket]bool
	closed  bool
	// ended is waited for when the server ends.
	ended sync.WaitGroup
}

// NewServer has no terminals yet.
func NewServer(options Options) *Server {
	return &Server{options: options, sockets: map[*socket]bool{}, upgrader: websocket.Upgrader{
		ReadBufferSize: 4096, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{}, Subprotocols: []string{Protocol},
		CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == options.Origin },
		Error: func(w http.ResponseWriter, _ *http.Request, code int, reason error) {
			reply.Failure(w, reply.Error(code, reply.ReasonCSRF, "no socket: %v", reason))
		},
	}}
}

// errors that end terminals, as people are told of them.
var (
	errServerEnds = errors.New("the server ends")
	errLoggedOut  = errors.New("logged out")
	errLifetime   = errors.New("its time is over")
	errIdle       = errors.New("nobody has typed for long")
	errPage       = errors.New("the page was closed")
)

// Serve answers a socket of a session with a terminal until either ends.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, of *session.Session) {
	connection, err := s.upgrader.Upgrade(w, r, http.Header{"Set-Cookie": w.Header().Values("Set-Cookie")})
	if err != nil {
		return // It was answered.
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	k := &socket{connection: connection, session: of.ID, ctx: ctx, cancel: cancel}
	k.limit()
	defer k.close()
	if !s.enter(k) {
		k.end(errServerEnds)
		return
	}
	defer s.leave(k)
	if s.options.Revoked(of.ID) {
		k.end(errLoggedOut)
		return
	}
	done, err := s.options.Users.Terminal(of.User)
	if err != nil {
		k.end(err)
		return
	}
	defer done()
	k.end(s.run(k, r, of))
}

// run has a terminal until something ends it, which it gives. The error is nil if the shell ended by itself.
func (s *Server) run(k *socket, r *http.Request, of *session.Session) error {
	asked, err := requestOf(r)
	if err != nil {
		return err
	}
	ends := s.options.Now().Add(lifetime)
	if of.Ends().Before(ends) {
		ends = of.Ends()
	}
	over := time.AfterFunc(ends.Sub(s.options.Now()), func() { k.cancel(errLifetime) })
	defer over.Stop()
	k.idle = time.AfterFunc(s.options.Idle, func() { k.cancel(errIdle) })
	defer k.idle.Stop()
	k.idleAfter = s.options.Idle
	go k.read()
	go k.ping()

	p, err := s.open(k.ctx, asked, of, ends)
	if err != nil {
		return k.cause(err)
	}
	defer p.cluster.Close()
	err = k.cause(p.use(k))
	why := "the shell has ended"
	if err != nil {
		why = err.Error()
	}
	p.remove(k.ctx, why)
	return err
}

func (s *Server) enter(k *socket) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return false
	}
	s.sockets[k] = true
	s.ended.Add(1)
	return true
}

func (s *Server) leave(k *socket) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sockets, k)
	s.ended.Done()
}

// Ended ends the terminals of a session.
func (s *Server) Ended(id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for k := range s.sockets {
		if k.session == id {
			k.cancel(errLoggedOut)
		}
	}
}

// Terminals is how many are open.
func (s *Server) Terminals() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.sockets)
}

// Close ends all terminals, and waits until they are removed or the context ends.
func (s *Server) Close(ctx context.Context) {
	s.mutex.Lock()
	s.closed = true
	for k := range s.sockets {
		k.cancel(errServerEnds)
	}
	s.mutex.Unlock()
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
