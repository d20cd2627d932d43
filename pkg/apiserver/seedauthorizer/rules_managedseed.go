package seedauthorizer

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// A seed that hosts the shoot of a managed seed installs the managed seed's gardenlet, gives it the means to ask for
// its first certificate, and takes all of it away again.

// giving is what may be done with the means to ask for a certificate: they are made and taken away, never changed, so
// that what admission has seen of them stays true.
var giving = verbs{"get", "create", "delete"}

// bootstrapToken: the token is that of a managed seed on a shoot of the seed.
func bootstrapToken(q question) bool {
	return slices.Contains(giving, q.verb) && q.subresource == "" && q.reaches(kindBootstrapToken, q.namespace, q.name)
}

// bootstrapAccount: the service account is for a managed seed on a shoot of the seed.
func bootstrapAccount(q question) bool {
	managedSeed, found := seedmanagementv1alpha1.ManagedSeedOfServiceAccount(q.name)
	return found && q.namespace == gardencorev1beta1.GardenNamespace && slices.Contains(giving, q.verb) &&
		q.isManagedSeed(managedSeed)
}

// deletedWithManagedSeed: the Seed is deleted because its ManagedSeed, on a shoot of the seed, is.
func deletedWithManagedSeed(q question) bool {
	return q.verb == "delete" && !q.Extension && q.isManagedSeed(q.name)
}

func (q question) isManagedSeed(name string) bool {
	return q.reaches(kindManagedSeed, gardencorev1beta1.GardenNamespace, name)
}

// unlessDeleted: a gardenlet lets its Seed go, but does not decide about it.
func unlessDeleted(r relation) relation {
	return func(q question) bool { return q.verb != "delete" && r(q) }
}

// anyOf holds where one of the relations does.
func anyOf(relations ...relation) relation {
	return func(q question) bool {
		return slices.ContainsFunc(relations, func(r relation) bool { return r(q) })
	}
}
