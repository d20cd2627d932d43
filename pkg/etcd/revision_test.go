package etcd

import (
	"testing"
	"time"
)

func TestRevisionBeyond(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		name        string
		known, want int64
	}{
		{"nothing known", 0, 1_700_000_000_000_000},
		{"of an etcd that never lost data", 5000, 1_700_000_000_000_000},
		{"of one that did", 1_699_999_999_000_000, 1_700_000_000_000_000},
		{"ahead of a clock that is wrong", 1_800_000_000_000_000, 1_800_001_000_000_000},
	} {
		if got := revisionBeyond(test.known, now); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestRevisionsOfRepeatedRestoresGrow(t *testing.T) {
	snapshot := int64(1000)
	first := time.Unix(1_700_000_000, 0)
	seen := revisionBeyond(snapshot, first) + 500_000
	if again := revisionBeyond(snapshot, first.Add(time.Second)); again <= seen {
		t.Errorf("the second restore of a snapshot has revision %d, clients have seen %d", again, seen)
	}
}
