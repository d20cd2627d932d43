package main

import (
	"slices"
	"testing"
)

func TestSince(t *testing.T) {
	before := restarts{"a runtime x/y c": 2, "a runtime x/gone c": 1, "a member1 x/y c": 0}
	after := restarts{"a runtime x/y c": 2, "a member1 x/y c": 1, "a runtime x/new c": 3}
	want := []string{"a member1 x/y c: 1", "a runtime x/new c: 3"}
	if got := after.since(before); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := before.since(before); len(got) > 0 {
		t.Errorf("without a change, got %q", got)
	}
}
