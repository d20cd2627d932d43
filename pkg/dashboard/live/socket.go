package live

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/semaphore"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

// Codes with which sockets are closed, beside those of RFC 6455.
const (
	CodeLoggedOut = 4401
	CodeSilent    = 4408
	CodeTooSlow   = 4409
)

const (
	// Protocol is the subprotocol of the sockets.
	Protocol = "trellis.live.v1"
	// silence is how long a page may send nothing.
	silence      = 90 * time.Second
	writeTimeout = 30 * time.Second
	// listsOfUser are read at a time, in all of a user's browsers.
	listsOfUser = 4
)

// Server answers sockets.
type Server struct {
	clusters      *clusters.Clusters
	named         func(context.Context, session.Credential, string) (*clusters.Cluster, error)
	subscriptions int
	revoked       func(session string) bool
	now           func() time.Time
	feeds         *feeds
	lists         *lists
	queued        atomic.Int64
	upgrader      websocket.Upgrader

	mutex   sync.Mutex
	sockets map[*socket]bool
	users   map[string]*reader
	// closed tells that no socket is opened any more; ended is closed once there is none.
	closed bool
	ended  chan struct{}
}

// reader is a user, while they have sockets.
type reader struct {
	sockets int
	lists   *semaphore.Weighted
}

// NewServer answers sockets of pages of an origin, with so many subscriptions each. Sessions that are revoked have
// none, also if they are while a socket is opened.
func NewServer(c *clusters.Clusters, origin string, subscriptions int, revoked func(session string) bool,
	now func() time.Time) *Server {
	shared := &lists{open: map[string]*sharedList{}}
	return &Server{
		clusters: c, named: c.Named, subscriptions: subscriptions, revoked: revoked, now: now,
		feeds: &feeds{open: map[string]*feed{}, outdated: shared.outdated}, lists: shared,
		sockets: map[*socket]bool{}, users: map[string]*reader{}, ended: make(chan struct{}),
		upgrader: websocket.Upgrader{
			ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{},
			Subprotocols: []string{Protocol},
			CheckOrigin:  func(r *http.Request) bool { return r.Header.Get("Origin") == origin },
			Error: func(w http.ResponseWriter, _ *http.Request, code int, reason error) {
				reply.Failure(w, reply.Error(code, reply.ReasonCSRF, "no socket: %v", reason))
			},
		},
	}
}

// socket is a browser.
type socket struct {
	connection *websocket.Conn
	credential session.Credential
	session    string
	user       string
	*Server
	queue   *queue
	listing *semaphore.Weighted
	ctx     context.Context
	cancel  context.CancelFunc

	mutex         sync.Mutex
	subscriptions map[string]*subscription
	closing       sync.Once
}

// Serve answers a socket of a session until it is closed. The header is sent with the answer to the handshake.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, of *session.Session) {
	connection, err := s.upgrader.Upgrade(w, r, http.Header{"Set-Cookie": w.Header().Values("Set-Cookie")})
	if err != nil {
		return // It was answered.
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &socket{
		connection: connection, credential: of.Credential, session: of.ID, user: of.User, Server: s,
		queue: newQueue(&s.queued), ctx: ctx, cancel: cancel, subscriptions: map[string]*subscription{},
	}
	if !s.enter(k) {
		k.close(websocket.CloseGoingAway, "the server ends")
		cancel()
		return
	}
	defer k.end()
	if s.revoked(of.ID) {
		k.close(CodeLoggedOut, "logged out")
		return
	}
	ends := of.Expires
	if !of.CredentialExpires.IsZero() && of.CredentialExpires.Before(ends) {
		ends = of.CredentialExpires
	}
	timer := time.AfterFunc(ends.Sub(s.now()), func() { k.close(CodeLoggedOut, "the credential has expired") })
	defer timer.Stop()
	k.push(helloText(of.User))
	go k.write()
	k.read()
}

func (s *Server) enter(k *socket) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return false
	}
	s.sockets[k] = true
	of, found := s.users[k.user]
	if !found {
		of = &reader{lists: semaphore.NewWeighted(listsOfUser)}
		s.users[k.user] = of
	}
	of.sockets++
	k.listing = of.lists
	return true
}

// leave forgets a socket that entered.
func (s *Server) leave(k *socket) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sockets, k)
	if of := s.users[k.user]; of.sockets > 1 {
		of.sockets--
	} else {
		delete(s.users, k.user)
	}
	if s.closed && len(s.sockets) == 0 {
		close(s.ended)
	}
}

// Ended closes the sockets of a session.
func (s *Server) Ended(id string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for k := range s.sockets {
		if k.session == id {
			go k.close(CodeLoggedOut, "logged out")
		}
	}
}

