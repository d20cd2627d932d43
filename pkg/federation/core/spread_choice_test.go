package core

import (
	"fmt"
	"math/rand"
	"testing"
)

func BenchmarkSelectGroups(b *testing.B) {
	for _, tc := range []struct{ regions, least, most, wanted, largest int }{
		{40, 2, 5, 10, 125}, {40, 5, 20, 200, 125}, {40, 20, 30, 1000, 125}, {40, 10, 40, 2000, 125},
	} {
		rng := rand.New(rand.NewSource(5))
		var groups []group
		for i := range tc.regions {
			groups = append(groups, group{
				name: fmt.Sprintf("R%02d", i), score: rng.Int63n(100_000),
				clusters: make([]candidate, 1+rng.Intn(tc.largest)),
			})
		}
		b.Run(fmt.Sprintf("%d-of-%d-regions-%d-clusters", tc.least, tc.regions, tc.wanted), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				selectGroups(groups, tc.least, tc.most, tc.wanted)
			}
		})
	}
}
