// Package scheduler assigns shoots to seeds.
//
// The decision is a pure function over values (Schedule): which seed, and for each of the others that cannot take the
// shoot, why not. The controller around it reads the garden, keeps count of what seeds host, writes the decision
// through shoots/binding, and tells in the shoot's status and events what stands in the way when no seed fits.
package scheduler

import (
	"cmp"
	"slices"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Snapshot is the state of the garden on which a decision rests. Schedule changes nothing in it.
type Snapshot struct {
	// Seeds are all seeds, in any order.
	Seeds []*gardencorev1beta1.Seed
	// Used counts the control planes that each seed hosts, is to host, or was promised.
	Used map[string]int
	// Profile is the cloud profile of the shoot to be scheduled; nil when it has none.
	Profile *gardencorev1beta1.CloudProfileSpec
	// ExposureClass is the one the shoot asks for, if any.
	ExposureClass *gardencorev1beta1.ExposureClass
	// Strategy says what regions are good for the shoot. Default: SameRegion.
	Strategy Strategy
	// Distances from the shoot's region to those of seeds, for the strategy MinimalDistance. Regions that are not in it
	// count only when no seed is in one that is.
	Distances map[string]int
}

// Rejection is why a seed is not an option for a shoot.
type Rejection struct {
	Seed   string
	Reason Reason
	// Message goes on after the seed's name, such as "is full: 3 of 3 shoots".
	Message string
}

// Schedule chooses, of the seeds that can take the shoot and that the strategy prefers, the one with the fewest shoots;
// of equals, the first by name. The name is empty when there is none. Rejections are ordered by seed.
func Schedule(snapshot Snapshot, shoot *gardencorev1beta1.Shoot) (seed string, rejections []Rejection) {
	wanted := requirementsOf(snapshot, shoot)
	var fit []*gardencorev1beta1.Seed
	for _, candidate := range snapshot.Seeds {
		if rejection := wanted.reject(candidate); rejection != nil {
			rejection.Seed = candidate.Name
			rejections = append(rejections, *rejection)
			continue
		}
		fit = append(fit, candidate)
	}
	if wanted.nearest {
		var farther []Rejection
		fit, farther = nearest(fit, shoot, snapshot.Distances)
		rejections = append(rejections, farther...)
	}
	slices.SortFunc(rejections, func(a, b Rejection) int { return cmp.Compare(a.Seed, b.Seed) })
	return leastUsed(fit, snapshot.Used), rejections
}

func leastUsed(seeds []*gardencorev1beta1.Seed, used map[string]int) string {
	if len(seeds) == 0 {
		return ""
	}
	return slices.MinFunc(seeds, func(a, b *gardencorev1beta1.Seed) int {
		return cmp.Or(cmp.Compare(used[a.Name], used[b.Name]), cmp.Compare(a.Name, b.Name))
	}).Name
}
