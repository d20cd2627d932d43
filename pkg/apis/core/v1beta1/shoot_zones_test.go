package v1beta1

import (
	"strings"
	"testing"
)

func TestUnfitZones(t *testing.T) {
	prefer, enforce := ZoneSelectionModePrefer, ZoneSelectionModeEnforce
	for name, test := range map[string]struct {
		wanted, zones []string
		mode          ZoneSelectionMode
		want          string
	}{
		"none wanted":              {nil, []string{"a", "b"}, enforce, ""},
		"just these":               {[]string{"b", "a"}, []string{"a", "b"}, enforce, ""},
		"one is missing":           {[]string{"a", "c"}, []string{"a"}, enforce, "has no zone c"},
		"the seed names no zones":  {[]string{"a"}, nil, enforce, "has no zone a"},
		"one too many":             {[]string{"a"}, []string{"a", "b"}, enforce, "is in zone b as well"},
		"by default they are must": {[]string{"a"}, []string{"a", "b"}, "", "is in zone b as well"},
		"a preference":             {[]string{"a"}, []string{"b", "c"}, prefer, ""},
	} {
		shoot, seed := &Shoot{}, &Seed{}
		shoot.Spec.ControlPlane = &ControlPlane{Zones: test.wanted}
		seed.Spec.Provider.Zones = test.zones
		if test.mode != "" {
			seed.Spec.Settings = &SeedSettings{ZoneSelection: &SeedSettingZoneSelection{Mode: test.mode}}
		}
		got := UnfitZones(shoot, seed)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := UnfitZones(&Shoot{}, &Seed{}); got != "" {
		t.Error(got)
	}
}
