package dashboard

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/fleets"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/live"
	"github.com/trellis-garden/trellis/pkg/dashboard/login"
	"github.com/trellis-garden/trellis/pkg/dashboard/pages"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
	"github.com/trellis-garden/trellis/pkg/dashboard/terminal"
)

// maxBody bounds what pages send.
const maxBody = 1 << 20

// server answers browsers.
type server struct {
	config   *Config
	clusters *clusters.Clusters
	login    *login.Handler
	users    *limits.Users
	live     *live.Server
	fleets   *fleets.Handler
	// terminals is nil if there are none.
	terminals *terminal.Server
	pages     *pages.Handler
	open      *http.ServeMux
	inside    *http.ServeMux
	settle    time.Duration
	// certificateFiles of this server, certificate and key; empty without.
	certificateFiles [2]string
}

// newServer makes a server of a configuration and the files that it names.
func newServer(config *Config, files fs.FS, now func() time.Time) (*server, error) {
	keys, err := session.ReadKeys(config.Session.KeysFile)
	if err != nil {
		return nil, fmt.Errorf("session.keysFile: %w", err)
	}
	ca, err := read(config.Garden.CAFile)
	if err != nil {
		return nil, fmt.Errorf("garden.caFile: %w", err)
	}
	issuers, err := config.issuers()
	if err != nil {
		return nil, err
	}
	servers, err := config.servers()
	if err != nil {
		return nil, err
	}
	connected, err := clusters.New(clusters.Options{
		Server: config.Garden.Server, ServerName: config.Garden.ServerName, CA: ca, Endpoints: config.Endpoints,
		Memory: limits.BytesOfProcess(), Now: now,
	})
	if err != nil {
		return nil, err
	}
	cookies := session.NewCookies(keys, now)
	s := &server{
		config: config, clusters: connected, users: limits.NewUsers(config.Limits, now),
		live:   live.NewServer(connected, config.PublicURL, config.Limits.Subscriptions, cookies.Revoked, now),
		fleets: &fleets.Handler{Now: now}, pages: &pages.Handler{Files: files}, settle: settle,
	}
	if config.Terminals.Image != "" {
		s.terminals = terminal.NewServer(terminal.Options{
			Clusters: connected, Users: s.users, Origin: config.PublicURL, Image: config.Terminals.Image,
			Idle: config.Terminals.Idle.Duration, Revoked: cookies.Revoked, Now: now,
		})
	}
	s.login = login.New(login.Options{
		PublicURL: config.PublicURL, Servers: servers, Issuers: issuers, Lifetime: config.Session.Lifetime.Duration,
		Keys: keys, Cookies: cookies, Clusters: connected, Now: now, Ended: s.ended,
	})
	s.routes()
	return s, nil
}

// ended closes what a session has open.
func (s *server) ended(id string) {
	s.live.Ended(id)
	if s.terminals != nil {
		s.terminals.Ended(id)
	}
}

// policy of what pages may load and run: only what comes from here, and no script or style within a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; " +
	"frame-ancestors 'none'"

// apiPolicy lets nothing run that an API server wrote.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Strict-Transport-Security", "max-age=31536000")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	if path := r.URL.EscapedPath(); path != "/api" && !strings.HasPrefix(path, "/api/") {
		header.Set("Content-Security-Policy", policy)
		s.pages.ServeHTTP(w, r)
		return
	}
	header.Set("Content-Security-Policy", apiPolicy)
	header.Set("Cache-Control", "no-store")
	if r.ContentLength > maxBody {
		reply.Failure(w, &http.MaxBytesError{Limit: maxBody})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := s.checkOrigin(r); err != nil {
		reply.Failure(w, err)
		return
	}
	s.api(w, r)
}

// isRead tells of methods that change nothing.
func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// checkOrigin refuses what other sites' pages send. Browsers say so themselves, in one of the two headers.
func (s *server) checkOrigin(r *http.Request) error {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	foreign := origin != "" && origin != s.config.PublicURL
	switch {
	case isRead(r.Method) && !isUpgrade(r):
		return nil
	case foreign, site != "" && site != "same-origin", origin == "" && site == "":
		return reply.Error(http.StatusForbidden, reply.ReasonCSRF, "the request did not come from a page of %s",
			s.config.PublicURL)
	}
	return nil
}

func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// socketPaths are where sockets are answered. Elsewhere the header Upgrade makes a request no other than it is.
var socketPaths = []string{"/api/live", "/api/terminal"}

func isSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && isUpgrade(r) && slices.Contains(socketPaths, r.URL.EscapedPath())
}

// headerUser tells pages whose session an answer is of: another tab may have logged in somebody else meanwhile.
const headerUser = "X-Trellis-User"

// api answers what needs no session, and what else if there is one.
func (s *server) api(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.open.Handler(r); pattern != "" && !isOdd(r) {
		s.open.ServeHTTP(w, r)
		return
	}
	current, err := s.login.Current(w, r)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	w.Header().Set(headerUser, url.PathEscape(current.User))
	if !isRead(r.Method) && !current.MayWrite(r.Header.Get("X-CSRF-Token")) {
		reply.Failure(w, reply.Error(http.StatusForbidden, reply.ReasonCSRF,
			"the header X-CSRF-Token is not that of the session"))
		return
	}
	s.asUser(w, r, current)
}

// isOdd tells of paths that a mux would clean. They are answered as they are, or not at all.
func isOdd(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return strings.Contains(path, "//") || strings.Contains(path, "/.") || strings.Contains(path, "%")
}

// asUser counts the request, and answers it.
func (s *server) asUser(w http.ResponseWriter, r *http.Request, current *session.Session) {
	count := s.users.Request
	if isSocket(r) {
		count = s.users.Socket
	}
	done, err := count(current.User)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	defer done()
	path := r.URL.EscapedPath()
	if rest, found := strings.CutPrefix(path, "/api/garden/"); found {
		err = s.proxyGarden(w, r, current, rest)
	} else if rest, found := strings.CutPrefix(path, "/api/shoot/"); found {
		err = s.proxyShoot(w, r, current, rest)
	} else if isOdd(r) {
		err = notFound()
	} else {
		s.inside.ServeHTTP(w, r.WithContext(withSession(r.Context(), current)))
	}
	if err != nil {
		klog.FromContext(r.Context()).V(2).Info("Refused", "method", r.Method, "path", r.URL.Path, "reason", err)
		reply.Failure(w, err)
	}
}

func notFound() error {
	return reply.Error(http.StatusNotFound, "NotFound", "there is nothing at this path")
}
