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

func TestApportionGolden(t *testing.T) {
	for _, tc := range []struct {
		seats   int64
		weights []int64
		want    []int64
	}{
		{12, []int64{3, 2, 1}, []int64{6, 4, 2}},
		{13, []int64{3, 2, 1}, []int64{7, 4, 2}},
		{14, []int64{3, 2, 1}, []int64{7, 5, 2}},
		{1, []int64{2, 1}, []int64{1, 0}},
		{2, []int64{2, 1}, []int64{1, 1}},
		{3, []int64{2, 1}, []int64{2, 1}},
		{9, []int64{1, 2}, []int64{3, 6}},
		{9, []int64{1, 3}, []int64{2, 7}},
		{7, []int64{5, 3, 1}, []int64{4, 2, 1}},
		{5, []int64{6, 1, 1, 1, 1}, []int64{3, 1, 1, 0, 0}},
		{5, []int64{170, 110, 60}, []int64{2, 2, 1}},
		{3, []int64{1, 1}, []int64{2, 1}},
		{5, []int64{1, 1, 1}, []int64{2, 2, 1}},
		{7, []int64{2, 1, 1, 1}, []int64{3, 2, 1, 1}},
		{8, []int64{2, 1, 1, 1}, []int64{3, 2, 2, 1}},
		{9, []int64{2, 1, 1, 1}, []int64{3, 2, 2, 2}},
		{6, []int64{1, 1, 1, 1}, []int64{2, 2, 1, 1}},
		{6, []int64{2, 1, 1, 1}, []int64{3, 1, 1, 1}},
		{3, []int64{1, 3, 3}, []int64{1, 1, 1}},
		{4, []int64{1, 3, 3}, []int64{1, 2, 1}},
		{4, []int64{5, 0}, []int64{4, 0}},
		{0, []int64{1, 1}, []int64{0, 0}},
	} {
		if got := apportioned(tc.seats, tc.weights, false); !slices.Equal(got, tc.want) {
			t.Errorf("%d seats over %v: got %v, want %v", tc.seats, tc.weights, got, tc.want)
		}
	}
}

func TestApportionGivesSeatsOneByOne(t *testing.T) {
	votes := []int64{100000, 80000, 30000, 20000}
	for seats, want := range [][]int64{
		{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {2, 1, 0, 0}, {2, 1, 1, 0}, {2, 2, 1, 0}, {2, 2, 1, 1}, {3, 2, 1, 1}, {3, 3, 1, 1},
	} {
		if got := apportioned(int64(seats), votes, false); !slices.Equal(got, want) {
			t.Errorf("%d seats: got %v, want %v", seats, got, want)
		}
	}
}

func TestApportionTies(t *testing.T) {
	tests := map[string]struct {
		shares     []Share
		seats      int64
		descending bool
		want       []int64
	}{
		"equal quotients go to fewer seats":    {[]Share{{"a", 3, 1}, {"b", 1, 0}}, 1, false, []int64{1, 1}},
		"then to the first name":               {[]Share{{"b", 1, 0}, {"a", 1, 0}}, 1, false, []int64{0, 1}},
		"then to the last name":                {[]Share{{"a", 1, 0}, {"b", 1, 0}}, 1, true, []int64{0, 1}},
		"no votes keep the seats they have":    {[]Share{{"a", 1, 0}, {"b", 0, 2}}, 2, false, []int64{2, 2}},
		"no votes at all fill up the smallest": {[]Share{{"a", 0, 2}, {"b", 0, 0}, {"c", 0, 1}}, 2, false, []int64{2, 2, 1}},
		"newcomers catch up":                   {[]Share{{"new", 1, 0}, {"old", 1, 1}}, 2, false, []int64{2, 1}},
		"growth keeps proportions":             {[]Share{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}}, 6, false, []int64{2, 4, 6}},
		"growth by half":                       {[]Share{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}}, 3, false, []int64{2, 3, 4}},
		"growth by two":                        {[]Share{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}}, 2, false, []int64{1, 3, 4}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			Apportion(tc.seats, tc.shares, tc.descending)
			for i, s := range tc.shares {
				if s.Seats != tc.want[i] {
					t.Errorf("%s got %d seats, want %d", s.Cluster, s.Seats, tc.want[i])
				}
			}
		})
	}
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
