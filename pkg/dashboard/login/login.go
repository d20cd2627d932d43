package login

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	// flowCookie keeps a log-in that is under way. It is sent when the issuer leads the browser back, as Strict ones
	// are not.
	flowCookie   = "__Host-trellis-login"
	flowLifetime = 10 * time.Minute
	callbackPath = "/api/login/callback"
	// attempts is how many log-ins are under way at a time at most.
	attempts = 32
)

// Options of log-ins.
type Options struct {
	// PublicURL of the dashboard, without a path.
	PublicURL string
	// Servers are the addresses of the garden that kubeconfigs may name.
	Servers []*url.URL
	// Issuers of tokens.
	Issuers []*Issuer
	// Lifetime of sessions.
	Lifetime time.Duration
	Keys     *session.Keys
	Cookies  *session.Cookies
	Clusters *clusters.Clusters
	Now      func() time.Time
	// Ended is told of sessions that were ended.
	Ended func(id string)
}

// Handler answers what lies below /api/login, /api/logout and /api/session.
type Handler struct {
	Options
	attempts *semaphore.Weighted
	renewals renewals
}

// New makes a handler.
func New(options Options) *Handler {
	return &Handler{Options: options, attempts: semaphore.NewWeighted(attempts)}
}

func (h *Handler) issuer(name string) *Issuer {
	for _, issuer := range h.Issuers {
		if issuer.Name == name || name == "" {
			return issuer
		}
	}
	return nil
}

// Begin leads to an issuer.
func (h *Handler) Begin(w http.ResponseWriter, r *http.Request) {
	issuer := h.issuer(r.URL.Query().Get("name"))
	if issuer == nil {
		http.Redirect(w, r, failed("issuer", "there is no such issuer"), http.StatusFound)
		return
	}
	target, f, err := issuer.begin(r.Context(), h.PublicURL+callbackPath, r.URL.Query().Get("next"), h.Now())
	if err != nil {
		http.Redirect(w, r, failed("issuer", err.Error()), http.StatusFound)
		return
	}
	sealed, err := h.Keys.Seal(flowCookie, f)
	if err != nil {
		http.Redirect(w, r, failed("issuer", err.Error()), http.StatusFound)
		return
	}
	setFlow(w, sealed, flowLifetime)
	http.Redirect(w, r, target, http.StatusFound)
}

// Callback is where an issuer leads to.
func (h *Handler) Callback(w http.ResponseWriter, r *http.Request) {
	setFlow(w, "", -1)
	f, ok := h.flowOf(r)
	query := r.URL.Query()
	switch {
	case !ok:
		http.Redirect(w, r, failed("state", "the log-in was begun in another browser, or too long ago"),
			http.StatusFound)
	case query.Get("error") != "":
		http.Redirect(w, r, failed("issuer", query.Get("error")+" "+query.Get("error_description")), http.StatusFound)
	default:
		h.finish(w, r, f, query.Get("code"))
	}
}

// flowOf is the log-in that this browser began, if it is the one that the issuer answers.
func (h *Handler) flowOf(r *http.Request) (flow, bool) {
	var f flow
	cookie, err := r.Cookie(flowCookie)
	if err != nil || h.Keys.Open(flowCookie, cookie.Value, &f) != nil || !h.Now().Before(f.Until) {
		return flow{}, false
	}
	return f, subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) == 1
}

func (h *Handler) finish(w http.ResponseWriter, r *http.Request, f flow, code string) {
	issuer := h.issuer(f.Issuer)
	if issuer == nil || f.Issuer == "" {
		http.Redirect(w, r, failed("state", "the issuer is no longer used"), http.StatusFound)
		return
	}
	got, err := issuer.finish(r.Context(), h.PublicURL+callbackPath, f, code)
	if err != nil {
		http.Redirect(w, r, failed("token", err.Error()), http.StatusFound)
		return
	}
	s, err := h.begin(r.Context(), session.LoginOIDC, session.Credential{Token: got.id})
	if err == nil {
		s.Issuer, s.Refresh, s.CredentialExpires = issuer.Name, got.refresh, got.expires
		err = h.keep(w, r, s)
	}
	if err != nil {
		http.Redirect(w, r, failed("garden", reply.StatusOf(err).Message), http.StatusFound)
		return
	}
	http.Redirect(w, r, LocalPath(f.Next), http.StatusFound)
}

