package seedauthorizer

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Identity is for whom somebody acts.
type Identity struct {
	// Seed is the name of the seed.
	Seed string
	// Extension tells an extension of the seed from its gardenlet.
	Extension bool
}

// IdentityOf recognises gardenlets by name and group, and extensions by the namespace of their service account:
// seed-<name>. It is false for everybody else.
func IdentityOf(info user.Info) (Identity, bool) {
	if info == nil {
		return Identity{}, false
	}
	if name, found := strings.CutPrefix(info.GetName(), gardencorev1beta1.SeedUserNamePrefix); found {
		return Identity{Seed: name}, name != "" && slices.Contains(info.GetGroups(), gardencorev1beta1.SeedsGroup)
	}
	if !strings.HasPrefix(info.GetName(),
		serviceaccount.ServiceAccountUsernamePrefix+gardencorev1beta1.SeedNamespaceNamePrefix) {
		return Identity{}, false
	}
	in, _, err := serviceaccount.SplitUsername(info.GetName())
	if err != nil {
		return Identity{}, false
	}
	name := strings.TrimPrefix(in, gardencorev1beta1.SeedNamespaceNamePrefix)
	return Identity{Seed: name, Extension: true}, name != ""
}
