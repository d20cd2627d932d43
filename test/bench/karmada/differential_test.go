package main

import (
	"testing"
)

// Every difference between the decisions of both sides is one that docs/federation-differences.md explains.
func TestDifferencesAreExplained(t *testing.T) {
	found, err := differences(20_000, 5)
	if err != nil {
		t.Fatal(err)
	}
	if d := found[unexplained]; d != nil {
		t.Errorf("%d cases differ without an explanation; the first:\n%s", d.count, d.example)
	}
	if found[same] == nil || found[same].count < 8_000 {
		t.Error("fewer cases are the same than differ by chance")
	}
}

func TestEveryCellIsPlacedAlike(t *testing.T) {
	for _, c := range cells() {
		if c.Clusters > 100 || c.Spread == "40 regions, half of them" {
			continue
		}
		prepared, err := c.prepared()
		if err != nil {
			t.Fatal(err)
		}
		if kind, description, err := compareCase(prepared); err != nil || kind == unexplained || kind == peerPanics {
			t.Errorf("%+v: %s %v\n%s", c, kind, err, description)
		}
	}
}
