package scheduler

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Strategy says which regions are good for a shoot.
type Strategy string

const (
	// SameRegion takes seeds in the shoot's region only. It is the default.
	SameRegion Strategy = "SameRegion"
	// MinimalDistance takes the seeds that are nearest to the shoot's region: by the distances that operators
	// configured, or else by how much the regions' names differ.
	MinimalDistance Strategy = "MinimalDistance"
)

// Strategies are all that there are.
var Strategies = []Strategy{SameRegion, MinimalDistance}

// ParseStrategy reads the name of a strategy; an empty one stands for the default.
func ParseStrategy(name string) (Strategy, error) {
	if name == "" {
		return SameRegion, nil
	}
	if !slices.Contains(Strategies, Strategy(name)) {
		return "", fmt.Errorf("strategy %q is none of %v", name, Strategies)
	}
	return Strategy(name), nil
}

// otherProvider is how much farther a seed of another provider counts when the names of regions are compared.
const otherProvider = 2

// nearest keeps the seeds at the least distance from the shoot's region.
func nearest(seeds []*gardencorev1beta1.Seed, shoot *gardencorev1beta1.Shoot,
	configured map[string]int) (near []*gardencorev1beta1.Seed, farther []Rejection) {
	distances := distancesTo(seeds, shoot, configured)
	least, known := 0, false
	for _, seed := range seeds {
		if distance, ok := distances[seed.Name]; ok && (!known || distance < least) {
			least, known = distance, true
		}
	}
	for _, seed := range seeds {
		distance, ok := distances[seed.Name]
		switch {
		case ok && distance == least:
			near = append(near, seed)
		case ok:
			farther = append(farther, Rejection{
				Seed: seed.Name, Reason: Farther,
				Message: fmt.Sprintf("is in region %s at distance %d, others are at %d", seed.Spec.Provider.Region,
					distance, least),
			})
		default:
			farther = append(farther, Rejection{
				Seed: seed.Name, Reason: Farther,
				Message: fmt.Sprintf("is in region %s, for which no distance is configured", seed.Spec.Provider.Region),
			})
		}
	}
	return near, farther
}

// distancesTo returns the distance of each seed by its name. Seeds in regions that nobody configured have none, unless
// it is so for all of them.
func distancesTo(seeds []*gardencorev1beta1.Seed, shoot *gardencorev1beta1.Shoot,
	configured map[string]int) map[string]int {
	distances := make(map[string]int, len(seeds))
	for _, seed := range seeds {
		if distance, ok := configuredDistance(configured, shoot.Spec.Region, seed.Spec.Provider.Region); ok {
			distances[seed.Name] = distance
		}
	}
	if len(distances) > 0 {
		return distances
	}
	for _, seed := range seeds {
		distances[seed.Name] = nameDistance(shoot.Spec.Region, seed.Spec.Provider.Region)
		if seed.Spec.Provider.Type != shoot.Spec.Provider.Type {
			distances[seed.Name] += otherProvider
		}
	}
	return distances
}

// configuredDistance looks a distance up. A region is nearest to itself unless configured otherwise.
func configuredDistance(configured map[string]int, from, to string) (int, bool) {
	if configured == nil {
		return 0, false
	}
	if distance, ok := configured[to]; ok {
		return distance, true
	}
	return 0, from == to
}

// orientations are words in the names of regions that tell where in a larger area a region lies.
var orientations = []string{"north", "south", "east", "west", "central"}

// nameDistance guesses from their names how far apart two regions are: twice the edit distance of the names without
// their orientation, and 2 more when the orientations differ, 1 when only one name has one.
func nameDistance(a, b string) int {
	baseA, orientationA := splitRegion(a)
	baseB, orientationB := splitRegion(b)
	return 2*editDistance(baseA, baseB) + orientationDistance(orientationA, orientationB)
}

func orientationDistance(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "" || b == "":
		return 1
	}
	return 2
}

// splitRegion takes the orientation out of a region's name; "southeast" is one orientation.
func splitRegion(region string) (base, orientation string) {
	for rest := region; rest != ""; {
		if word := leadingOrientation(rest); word != "" {
			orientation += word
			rest = rest[len(word):]
			continue
		}
		base += rest[:1]
		rest = rest[1:]
	}
	return base, orientation
}

func leadingOrientation(name string) string {
	for _, word := range orientations {
		if strings.HasPrefix(name, word) {
			return word
		}
	}
	return ""
}

// editDistance is the Levenshtein distance in bytes: the least number of insertions, deletions and replacements.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
