package v1alpha2

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestRanking(t *testing.T) {
	clusters := []RankedCluster{
		{Name: "chosen", Chosen: true, Replicas: 3, Available: new(int64(12)), Score: 100, Weight: 2, Tier: 1},
		{Name: "m1", Available: new(int64(0))},
		{Name: "m2", Replicas: math.MaxInt32, Score: math.MinInt64},
	}
	text := NewRanking(clusters)
	if want :=
		Ranking("chosen chosen replicas=3 available=12 score=100 weight=2 tier=1\nm1 available=0\nm2 " +
			"replicas=2147483647 score=-9223372036854775808\n"); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if got, err := text.Clusters(); err != nil || !reflect.DeepEqual(got, clusters) {
		t.Errorf("got %+v: %v, want %+v", got, err, clusters)
	}
	if got, err := Ranking("").Clusters(); err != nil || len(got) != 0 {
		t.Errorf("got %+v: %v, want nothing", got, err)
	}
}

func TestRankingRefuses(t *testing.T) {
	for text, want := range map[Ranking]string{
		"m1\n\nm2\n":             "line 2: the name of a cluster is missing",
		"score=1\n":              "line 1: \"score=1\": the name",
		"m1 elected\n":           "line 1: \"elected\" is not known",
		"m1 luck=1\n":            "luck is not known",
		"m1 replicas=2147483648": "out of range",
		"m1 score=x":             "invalid syntax",
	} {
		if _, err := text.Clusters(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzRanking checks that what is read is written again as something that says the same.
func FuzzRanking(f *testing.F) {
	f.Add("m1 chosen replicas=3 available=12 score=100 weight=2 tier=1\nm2 available=0\n")
	f.Fuzz(func(t *testing.T, text string) {
		clusters, err := Ranking(text).Clusters()
		if err != nil {
			return
		}
		again, err := NewRanking(clusters).Clusters()
		if err != nil || len(again) != len(clusters) || len(clusters) > 0 && !reflect.DeepEqual(again, clusters) {
			t.Errorf("%q: got %+v: %v, want %+v", text, again, err, clusters)
		}
	})
}
