package v1beta1

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateLengths(t *testing.T) {
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{"most that is possible", func(s *Shoot) { s.Spec.Extensions = make([]Extension, MaxItems) }, "", ""},
		{
			"long list", func(s *Shoot) { s.Spec.Extensions = make([]Extension, MaxItems+1) }, "spec.extensions",
			"at most 5000",
		},
		{
			"long list in a list", func(s *Shoot) { s.Spec.Provider.Workers[0].Zones = make([]string, MaxItems+1) },
			"spec.provider.workers[0].zones", "at most 5000",
		},
		{
			"most of a list that is merged", func(s *Shoot) { s.Status.Conditions = make([]Condition, MaxMergedItems) },
			"", "",
		},
		{
			"long list that is merged", func(s *Shoot) { s.Status.Conditions = make([]Condition, MaxMergedItems+1) },
			"status.conditions", "at most 1000",
		},
		{"large map", func(s *Shoot) { s.Annotations = manyKeys() }, "metadata.annotations", "at most 5000"},
		{
			"large map in an inlined struct",
			func(s *Shoot) { s.Spec.SeedSelector = &SeedSelector{}; s.Spec.SeedSelector.MatchLabels = manyKeys() },
			"spec.seedSelector.matchLabels", "at most 5000",
		},
	}, aShootWithEverything, func(s *Shoot) field.ErrorList { return ValidateLengths(s) })
	expectError(t, ValidateLengths(&InternalSecret{Data: map[string][]byte{"a": make([]byte, 2*MaxItems)}}), "", "")
}

func manyKeys() map[string]string {
	keys := map[string]string{}
	for i := range MaxItems + 1 {
		keys[string(rune('a'+i%26))+string(rune(0x4e00+i))] = ""
	}
	return keys
}
