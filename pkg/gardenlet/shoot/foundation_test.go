package shoot

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component"
)

func TestPodsOfShootsWithoutWorkersAreHeldToTheRestrictedLevel(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"with workers":    {func(*Inputs) {}, component.PodSecurityPrivileged},
		"without workers": {workerless, component.PodSecurityRestricted},
	} {
		if got := operation(t, test.change).namespace().Labels[component.LabelPodSecurity]; got != test.want {
			t.Errorf("%s: level %q, want %q", name, got, test.want)
		}
	}
}
