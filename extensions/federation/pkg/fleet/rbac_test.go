package fleet

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// Policies of the fleet are about the account by its name as a user. The Secret with its tokens is how resource-manager
// knows fleets.
func TestAccountIsTheOneThatPoliciesMean(t *testing.T) {
	if want := component.ShootAccessSecret(Name); fleetv1alpha1.AccessSecret != want {
		t.Errorf("got %s, want %s", fleetv1alpha1.AccessSecret, want)
	}
	if want := "system:serviceaccount:kube-system:" + Name; registration.FleetAccount != want {
		t.Errorf("got %s, want %s", registration.FleetAccount, want)
	}
}

// accountRules are all that the federation process may do in a fleet.
func accountRules() []rbacv1.PolicyRule {
	return slices.Concat(fleetRules(), credentialsRules(), revisionsRules())
}

// Certificates are none of the process's business: who approves one says who its holder is.
func TestTheProcessApprovesNoCertificates(t *testing.T) {
	for _, rule := range accountRules() {
		reads := !slices.ContainsFunc(rule.Verbs,
			func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
		named := slices.Contains(rule.APIGroups, "certificates.k8s.io")
		covered := slices.Contains(rule.APIGroups, "*") &&
			slices.ContainsFunc(rule.Resources,
				func(r string) bool { return r == "*" || r == "*/approval" || r == "signers" })
		if !reads && (named || covered) {
			t.Errorf("got %v", rule)
		}
	}
}

// The verb that lets somebody do anything as others is given to nobody.
func TestNobodyImpersonatesForAllRequests(t *testing.T) {
	for _, rule := range append(accountRules(), mastersRules()...) {
		if slices.Contains(rule.Verbs, "impersonate") ||
			slices.Contains(rule.Verbs, "*") && !slices.Equal(rule.APIGroups, []string{"cluster.karmada.io"}) {
			t.Errorf("got %v", rule)
		}
	}
}
