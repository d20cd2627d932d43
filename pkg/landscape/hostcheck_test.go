package landscape

import (
	"strings"
	"testing"
)

// On a large disk, machines have DiskPressure while there is still room for a landscape.
func TestWhatALandscapeNeedsOfTheDisk(t *testing.T) {
	const gib = 1 << 30
	for name, test := range map[string]struct {
		free, size uint64
		refused    string
	}{
		"a small disk with enough":             {free: 12 * gib, size: 40 * gib},
		"one with less":                        {12*gib - 1, 40 * gib, "11 GiB are free, and a landscape needs 12 GiB"},
		"a larger disk with enough":            {free: 18 * gib, size: 200 * gib},
		"one with enough for a small one":      {12 * gib, 200 * gib, "12 GiB are free, and a landscape needs 18 GiB"},
		"one on which machines would evict":    {50 * gib, 1000 * gib, "8 GiB to fill, and 5 % of all 1000 GiB"},
		"what is needed is not rounded down":   {20 * gib, 252 * gib, "20 GiB are free, and a landscape needs 21 GiB"},
		"who is refused knows what to do next": {size: gib, refused: "`make clean` removes what was built"},
	} {
		err := enoughDisk(test.free, test.size)
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
