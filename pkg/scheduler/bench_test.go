package scheduler

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	benchmarkSeeds  = 200
	benchmarkShoots = 10_000
)

// benchmarkGarden has 200 seeds in five regions with room for 60 shoots each, and 10,000 shoots without a seed.
func benchmarkGarden() (seeds []*gardencorev1beta1.Seed, shoots []*gardencorev1beta1.Shoot) {
	for i := range benchmarkSeeds {
		seeds = append(seeds, readySeed(fmt.Sprintf("seed-%d", i), inRegion(regions[i%len(regions)]), room("60"),
			labelled("size", "big"), withZones("1", "2", "3")))
	}
	for i := range benchmarkShoots {
		shoot := newShoot(wantsRegion(regions[i%len(regions)]), tolerating(gardencorev1beta1.FailureToleranceTypeZone))
		shoot.Name = fmt.Sprintf("shoot-%d", i)
		shoot.UID = types.UID(shoot.Name)
		shoots = append(shoots, shoot)
	}
	return seeds, shoots
}

// BenchmarkSchedule measures one decision in a garden of 200 seeds and 10,000 shoots, counts included.
func BenchmarkSchedule(b *testing.B) {
	seeds, shoots := benchmarkGarden()
	for _, strategy := range Strategies {
		b.Run(string(strategy), func(b *testing.B) {
			l := newUsage()
			for i, shoot := range shoots {
				l.observe(shoot, true)
				l.promise(shoot, seeds[i%len(seeds)].Name)
			}
			snapshot := Snapshot{Seeds: seeds, Strategy: strategy, Profile: profileWith(selecting("size", "big"))}
			waiting := newShoot(wantsRegion(regions[0]))
			b.ReportAllocs()
			for b.Loop() {
				snapshot.Used = l.counts()
				if seed, rejections := Schedule(snapshot, waiting); seed == "" {
					b.Fatal(Summary(len(seeds), rejections))
				}
			}
		})
	}
}

// BenchmarkFill measures how long it takes to give 10,000 shoots, one after the other, a seed out of 200.
func BenchmarkFill(b *testing.B) {
	seeds, shoots := benchmarkGarden()
	for b.Loop() {
		l := newUsage()
		for _, shoot := range shoots {
			l.observe(shoot, true)
			seed, rejections := Schedule(Snapshot{Seeds: seeds, Used: l.counts()}, shoot)
			if seed == "" {
				b.Fatal(Summary(len(seeds), rejections))
			}
			l.promise(shoot, seed)
		}
	}
	b.ReportMetric(float64(b.N*benchmarkShoots)/b.Elapsed().Seconds(), "shoots/s")
}
