package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// renewal replaces the certificate of an agent, with a new key.
type renewal struct {
	*agent
	// key that was asked for last; nil when it is used.
	key []byte
	// pause after the certificate was replaced, and is of an old authority all the same.
	pause time.Duration
}

// mostPauses bounds the pause, in AuthorityIntervals: who completes a rotation some minutes after the new authority
// signs shall not lock agents out.
const mostPauses = 10

// renewals replace the certificate when half of its life is over, or when the fleet has a newer authority. One that has
// expired ends the agent: it starts again by asking to be accepted.
func (a *agent) renewals(ctx context.Context) error {
	r := &renewal{agent: a, pause: a.AuthorityInterval}
	for {
		leaf := a.way.certificate.Load().Leaf
		if time.Now().After(leaf.NotAfter) {
			return fmt.Errorf("the agent's certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.step(ctx, leaf)):
		}
	}
}

// step renews what has to be renewed, and tells when to look again.
func (r *renewal) step(ctx context.Context, leaf *x509.Certificate) time.Duration {
	wait := min(time.Until(r.RenewAt(leaf)), r.AuthorityInterval)
	outdated := r.isOutdated(ctx, leaf)
	if wait > 0 && !outdated {
		r.pause = r.AuthorityInterval
		return wait
	}
	err := r.renew(ctx)
	if err == nil && outdated {
		// The API server may know of an authority before who signs does.
		wait, r.pause = r.pause, min(2*r.pause, mostPauses*r.AuthorityInterval)
		return wait
	}
	if err != nil && !errors.Is(err, errUndecided) && ctx.Err() == nil {
		r.state.say(r.log, "Cannot renew the certificate yet", "reason", err.Error())
	}
	return r.Retry
}

func (r *renewal) renew(ctx context.Context) error {
	ctx, cancel := within(ctx)
	defer cancel()
	if r.key == nil {
		made, err := registration.NewKey()
		if err != nil {
			return err
		}
		r.key = made
	}
	signed, err := ask(ctx, r.fleet, r.request, r.key)
	if err != nil {
		return err
	}
	certificate, err := r.keep(ctx, signed, r.key)
	if err != nil {
		return err
	}
	r.agent.use(certificate)
	r.key = nil
	return nil
}
