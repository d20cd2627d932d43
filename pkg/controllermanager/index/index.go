// Package index makes the caches of garden-controller-manager answer by what controllers ask for: which objects belong
// to a seed, to a registration, to a shoot. With thousands of shoots, reading all of them at every event is what would
// cost most.
package index

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// The names of the indexes; they are no paths of fields.
const (
	seed         = "seed"
	registration = "registration"
	shoot        = "shoot"
)

// Index is one index over the objects of a kind.
type Index struct {
	Object client.Object
	Name   string
	// Keys returns what an object is found by.
	Keys client.IndexerFunc
}

// All are the indexes that the controllers need.
func All() []Index {
	return []Index{
		{&gardencorev1beta1.Shoot{}, seed, keys(func(s *gardencorev1beta1.Shoot) []string {
			wanted, actual := ptr.Deref(s.Spec.SeedName, ""), ptr.Deref(s.Status.SeedName, "")
			if wanted == actual {
				return named(wanted)
			}
			return named(wanted, actual)
		})},
		{
			&gardencorev1beta1.BackupBucket{}, seed,
			keys(func(b *gardencorev1beta1.BackupBucket) []string { return named(ptr.Deref(b.Spec.SeedName, "")) }),
		},
		{
			&gardencorev1beta1.BackupEntry{}, seed,
			keys(func(e *gardencorev1beta1.BackupEntry) []string { return named(ptr.Deref(e.Spec.SeedName, "")) }),
		},
		{&gardencorev1beta1.ControllerInstallation{}, seed,
			keys(func(i *gardencorev1beta1.ControllerInstallation) []string {
				if i.Spec.SeedRef == nil {
					return nil
				}
				return named(i.Spec.SeedRef.Name)
			})},
		{&gardencorev1beta1.ControllerInstallation{}, registration,
			keys(func(i *gardencorev1beta1.ControllerInstallation) []string {
				return named(i.Spec.RegistrationRef.Name)
			})},
		{&seedmanagementv1alpha1.ManagedSeed{}, shoot, keys(func(m *seedmanagementv1alpha1.ManagedSeed) []string {
			if m.Spec.Shoot == nil {
				return nil
			}
			return named(m.Spec.Shoot.Name)
		})},
	}
}

// Add adds the indexes to a cache, which must not have started.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range All() {
		if err := indexer.IndexField(ctx, index.Object, index.Name, index.Keys); err != nil {
			return fmt.Errorf("index of %T by %s: %w", index.Object, index.Name, err)
		}
	}
	return nil
}

// OfSeed selects what belongs to a seed: shoots that are assigned to it or are still leaving it, backup buckets and
// entries, controller installations.
func OfSeed(name string) client.ListOption { return client.MatchingFields{seed: name} }

// OfRegistration selects the controller installations of a registration.
func OfRegistration(name string) client.ListOption { return client.MatchingFields{registration: name} }

// OfShoot selects the managed seeds of a shoot of the garden namespace.
func OfShoot(name string) client.ListOption { return client.MatchingFields{shoot: name} }

func keys[T client.Object](of func(T) []string) client.IndexerFunc {
	return func(object client.Object) []string {
		if typed, ok := object.(T); ok {
			return of(typed)
		}
		return nil
	}
}

// named leaves out empty names.
func named(names ...string) []string {
	var found []string
	for _, name := range names {
		if name != "" {
			found = append(found, name)
		}
	}
	return found
}
