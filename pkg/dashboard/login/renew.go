package login

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	// renewBefore the end of a credential a new one is asked for.
	renewBefore = time.Minute
	// maxRenewals bounds how many sessions are remembered that were renewed.
	maxRenewals = 2000
)

// renewals remembers renewed sessions for requests that were sent with the cookie of before. An issuer may take a
// refresh token only once.
type renewals struct {
	group  singleflight.Group
	mutex  sync.Mutex
	recent map[string]*session.Session
}

func (r *renewals) get(id string) *session.Session {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.recent[id]
}

func (r *renewals) put(s *session.Session, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.recent == nil || len(r.recent) >= maxRenewals {
		kept := map[string]*session.Session{}
		for id, other := range r.recent {
			if now.Add(renewBefore).Before(other.CredentialExpires) && len(kept) < maxRenewals/2 {
				kept[id] = other
			}
		}
		r.recent = kept
	}
	r.recent[s.ID] = s
}

func (r *renewals) forget(id string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.recent, id)
}

// Current gives the session of a request, renewed if that is due; then the browser is told. It is refused when whoever
// asks has to log in.
func (h *Handler) Current(w http.ResponseWriter, r *http.Request) (*session.Session, error) {
	s, err := h.Cookies.Get(r)
	if err != nil {
		return nil, notLoggedIn(err)
	}
	if s.CredentialExpires.IsZero() || h.Now().Add(renewBefore).Before(s.CredentialExpires) {
		return s, nil
	}
	renewed, err := h.renewed(r.Context(), s)
	if renewed != nil {
		if err := h.keep(w, r, renewed); err != nil {
			return nil, err
		}
		s = renewed
	}
	switch {
	case err == nil, h.Now().Before(s.CredentialExpires):
		return s, nil
	case s.Refresh == "" || isRefused(err) || clusters.IsLoggedOut(err):
		return nil, notLoggedIn(session.ErrExpired)
	}
	return nil, err
}

func notLoggedIn(err error) error {
	if errors.Is(err, session.ErrExpired) {
		return reply.Error(http.StatusUnauthorized, reply.ReasonSessionExpired, "the session has ended: log in again")
	}
	return reply.Error(http.StatusUnauthorized, "Unauthorized", "nobody is logged in")
}

// renewed gives a session with a new credential of the same user. With an error it gives one with a new refresh token,
// if the issuer gave that and then something failed.
func (h *Handler) renewed(ctx context.Context, s *session.Session) (*session.Session, error) {
	issuer := h.issuer(s.Issuer)
	if s.Refresh == "" || s.Issuer == "" || issuer == nil {
		return nil, session.ErrExpired
	}
	result, err, _ := h.renewals.group.Do(s.ID, func() (any, error) {
		newest := s
		if recent := h.renewals.get(s.ID); recent != nil && recent.Refreshed > s.Refreshed {
			newest = recent
		}
		if h.Now().Add(renewBefore).Before(newest.CredentialExpires) {
			return newest, nil
		}
		// Whoever asked first may go away, and others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		renewed, err := h.renew(ctx, issuer, newest)
		if renewed != nil && !h.Cookies.Revoked(s.ID) {
			h.renewals.put(renewed, h.Now())
		}
		return renewed, err
	})
	return result.(*session.Session), err
}

func (h *Handler) renew(ctx context.Context, issuer *Issuer, s *session.Session) (*session.Session, error) {
	got, err := issuer.renew(ctx, s.Refresh)
	if got.refresh == "" {
		return nil, err
	}
	renewed := *s
	renewed.Refresh, renewed.Refreshed = got.refresh, s.Refreshed+1
	if err != nil {
		return &renewed, err
	}
	other, err := h.begin(ctx, s.Login, session.Credential{Token: got.id})
	if err != nil {
		return &renewed, err
	}
	if other.User != s.User {
		return nil, reply.Error(http.StatusUnauthorized, reply.ReasonSessionExpired,
			"the issuer's token is somebody else's")
	}
	renewed.Credential, renewed.CredentialExpires = other.Credential, got.expires
	return &renewed, nil
}
