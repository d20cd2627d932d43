package backup

import (
	"slices"
	"testing"
	"time"
)

// A full snapshot, the deltas after it with another full snapshot beside them, and then what follows a restore, whose
// revisions are far beyond. All are numbered by the minutes after noon at which they were taken.
func TestAt(t *testing.T) {
	objects := []Object{
		full(1, 10, 0), delta(2, 11, 20, 1), delta(3, 21, 30, 2), full(4, 30, 3), delta(5, 31, 40, 3),
		full(7, 1000, 0), delta(8, 1001, 1010, 7),
	}
	at := func(n int, later time.Duration) time.Time { return noon.Add(time.Duration(n)*time.Minute + later) }
	for name, test := range map[string]struct {
		to   time.Time
		want []int
	}{
		"before all":                      {at(1, -time.Second), nil},
		"the first":                       {at(1, 0), []int{1}},
		"a moment before a delta":         {at(2, -time.Second), []int{1}},
		"at a delta":                      {at(2, 0), []int{1, 2}},
		"between two":                     {at(2, time.Second), []int{1, 2}},
		"from the newest full snapshot":   {at(5, 0), []int{4, 5}},
		"between the last and a restore":  {at(7, -time.Second), []int{4, 5}},
		"after a restore":                 {at(7, 0), []int{7}},
		"after all":                       {at(100, 0), []int{7, 8}},
		"before the full snapshot beside": {at(4, -time.Second), []int{1, 2, 3}},
	} {
		chain, found := At(objects, test.to)
		if found != (test.want != nil) || (found && !slices.Equal(ids(chain), test.want)) {
			t.Errorf("%s: got %t, %v, want %v", name, found, ids(chain), test.want)
		}
		if found && chain.Taken().After(test.to) {
			t.Errorf("%s: it is of %s", name, chain.Taken())
		}
	}
	if chain, _ := At(objects, at(2, 0)); chain.Size() != 1010 {
		t.Errorf("it has %d bytes", chain.Size())
	}
}
