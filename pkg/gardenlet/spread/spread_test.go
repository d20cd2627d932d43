package spread

import (
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("9b7b2b4e-2c0f-4a55-8a39-%012x", i)) }

// Every tenth of a window has its part of the objects, also where their UIDs differ little.
func TestWithinSpreads(t *testing.T) {
	const window, objects = 10 * time.Minute, 1000
	var tenths [10]int
	for i := range objects {
		at := Within(uidOf(i), window)
		if at < 0 || at >= window {
			t.Fatalf("%s is not in the window", at)
		}
		if again := Within(uidOf(i), window); again != at {
			t.Fatalf("%s at first, then %s", at, again)
		}
		tenths[at*10/window]++
	}
	for i, count := range tenths {
		if count < objects/10*7/10 || count > objects/10*13/10 {
			t.Errorf("%d of %d objects are in tenth %d", count, objects, i)
		}
	}
}

func TestWithinNoWindow(t *testing.T) {
	for _, window := range []time.Duration{0, -time.Hour} {
		if at := Within(uidOf(1), window); at != 0 {
			t.Errorf("%s in a window of %s", at, window)
		}
	}
}

// Who asks for the longest period there is does not get a negative one, which would never end.
func TestAttackLongestPeriod(t *testing.T) {
	for i := range 100 {
		at, period := Within(uidOf(i), math.MaxInt64), Period(uidOf(i), math.MaxInt64)
		if at < 0 || period < time.Hour {
			t.Errorf("%s in the longest window, and a period of %s", at, period)
		}
	}
}

// Nothing comes sooner than was asked for, and nothing waits much longer.
func TestPeriod(t *testing.T) {
	different := map[time.Duration]bool{}
	for i := range 100 {
		period := Period(uidOf(i), time.Hour)
		if period < time.Hour || period >= 66*time.Minute {
			t.Errorf("a period of %s", period)
		}
		different[period] = true
	}
	if len(different) < 90 {
		t.Errorf("100 objects have %d periods", len(different))
	}
}
