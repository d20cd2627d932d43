package core

import (
	"fmt"
	"strings"
	"testing"
)

// seatsOf parses "A 3+1, B 2": weights, and the seats that are there already.
func seatsOf(t *testing.T, text string) []Share {
	t.Helper()
	var shares []Share
	for _, part := range strings.Split(text, ", ") {
		s := Share{}
		weight, seats, _ := strings.Cut(part, "+")
		if _, err := fmt.Sscanf(weight, "%s %d", &s.Cluster, &s.Weight); err != nil {
			t.Fatalf("%q: %v", part, err)
		}
		if seats != "" {
			if _, err := fmt.Sscanf(seats, "%d", &s.Seats); err != nil {
				t.Fatalf("%q: %v", part, err)
			}
		}
		shares = append(shares, s)
	}
	return shares
}

func seatNumbers(shares []Share) string {
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprint(s.Seats))
	}
	return strings.Join(parts, ",")
}

// webster is pkg/util/helper/webstermethod_test.go, TestAllocateWebsterSeats; v1.12.0 has no such method.
// dispenser is pkg/util/helper/binding_test.go, Test_dispenser_AllocateByWeight (v1.12.0: Test_dispenser_TakeByWeight).
// dispensed is pkg/util/helper/binding_test.go, TestDispenseReplicasByTargetClusters.
// worked rows were computed with the allocators of both versions.
const (
	webster   = "webstermethod_test.go TestAllocateWebsterSeats"
	dispenser = "binding_test.go Test_dispenser_AllocateByWeight"
	dispensed = "binding_test.go TestDispenseReplicasByTargetClusters"
	worked    = "worked example"
)

func TestGoldenApportion(t *testing.T) {
	const classic = "A 100000, B 80000, C 30000, D 20000"
	tests := []struct {
		origin     string
		seats      int64
		shares     string
		descending bool
		want       string
		// v112 is what v1.12.0 gives, if that is something else.
		v112 string
	}{
		{webster, 1, classic, false, "1,0,0,0", ""},
		{webster, 2, classic, false, "1,1,0,0", ""},
		{webster, 3, classic, false, "2,1,0,0", ""},
		{webster, 4, classic, false, "2,1,1,0", ""},
		{webster, 5, classic, false, "2,2,1,0", ""},
		{webster, 6, classic, false, "2,2,1,1", ""},
		{webster, 7, classic, false, "3,2,1,1", ""},
		{webster, 8, classic, false, "3,3,1,1", ""},
		{webster + ", no seats", 0, "A 100, B 200", false, "0,0", ""},
		{webster + ", tie by seats", 1, "A 3+1, B 1", false, "1,1", ""},
		{webster + ", tie by name", 1, "A 1, B 1", false, "1,0", ""},
		{webster + ", tie breaker by name", 1, "A 1, B 1", false, "1,0", ""},
		{webster + ", tie breaker by name, backwards", 1, "A 1, B 1", true, "0,1", ""},
		{webster + ", new parties join", 2, "New1 1, New2 1, Old 0", false, "1,1,0", ""},
		{webster + ", new and old compete", 2, "New 1, Old 1+1", false, "2,1", ""},
		{webster + ", seats without votes", 2, "A 100, B 0+3", false, "2,3", ""},
		{webster + ", tie by name, whatever the order", 1, "B 1, A 1", false, "0,1", ""},
		{"nobody has a vote: fewest seats first", 2, "A 0+2, B 0, C 0+1", false, "2,2,1", ""},
		{webster + ", the example", 4, "Alpha 1200, Beta 900, Gamma 400", false, "2,1,1", ""},

		{dispenser + ", 6 more", 6, "A 1+1, B 2+2, C 3+3", false, "2,4,6", ""},
		{dispenser + ", 3 more", 3, "A 1+1, B 2+2, C 3+3", false, "2,3,4", "1,3,5"},
		{dispenser + ", 2 more", 2, "A 1+1, B 2+2, C 3+3", false, "1,3,4", "1,2,5"},
		{dispenser + ", weight 2:1", 1, "A 2, B 1", false, "1,0", ""},
		{dispenser + ", weight 2:1", 2, "A 2, B 1", false, "1,1", "2,0"},
		{dispenser + ", weight 2:1", 3, "A 2, B 1", false, "2,1", ""},
		{dispenser + ", brand new", 5, "A 170, B 110, C 60", false, "2,2,1", "3,2,0"},
		{dispenser + ", brand new", 6, "A 170, B 110, C 60", false, "3,2,1", ""},
		{dispenser + ", odd UID", 5, "A 1, B 1", namesDescending(oddUID), "2,3", "2,3 or 3,2"},
		{dispenser + ", even UID", 5, "A 1, B 1", namesDescending(evenUID), "3,2", "2,3 or 3,2"},

		{dispensed + ", one cluster", 10, "m1 5", false, "10", ""},
		{dispensed + ", 1:1:1", 12, "m1 5, m2 5, m3 5", false, "4,4,4", ""},
		{dispensed + ", 1:1:1, 10", 10, "m1 5, m2 5, m3 5", false, "4,3,3", "the 4 anywhere"},
		{dispensed + ", 1:2:3", 13, "m1 1, m2 2, m3 3", false, "2,4,7", ""},

		{worked, 12, "m1 3, m2 2, m3 1", false, "6,4,2", ""},
		{worked, 13, "m1 3, m2 2, m3 1", false, "7,4,2", ""},
		{worked, 14, "m1 3, m2 2, m3 1", false, "7,5,2", "8,4,2"},
		{worked, 9, "m1 1, m2 2", false, "3,6", ""},
		{worked, 9, "m1 1, m2 3", false, "2,7", ""},
		{worked, 7, "m1 5, m2 3, m3 1", false, "4,2,1", "4,3,0"},
		{worked, 5, "m1 6, m2 1, m3 1, m4 1, m5 1", false, "3,1,1,0,0", "4,1,0,0,0, the 1 anywhere"},
		{worked, 3, "m1 1, m2 1", false, "2,1", "2,1 or 1,2"},
		{worked, 7, "m1 2, m2 1, m3 1, m4 1", false, "3,2,1,1", "the 2 anywhere but first"},
		{worked, 8, "m1 2, m2 1, m3 1, m4 1", false, "3,2,2,1", "4,2,1,1, the 2 anywhere but first"},
		{worked, 9, "m1 2, m2 1, m3 1, m4 1", false, "3,2,2,2", "4,2,2,1, the 1 anywhere"},
		{worked + ", no Alabama paradox", 3, "m1 1, m2 3, m3 3", false, "1,1,1", "0,2,1 or 0,1,2"},
		{worked + ", no Alabama paradox", 4, "m1 1, m2 3, m3 3", false, "1,2,1", "0,2,2 or 1,2,1 or 1,1,2"},
	}
	for _, tc := range tests {
		shares := seatsOf(t, tc.shares)
		Apportion(tc.seats, shares, tc.descending)
		if got := seatNumbers(shares); got != tc.want {
			t.Errorf("%s: %d seats over %s: got %s, want %s (v1.12.0: %s)", tc.origin, tc.seats, tc.shares, got,
				tc.want, tc.v112)
		}
	}
	Apportion(1, nil, false) // no votes, no seats: TestAllocateWebsterSeats has it twice
}
