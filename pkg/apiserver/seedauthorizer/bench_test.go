package seedauthorizer

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	benchShoots = 10_000
	benchSeeds  = 200
)

// large is the graph of a garden with 10,000 shoots of 500 projects on 200 seeds, all with one cloud profile.
func large() *Graph {
	g := NewGraph()
	for i := range benchShoots {
		shoot := benchShoot(i)
		g.Set(vertexOf(kindShoot, shoot), shootEdges(shoot))
	}
	for i := range benchSeeds {
		add(g, benchSeed(i), fmt.Sprintf("garden-p%d", i))
	}
	return g
}

func benchSeed(i int) string { return fmt.Sprintf("seed-%d", i%benchSeeds) }

func benchShoot(i int) *gardencorev1beta1.Shoot {
	shoot := shootOn(fmt.Sprintf("garden-p%d", i%500), fmt.Sprintf("s%d", i), benchSeed(i))
	shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "all"}
	return shoot
}

func BenchmarkAuthorize(b *testing.B) {
	g := large()
	for name, record := range map[string]authorizer.AttributesRecord{
		"shoot": {
			ResourceRequest: true, Verb: "get", APIGroup: gardencorev1beta1.GroupName, Resource: "shoots",
			Namespace: "garden-p7", Name: "s7",
		},
		"cloudprofile": {
			ResourceRequest: true, Verb: "get", APIGroup: gardencorev1beta1.GroupName, Resource: "cloudprofiles",
			Name: "all",
		},
		"secret": {
			ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "garden-p7", Name: "dns-s7",
		},
		"not-its-shoot": {
			ResourceRequest: true, Verb: "get", APIGroup: gardencorev1beta1.GroupName, Resource: "shoots",
			Namespace: "garden-p8", Name: "s8",
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			who := Identity{Seed: benchSeed(7)}
			for b.Loop() {
				Authorize(g, who, record)
			}
		})
	}
}

func BenchmarkAuthorizeParallel(b *testing.B) {
	g := large()
	record := authorizer.AttributesRecord{
		ResourceRequest: true, Verb: "get", APIGroup: gardencorev1beta1.GroupName, Resource: "shoots",
		Namespace: "garden-p7", Name: "s7",
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			Authorize(g, Identity{Seed: benchSeed(7)}, record)
		}
	})
}

// BenchmarkMove moves a shoot to another seed, and back.
func BenchmarkMove(b *testing.B) {
	g := large()
	here, there := benchShoot(7), benchShoot(7)
	other := benchSeed(8)
	there.Spec.SeedName = &other
	object := vertexOf(kindShoot, here)
	b.ReportAllocs()
	for b.Loop() {
		g.Set(object, shootEdges(there))
		g.Set(object, shootEdges(here))
	}
}

func BenchmarkBuild(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		g := large()
		runtime.GC()
		runtime.ReadMemStats(&after)
		vertices, edges := g.Size()
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		b.ReportMetric(float64(vertices), "vertices")
		b.ReportMetric(float64(edges), "edges")
	}
}
