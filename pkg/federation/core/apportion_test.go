package core

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
)

// UIDs whose fnv32a hash is odd and even.
const (
	oddUID  = "d43fdeeb-d750-4e2b-bee3-64eb94534f4c"
	evenUID = "4858ca61-3ff8-4095-8267-f3d059d8074c"
)

func apportioned(seats int64, weights []int64, descending bool) []int64 {
	shares := make([]Share, len(weights))
	for i, w := range weights {
		shares[i] = Share{Cluster: fmt.Sprintf("m%02d", i+1), Weight: w}
	}
	Apportion(seats, shares, descending)
	result := make([]int64, len(shares))
	for i, s := range shares {
		result[i] = s.Seats
	}
	return result
}

func TestNamesDescendingFollowsTheParityOfTheUID(t *testing.T) {
	if !namesDescending(oddUID) || namesDescending(evenUID) || namesDescending("") {
		t.Error("want descending for the odd UID only")
	}
}

func TestApportionProperties(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		weights := make([]int64, 1+rng.Intn(12))
		for i := range weights {
			weights[i] = rng.Int63n(1000)
		}
		weights[0]++
		seats := rng.Int63n(500)
		now, more := apportioned(seats, weights, false), apportioned(seats+1, weights, false)
		if sum(now) != seats {
			t.Fatalf("%d seats over %v: %v adds up to %d", seats, weights, now, sum(now))
		}
		for i := range now {
			if more[i] < now[i] {
				t.Fatalf("%d → %d seats over %v takes one from %d: %v → %v", seats, seats+1, weights, i, now, more)
			}
		}
		if stepwise := oneByOne(seats, weights); !slices.Equal(stepwise, now) {
			t.Fatalf("%d seats over %v: with the head start %v, step by step %v", seats, weights, now, stepwise)
		}
	}
}

// oneByOne apportions without a head start.
func oneByOne(seats int64, weights []int64) []int64 {
	shares := make([]Share, len(weights))
	for i, w := range weights {
		shares[i] = Share{Cluster: fmt.Sprintf("m%02d", i+1), Weight: w}
	}
	for range seats {
		Apportion(1, shares, false)
	}
	result := make([]int64, len(shares))
	for i, s := range shares {
		result[i] = s.Seats
	}
	return result
}

func TestApportionLargeNumbers(t *testing.T) {
	got := apportioned(math.MaxInt32, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, false)
	if sum(got) != math.MaxInt32 || got[0]-got[2] > 1 {
		t.Errorf("got %v", got)
	}
}

func sum(numbers []int64) int64 {
	var total int64
	for _, n := range numbers {
		total += n
	}
	return total
}

func TestApportionWithBoundsEqualsOneByOne(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 2000 {
		shares := make([]Share, 1+rng.Intn(8))
		for i := range shares {
			shares[i] = Share{Cluster: fmt.Sprintf("m%02d", i), Weight: rng.Int63n(20), Seats: rng.Int63n(30)}
			if rng.Intn(2) == 0 {
				shares[i].Max = 1 + rng.Int63n(200)
			}
		}
		seats := rng.Int63n(1000)
		atOnce, stepwise := slices.Clone(shares), slices.Clone(shares)
		rest := Apportion(seats, atOnce, false)
		var restStepwise int64
		for range seats {
			restStepwise += Apportion(1, stepwise, false)
		}
		if !slices.Equal(atOnce, stepwise) || rest != restStepwise {
			t.Fatalf("%d seats over %v: at once %v (rest %d), one by one %v (rest %d)", seats, shares, atOnce, rest,
				stepwise, restStepwise)
		}
	}
}
