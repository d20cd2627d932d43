package scheduler

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var regions = []string{"eu-west-1", "eu-central-1", "us-east-1", "asia-southeast1", "northeurope"}

func randomSeed(random *rand.Rand, name string) *gardencorev1beta1.Seed {
	changes := []func(*gardencorev1beta1.Seed){
		room(strconv.Itoa(random.IntN(4))), ofProvider("other"), withTaint("key", nil), labelled("size", "big"),
		withZones("1", "2", "3"),
		withBackup(nil), func(s *gardencorev1beta1.Seed) { s.Status.LastOperation = nil },
	}
	seed := readySeed(name, inRegion(regions[random.IntN(len(regions))]))
	for _, change := range changes {
		if random.IntN(4) == 0 {
			change(seed)
		}
	}
	return seed
}

func randomShoot(random *rand.Rand, name string) *gardencorev1beta1.Shoot {
	changes := []func(*gardencorev1beta1.Shoot){
		workerless, forTests, tolerating(gardencorev1beta1.FailureToleranceTypeZone),
		func(s *gardencorev1beta1.Shoot) { s.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "key"}} },
		func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("size", "big", "*") },
	}
	shoot := newShoot(wantsRegion(regions[random.IntN(len(regions))]))
	shoot.Name, shoot.UID = name, types.UID(name)
	for _, change := range changes {
		if random.IntN(4) == 0 {
			change(shoot)
		}
	}
	return shoot
}

func randomSnapshot(random *rand.Rand) Snapshot {
	snapshot := Snapshot{Used: map[string]int{}, Strategy: Strategies[random.IntN(len(Strategies))]}
	for i := range random.IntN(30) {
		seed := randomSeed(random, fmt.Sprintf("seed-%d", i))
		snapshot.Seeds = append(snapshot.Seeds, seed)
		snapshot.Used[seed.Name] = random.IntN(4)
	}
	if random.IntN(2) == 0 {
		snapshot.Distances = map[string]int{regions[0]: 3, regions[1]: random.IntN(9)}
	}
	return snapshot
}

// The same garden gives the same decision, in whatever order its seeds are told; the decision changes nothing in it,
// covers every seed, and never takes one that it rejects.
func TestDecisionIsAFunctionOfTheGarden(t *testing.T) {
	for round := range uint64(2000) {
		random := rand.New(rand.NewPCG(round, 1))
		snapshot, shoot := randomSnapshot(random), randomShoot(random, "shoot")
		untouchedShoot := shoot.DeepCopy()
		untouchedSeeds := copies(snapshot.Seeds)
		seed, rejections := Schedule(snapshot, shoot)
		if !apiequality.Semantic.DeepEqual(shoot, untouchedShoot) ||
			!apiequality.Semantic.DeepEqual(snapshot.Seeds, untouchedSeeds) {
			t.Fatalf("round %d: the decision changed its input", round)
		}
		if seed == "" && len(rejections) != len(snapshot.Seeds) {
			t.Fatalf("round %d: %d rejections for %d seeds, and none was chosen", round, len(rejections),
				len(snapshot.Seeds))
		}
		if slices.ContainsFunc(rejections,
			func(r Rejection) bool { return r.Seed == seed || r.Message == "" || placeOf(r.Reason) < 0 }) {
			t.Fatalf("round %d: seed %q with rejections %v", round, seed, rejections)
		}
		random.Shuffle(len(snapshot.Seeds), func(i, j int) {
			snapshot.Seeds[i], snapshot.Seeds[j] = snapshot.Seeds[j], snapshot.Seeds[i]
		})
		again, rejectionsAgain := Schedule(snapshot, shoot)
		if again != seed || !reflect.DeepEqual(rejectionsAgain, rejections) {
			t.Fatalf("round %d: %q, %v; with the seeds in another order %q, %v", round, seed, rejections, again,
				rejectionsAgain)
		}
		if a, b := Summary(len(snapshot.Seeds), rejections), Summary(len(snapshot.Seeds), rejectionsAgain); a != b {
			t.Fatalf("round %d: summaries %q and %q", round, a, b)
		}
	}
}

func copies(seeds []*gardencorev1beta1.Seed) []*gardencorev1beta1.Seed {
	var result []*gardencorev1beta1.Seed
	for _, seed := range seeds {
		result = append(result, seed.DeepCopy())
	}
	return result
}

// Whatever happens to shoots, in whatever order events and promises come, the usage's counts are those of a recount.
func TestUsageMatchesRecount(t *testing.T) {
	for round := range uint64(200) {
		random := rand.New(rand.NewPCG(round, 2))
		l, truth := newUsage(), map[string]*gardencorev1beta1.Shoot{}
		for step := range 200 {
			name := fmt.Sprintf("shoot-%d", random.IntN(10))
			step := fmt.Sprintf("round %d, step %d", round, step)
			shoot := truth[name]
			switch {
			case shoot == nil:
				shoot = randomShoot(random, name)
				shoot.UID = types.UID(step)
				truth[name] = shoot
				l.observe(shoot, true)
			case random.IntN(4) == 0:
				delete(truth, name)
				l.forget(client.ObjectKeyFromObject(shoot))
			case shoot.Spec.SeedName == nil && random.IntN(2) == 0:
				// The decision is known here before its event.
				decided := shoot.DeepCopy()
				decided.Spec.SeedName = new(fmt.Sprintf("seed-%d", random.IntN(3)))
				truth[name] = decided
				l.promise(shoot, *decided.Spec.SeedName)
				l.observe(shoot, true) // an older state comes late
				if !l.promised(shoot) {
					t.Fatalf("%s: a late event undid a promise", step)
				}
			default:
				shoot = shoot.DeepCopy()
				shoot.Status.SeedName = shoot.Spec.SeedName
				if shoot.Spec.SeedName != nil && random.IntN(2) == 0 {
					shoot.Spec.SeedName = new(fmt.Sprintf("seed-%d", random.IntN(3)))
				}
				truth[name] = shoot
				l.observe(shoot, shoot.Spec.SeedName == nil)
			}
			if got, want := l.counts(), recount(truth); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: counts %v, a recount gives %v", step, got, want)
			}
		}
	}
}

func recount(shoots map[string]*gardencorev1beta1.Shoot) map[string]int {
	counts := map[string]int{}
	for _, shoot := range shoots {
		wanted, actual := ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, "")
		if wanted != "" {
			counts[wanted]++
		}
		if actual != "" && actual != wanted {
			counts[actual]++
		}
	}
	return counts
}
