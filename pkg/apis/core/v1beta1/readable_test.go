package v1beta1

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestSeedsAllowedToRead(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, "one": {"one"}, "one_two.three": {"one", "two.three"}, ReadableByAllSeeds: {"All"},
	} {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("%q is no value of a label: %v", value, errs)
		}
		if got := SeedsAllowedToRead(map[string]string{LabelSeedReadableBy: value}); !slices.Equal(got, want) {
			t.Errorf("%q lets %v read, want %v", value, got, want)
		}
	}
	if len(validation.IsDNS1123Subdomain(ReadableByAllSeeds)) == 0 {
		t.Error("a seed could be called as all of them are")
	}
}