// Token logs in with a token.
func (h *Handler) Token(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := reply.Read(r, &body); err != nil {
		reply.Failure(w, err)
		return
	}
	if err := checkToken(body.Token); err != nil {
		reply.Failure(w, reply.Error(http.StatusUnauthorized, "Unauthorized", "%v", err))
		return
	}
	h.answer(w, r, session.LoginToken, session.Credential{Token: body.Token})
}

// Kubeconfig logs in with a kubeconfig.
func (h *Handler) Kubeconfig(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Kubeconfig string `json:"kubeconfig"`
	}
	if err := reply.Read(r, &body); err != nil {
		reply.Failure(w, err)
		return
	}
	credential, err := ParseKubeconfig(body.Kubeconfig, h.Servers)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	h.answer(w, r, session.LoginKubeconfig, credential)
}

// answer begins a session, and tells of it.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, kind string, credential session.Credential) {
	s, err := h.begin(r.Context(), kind, credential)
	if err == nil {
		s.CredentialExpires = expiryOf(credential)
		err = h.keep(w, r, s)
	}
	if err != nil {
		reply.Failure(w, err)
		return
	}
	h.Tell(w, r, s)
}

// begin asks the garden who the user is.
func (h *Handler) begin(ctx context.Context, kind string, credential session.Credential) (*session.Session, error) {
	if !h.attempts.TryAcquire(1) {
		return nil, reply.TooMany(1, "many log in at the moment")
	}
	defer h.attempts.Release(1)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	garden, err := h.Clusters.Garden(credential)
	if err != nil {
		return nil, reply.Error(http.StatusUnauthorized, "Unauthorized", "%v", err)
	}
	user, err := clusters.Review(ctx, garden)
	switch {
	case clusters.IsLoggedOut(err):
		return nil, reply.Error(http.StatusUnauthorized, "Unauthorized", "the garden does not accept the credential")
	case err != nil:
		return nil, err
	case user.Username == "" || user.Username == "system:anonymous" ||
		slices.Contains(user.Groups, "system:unauthenticated"):
		return nil, reply.Error(http.StatusUnauthorized, "Unauthorized", "the garden knows nobody by this credential")
	}
	return session.New(user.Username, kind, credential, h.Now(), h.Lifetime), nil
}

// keep has the browser keep the session instead of what it had.
func (h *Handler) keep(w http.ResponseWriter, r *http.Request, s *session.Session) error {
	h.Cookies.Clear(w.Header(), r)
	if err := h.Cookies.Set(w.Header(), s); err != nil {
		return reply.Error(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "%v", err)
	}
	return nil
}

// Tell says who is logged in.
func (h *Handler) Tell(w http.ResponseWriter, r *http.Request, s *session.Session) {
	garden, err := h.Clusters.Garden(s.Credential)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	user, err := clusters.Review(r.Context(), garden)
	if clusters.IsLoggedOut(err) {
		h.Cookies.Clear(w.Header(), r)
		err = reply.Error(http.StatusUnauthorized, reply.ReasonSessionExpired,
			"the garden does not accept the credential any more")
	}
	if err != nil {
		reply.Failure(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, map[string]any{
		"user": user.Username, "groups": append([]string{}, user.Groups...), "expires": s.Ends(), "csrfToken": s.CSRF,
		"login": s.Login,
	})
}

// Logout ends a session, whoever has a copy of its cookie.
func (h *Handler) Logout(w http.ResponseWriter, r *http.Request, s *session.Session) {
	h.Cookies.Revoke(s)
	h.Cookies.Clear(w.Header(), r)
	h.renewals.forget(s.ID)
	if h.Ended != nil {
		h.Ended(s.ID)
	}
	w.WriteHeader(http.StatusNoContent)
}

func setFlow(w http.ResponseWriter, value string, lifetime time.Duration) {
	cookie := &http.Cookie{
		Name: flowCookie, Value: value, Path: "/", MaxAge: int(lifetime.Seconds()), HttpOnly: true, Secure: true,
		SameSite: http.SameSiteLaxMode,
	}
	if lifetime < 0 {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}