// Close closes all sockets, and waits until they and their watches have ended, or the context has. Pages connect to
// another server then.
func (s *Server) Close(ctx context.Context) {
	s.closeAll()
	select {
	case <-ctx.Done():
	case <-s.ended:
	}
}

func (s *Server) closeAll() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for k := range s.sockets {
		go k.close(websocket.CloseGoingAway, "the server ends")
	}
	if len(s.sockets) == 0 {
		close(s.ended)
	}
}

// Watches is how many watches are open, and Sockets how many browsers.
func (s *Server) Watches() int {
	s.feeds.mutex.Lock()
	defer s.feeds.mutex.Unlock()
	return len(s.feeds.open)
}

// Sockets is how many browsers are connected.
func (s *Server) Sockets() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.sockets)
}

// resolve gives the cluster of a name that was checked.
func (k *socket) resolve(ctx context.Context, name string) (*clusters.Cluster, error) {
	return k.named(ctx, k.credential, name)
}

// read does what the page asks until the socket ends.
func (k *socket) read() {
	k.connection.SetReadLimit(maxMessage)
	for {
		_ = k.connection.SetReadDeadline(time.Now().Add(silence))
		_, text, err := k.connection.ReadMessage()
		if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
			k.close(CodeSilent, "nothing was sent for long")
		}
		if err != nil {
			return
		}
		request, err := ParseRequest(text)
		if err == nil {
			err = k.do(request)
		}
		if err != nil {
			id := ""
			if request != nil {
				id = request.ID
			}
			k.pushError(id, err, true)
		}
	}
}

func (k *socket) do(r *Request) error {
	switch r.Type {
	case typePing:
		k.push([]byte(`{"type":"pong"}`))
		return nil
	case typeSubscribe:
		return k.subscribe(r)
	case typeFilter:
		return k.refilter(r)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.drop(r.ID)
	return nil
}

// subscribe begins what a page asks for. One of the same id ends.
func (k *socket) subscribe(r *Request) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.drop(r.ID)
	k.dropEnded()
	if len(k.subscriptions) >= k.Server.subscriptions {
		return reply.TooMany(1, "%d subscriptions are open, and more are not allowed", len(k.subscriptions))
	}
	k.start(r.ID, r.source(), r.Filter, parseVersion(r.ResourceVersion))
	return nil
}

func (k *socket) refilter(r *Request) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	old, found := k.subscriptions[r.ID]
	if !found || old.ended() {
		return reply.BadRequest("there is no subscription of this id")
	}
	k.drop(r.ID)
	k.start(r.ID, old.source, r.Filter, 0)
	return nil
}

func (k *socket) start(id string, of source, text string, version uint64) {
	ctx, cancel := context.WithCancel(k.ctx)
	s := &subscription{id: id, source: of, filter: parseFilter(text), socket: k, ctx: ctx, cancel: cancel}
	k.subscriptions[id] = s
	go s.begin(version)
}

// dropEnded makes room after errors.
func (k *socket) dropEnded() {
	for id, s := range k.subscriptions {
		if s.ended() {
			k.drop(id)
		}
	}
}

func (k *socket) drop(id string) {
	if s, found := k.subscriptions[id]; found {
		delete(k.subscriptions, id)
		s.end()
		k.feeds.detach(s)
	}
}

// write sends what waits until the socket ends.
func (k *socket) write() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.queue.filled:
		}
		for _, message := range k.queue.take() {
			_ = k.connection.SetWriteDeadline(time.Now().Add(writeTimeout))
			if message.write(k.connection) != nil {
				_ = k.connection.Close() // The reader ends, and all else with it.
				return
			}
			k.queue.sent(message)
		}
	}
}

// push sends a message without waiting. Feeds, which serve others too, call it.
func (k *socket) push(message []byte) {
	if !k.queue.push(message) {
		go k.close(CodeTooSlow, "the browser does not keep up")
	}
}

func (k *socket) pushError(id string, err error, final bool) { k.push(errorText(id, err, final)) }

// close says why, and ends the connection. The reader sees that.
func (k *socket) close(code int, reason string) {
	k.closing.Do(func() {
		deadline := time.Now().Add(time.Second)
		_ = k.connection.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
		_ = k.connection.Close()
	})
}

// end frees what the socket holds.
func (k *socket) end() {
	defer k.leave(k)
	k.mutex.Lock()
	for id := range k.subscriptions {
		k.drop(id)
	}
	k.mutex.Unlock()
	k.cancel()
	k.queue.close()
	_ = k.connection.Close()
}
