package admission

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
)

// Reservations are claims of requests in flight on what several objects share. See package reservation.
type Reservations interface {
	// Look decides without claiming.
	Look(ctx context.Context, scope string, decide reservation.Decision) error
	// Reserve decides, and claims if the answer is yes.
	Reserve(ctx context.Context, scope string, claim reservation.Claim, decide reservation.Decision) error
}

// reserve decides whether a write may take its share of what a scope limits, knowing the shares of all writes in
// flight.
func (d *Dependencies) reserve(ctx context.Context, a admission.Attributes, scope string, claim reservation.Claim,
	decide reservation.Decision) error {
	if a.IsDryRun() {
		return d.Reservations.Look(ctx, scope, decide)
	}
	return d.Reservations.Reserve(ctx, scope, claim, decide)
}

// byOthers returns the claims for other objects than the owner.
func byOthers(claims []reservation.Claim, owner string) []reservation.Claim {
	var others []reservation.Claim
	for _, claim := range claims {
		if claim.Owner != owner {
			others = append(others, claim)
		}
	}
	return others
}
