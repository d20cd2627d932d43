//go:build e2e

package e2e

import "testing"

// rows are tests that need not know of each other: those of one row run one after another, the rows side by side. docs/testing.md has
// the rule.
var rows = []struct {
	name  string
	tests []rowTest
}{
	{"member2", []rowTest{
		{"ClusterAutoscaler", clusterAutoscaler},
		{"FleetGrows", fleetGrows},
	}},
	{"member1", []rowTest{
		{"UseShoot", useShoot},
		{"WebhookInShoot", webhookInShoot},
		{"FleetLeadsToItsMembers", fleetLeadsToItsMembers},
		{"FleetHoldsDeletions", fleetHoldsDeletions},
		{"DeleteHalfCreatedShoot", deleteHalfCreatedShoot},
	}},
}

type rowTest struct {
	name string
	run  func(t *testing.T)
}

func TestRows(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range row.tests {
				t.Run(test.name, test.run)
			}
		})
	}
}
