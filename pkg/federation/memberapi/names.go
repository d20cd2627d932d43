package memberapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// namesIn reads from the Secret of a member's impersonator what the member's owner said about names.
func (s *Server) namesIn(ctx context.Context, impersonator *corev1.Secret) (acting.Names, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prefix == "" {
		id, err := registration.Identity(ctx, s.live)
		if err != nil {
			return acting.Names{}, err
		}
		s.prefix = registration.NamePrefix(id)
	}
	return acting.NamesBy(s.prefix, impersonator.Annotations[registration.NamesAnnotation]), nil
}
