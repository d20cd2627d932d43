package store

import (
	"context"
	"time"
)

// sessionMargin is how long before its end a session is no longer used.
const sessionMargin = time.Minute

// sessions keeps what a store gave for credentials, such as a token, until it ends or the credentials change.
type sessions[C comparable, S any] struct {
	// slot is held by the one that looks for a session or begins one.
	slot        chan struct{}
	credentials C
	session     *S
	end         time.Time
}

func newSessions[C comparable, S any]() *sessions[C, S] {
	return &sessions[C, S]{slot: make(chan struct{}, 1)}
}

// get returns the session of these credentials, which begin begins if there is none; that tells when it ends, or zero.
func (s *sessions[C, S]) get(
	ctx context.Context, credentials C, begin func(context.Context) (*S, time.Time, error),
) (*S, error) {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.slot }()
	ended := !s.end.IsZero() && time.Now().After(s.end.Add(-sessionMargin))
	if s.session != nil && s.credentials == credentials && !ended {
		return s.session, nil
	}
	session, end, err := begin(ctx)
	if err != nil {
		return nil, err
	}
	s.credentials, s.session, s.end = credentials, session, end
	return session, nil
}

// drop forgets a session that the store does not know any more.
func (s *sessions[C, S]) drop(session *S) {
	s.slot <- struct{}{}
	defer func() { <-s.slot }()
	if s.session == session {
		s.session = nil
	}
}
