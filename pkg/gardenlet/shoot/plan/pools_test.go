package plan_test

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestTrustedCertificates(t *testing.T) {
	p := plantest.New(t, func(in *plan.Inputs) {
		in.CloudProfile.Spec.CABundle = new("PROFILE\n")
		in.Shoot.Spec.Provider.Workers[0].CABundle = new("\nPOOL")
	}).Pools[0]
	if p.TrustedCertificates != "PROFILE\nPOOL\n" {
		t.Errorf("certificates are %q", p.TrustedCertificates)
	}
}
