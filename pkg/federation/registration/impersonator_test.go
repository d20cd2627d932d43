package registration

import (
	"slices"
	"testing"
)

// The verb that lets an account be one of system:masters is given only where Kubernetes has no other.
func TestImpersonatorOfAVersion(t *testing.T) {
	for version, all := range map[string]bool{
		"v1.35.4": true, "v1.36.0": false, "v1.36.3+k3s1": false, "v1.36.1-gke.100": false, "v2.0.0": false,
		"unknown": true,
	} {
		got := false
		for _, rule := range impersonatorRules(version) {
			got = got || slices.Contains(rule.Verbs, "impersonate")
		}
		if got != all {
			t.Errorf("%s: may impersonate for all requests: %t", version, got)
		}
	}
}
