package dashboard

import (
	"context"
	"net/http"
	"strings"

	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
	"github.com/trellis-garden/trellis/pkg/version"
)

// sessionKey is where requests have their session.
type sessionKey struct{}

func withSession(ctx context.Context, s *session.Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// routes are all that pages may ask, but for the proxies, whose paths are not to be changed by a mux.
func (s *server) routes() {
	s.open, s.inside = http.NewServeMux(), http.NewServeMux()
	s.open.HandleFunc("GET /api/config", s.tellConfig)
	s.open.HandleFunc("GET /api/login/oidc", s.login.Begin)
	s.open.HandleFunc("GET /api/login/callback", s.login.Callback)
	s.open.HandleFunc("POST /api/login/token", s.login.Token)
	s.open.HandleFunc("POST /api/login/kubeconfig", s.login.Kubeconfig)

	handle := func(pattern string, answer func(http.ResponseWriter, *http.Request, *session.Session)) {
		s.inside.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, r.Context().Value(sessionKey{}).(*session.Session))
		})
	}
	handle("GET /api/session", s.login.Tell)
	handle("POST /api/logout", s.login.Logout)
	handle("GET /api/live", s.live.Serve)
	if s.terminals != nil {
		handle("GET /api/terminal", s.terminals.Serve)
	}
	handle("POST /api/rights", s.rights)
	handle("GET /api/kubeconfig/shoot/{namespace}/{name}", s.shootKubeconfig)
	handle("GET /api/kubeconfig/serviceaccount/{namespace}/{name}", s.serviceAccountKubeconfig)
	handle("GET /api/certificates", s.certificates)
	handle("/api/fleet/{namespace}/{name}/{question}", s.fleet)
	s.inside.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { reply.Failure(w, notFound()) })
}

// tellConfig tells what the log-in page needs.
func (s *server) tellConfig(w http.ResponseWriter, _ *http.Request) {
	issuers := []map[string]string{}
	for _, issuer := range s.config.Issuers {
		issuers = append(issuers, map[string]string{"name": issuer.Name, "title": issuer.Title})
	}
	reply.JSON(w, http.StatusOK, map[string]any{
		"version": version.String(), "garden": s.config.Garden.Name, "terminal": s.terminals != nil,
		"login": map[string]any{"token": true, "kubeconfig": true, "oidc": issuers},
	})
}

// proxyGarden passes a request on to the garden.
func (s *server) proxyGarden(w http.ResponseWriter, r *http.Request, current *session.Session, rest string) error {
	path, err := proxy.ParsePath(rest)
	if err != nil {
		return reply.Error(http.StatusForbidden, reply.ReasonNotProxied, "%v", err)
	}
	garden, err := s.clusters.Garden(current.Credential)
	if err != nil {
		return err
	}
	return proxy.Serve(w, r, proxy.GardenRules, path, garden)
}

// proxyShoot passes a request on to a shoot. One that is refused does not ask for a credential.
func (s *server) proxyShoot(w http.ResponseWriter, r *http.Request, current *session.Session, rest string) error {
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return notFound()
	}
	path, err := proxy.ParsePath(parts[2])
	if err != nil {
		return reply.Error(http.StatusForbidden, reply.ReasonNotProxied, "%v", err)
	}
	if err := proxy.Check(r, proxy.ShootRules, path); err != nil {
		return err
	}
	shoot, err := s.clusters.Shoot(r.Context(), current.Credential, parts[0], parts[1])
	if err != nil {
		return err
	}
	return s.clusters.Failed(shoot, proxy.Serve(w, r, proxy.ShootRules, path, shoot))
}

// fleet answers questions about a fleet.
func (s *server) fleet(w http.ResponseWriter, r *http.Request, current *session.Session) {
	fleet, err := s.clusters.Shoot(r.Context(), current.Credential, r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		reply.Failure(w, err)
		return
	}
	if err := s.fleets.Serve(w, r, fleet, r.PathValue("question")); err != nil {
		reply.Failure(w, s.clusters.Failed(fleet, err))
	}
}
