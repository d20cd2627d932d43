package scheduler

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNameDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
		why  string
	}{
		{"eu-west-1", "eu-west-1", 0, "the same region"},
		{"eu-west-1", "eu-west-2", 2, "one letter of the base counts twice"},
		{"eu-west-1", "eu-central-1", 2, "another orientation"},
		{"eu-west-1", "eu--1", 1, "only one has an orientation"},
		{"northeurope", "westeurope", 2, "the orientation may come first"},
		{"asia-southeast1", "asia-northeast1", 2, "a double orientation is one"},
		{"eu-west-1", "us-west-1", 4, "two letters: one added, one dropped"},
		{"", "", 0, "nothing"},
		{"", "abc", 6, "everything is added"},
	} {
		if got := nameDistance(test.a, test.b); got != test.want {
			t.Errorf("%s: distance of %q and %q = %d, want %d", test.why, test.a, test.b, got, test.want)
		}
		if there, back := nameDistance(test.a, test.b), nameDistance(test.b, test.a); there != back {
			t.Errorf("distance of %q and %q is %d one way, %d the other", test.a, test.b, there, back)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"", "abc", 3}, {"abc", "", 3},
		{"abcd", "bcda", 2},
	} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("edit distance of %q and %q = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestParseStrategy(t *testing.T) {
	for name, want := range map[string]Strategy{
		"": SameRegion, "SameRegion": SameRegion, "MinimalDistance": MinimalDistance,
	} {
		if got, err := ParseStrategy(name); err != nil || got != want {
			t.Errorf("strategy %q = %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := ParseStrategy("Nearest"); err == nil || !strings.Contains(err.Error(), "MinimalDistance") {
		t.Errorf("error = %v, want it to name the strategies", err)
	}
}

func TestRegionDistances(t *testing.T) {
	config := func(name, profiles, region, content string) corev1.ConfigMap {
		return corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "garden", Name: name, Annotations: map[string]string{AnnotationCloudProfiles: profiles},
			},
			Data: map[string]string{region: content},
		}
	}
	tests := map[string]struct {
		configMaps []corev1.ConfigMap
		want       map[string]int
		err        string
	}{
		"none":                {},
		"for another profile": {configMaps: []corev1.ConfigMap{config("a", "other", "eu", "us: 1")}},
		"for several profiles": {
			configMaps: []corev1.ConfigMap{config("a", "other, local", "eu", "us: 1\nap: 2\n")},
			want:       map[string]int{"us": 1, "ap": 2},
		},
		"for another region": {configMaps: []corev1.ConfigMap{config("a", "local", "us", "eu: 1")}},
		"the first by name wins": {
			configMaps: []corev1.ConfigMap{config("b", "local", "eu", "us: 2"), config("a", "local", "eu", "us: 1")},
			want:       map[string]int{"us": 1},
		},
		"no map": {
			configMaps: []corev1.ConfigMap{config("a", "local", "eu", "us is near")},
			err:        "ConfigMap garden/a, data.eu: must map names of regions to whole numbers",
		},
		"no number": {
			configMaps: []corev1.ConfigMap{config("a", "local", "eu", "us: near")}, err: "whole numbers",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := RegionDistances(test.configMaps, "local", "eu")
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error = %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || !maps.Equal(got, test.want) {
				t.Errorf("distances = %v, %v; want %v", got, err, test.want)
			}
		})
	}
}
