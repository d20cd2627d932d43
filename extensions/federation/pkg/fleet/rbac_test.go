package fleet

import (
	"slices"
	"testing"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// Policies of the fleet are about the account by its name as a user.
func TestAccountIsTheOneThatPoliciesMean(t *testing.T) {
	if want := "system:serviceaccount:kube-system:" + Name; registration.FleetAccount != want {
		t.Errorf("got %s, want %s", registration.FleetAccount, want)
	}
}

// The verb that lets somebody do anything as others is given to nobody.
func TestNobodyImpersonatesForAllRequests(t *testing.T) {
	for _, rule := range append(append(fleetRules(), mastersRules()...), append(credentialsRules(), revisionsRules()...)...) {
		if slices.Contains(rule.Verbs, "impersonate") || slices.Contains(rule.Verbs, "*") && !slices.Equal(rule.APIGroups, []string{"cluster.karmada.io"}) {
			t.Errorf("got %v", rule)
		}
	}
}
