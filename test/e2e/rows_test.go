//go:build e2e

package e2e

import "testing"

// row is a list of tests that run one after another.
type row struct {
	name  string
	tests []rowTest
}

type rowTest struct {
	name string
	run  func(t *testing.T)
}

// rows are tests that need not know of each other, and that others of their project would not notice. docs/testing.md
// has the rule.
var rows = []row{
	{"member2", []rowTest{
		{"ClusterAutoscaler", whenChanged(autoscaling, clusterAutoscaler)},
		{"FleetGrows", whenChanged(growth, fleetGrows)},
	}},
	{"member1", []rowTest{
		{"UseShoot", useShoot},
		{"TerminalInABrowser", whenChanged(dashboard, inBrowser("terminal"))},
		{"AccessInABrowser", whenChanged(dashboard, inBrowser("access"))},
		{"WebhookInShoot", whenChanged(shoots, webhookInShoot)},
		{"FleetLeadsToItsMembers", whenChanged(clusters, fleetLeadsToItsMembers)},
		{"LogInThroughABastion", whenChanged(logins, logInThroughABastion)},
		{"FaultsOfAShoot", whenChanged(shoots, faultsOfAShoot)},
		{"EtcdLosesItsVolume", whenChanged(backups, etcdLosesItsVolume)},
		{"DeleteHalfCreatedShoot", whenChanged(shoots, deleteHalfCreatedShoot)},
	}},
	// What people see of the shoots of the other rows, and change in the garden, which nobody else looks at.
	{"browser", []rowTest{
		{"Types", whenChanged(dashboard, browserTypes)},
		{"Users", whenChanged(dashboard, inBrowser("users"))},
		{"Operators", whenChanged(dashboard, inBrowser("operators"))},
		{"Attacks", whenChanged(dashboard, inBrowser("attacks"))},
	}},
}

// halves are two rows of tests that kill, drain or compare what others use, but not what the other half does: one has
// the fleet and its members to itself, and writes nothing into the garden; the other one has gardenlet and the garden,
// and leaves the fleet alone.
var halves = []row{
	{"fleet", []rowTest{
		{"FaultOfFederation", whenChanged(federation, faultOfFederation)},
		{"FleetSpreadsNginx", whenChanged(clusters, fleetSpreadsNginx)},
		{"FleetLegacyOverride", whenChanged(federation, fleetLegacyOverride)},
		{"FleetDuplicates", whenChanged(federation, fleetDuplicates)},
		{"FleetOverrideOfMissingPath", whenChanged(federation, fleetOverrideOfMissingPath)},
		{"FleetUnknownCluster", whenChanged(federation, fleetUnknownCluster)},
		{"FleetPlansAndExplains", whenChanged(federation, fleetPlansAndExplains)},
		{"FleetRollsOutInWaves", whenChanged(federation, fleetRollsOutInWaves)},
		{"FleetDrainsAMember", whenChanged(federation, fleetDrainsAMember)},
		{"FleetMovesWhatFails", whenChanged(federation, fleetMovesWhatFails)},
		{"FederatedHPA", whenChanged(federation, federatedHPA)},
		// The last one: it uses up what may be deleted in member1 without confirmation for ten minutes.
		{"FleetHoldsDeletions", whenChanged(federation, fleetHoldsDeletions)},
	}},
	{"garden", []rowTest{
		{"ManagedSeed", whenChanged(managedSeeds, becomesManagedSeed)},
		{"SecondLandscape", whenChanged(landscapes, secondLandscape)},
	}},
}

// comings are two rows of tests that have gardenlet killed while a shoot comes, goes, sleeps or gets new credentials:
// one of member2, which the fleet keeps meanwhile, and one of a shoot of its own, which joins the fleet, leaves it, and
// becomes highly available.
var comings = []row{
	{"member2", []rowTest{
		{"Hibernation", whenAnyChanged([][]string{clusters, commands}, hibernation)},
		{"RotateCredentials", whenChanged(credentials, rotateCredentials)},
	}},
	{"edge", []rowTest{
		{"FleetAgent", whenChanged(clusters, fleetAgent)},
	}},
}

// people is a row of what they do in the dashboard with a browser, and that takes a landscape of its own: on the way,
// the dashboard's server and the garden's API go away, and a shoot comes and goes. It is the last one, as it uses up
// what may be deleted in member2 without confirmation.
var people = []row{
	{"browser", []rowTest{
		{"Shoots", whenChanged(dashboard, inBrowser("shoots"))},
		{"Fleets", whenChanged(dashboard, inBrowser("fleets"))},
	}},
}

func TestComings(t *testing.T) { sideBySide(t, comings) }

func TestRows(t *testing.T) { sideBySide(t, rows) }

func TestHalves(t *testing.T) { sideBySide(t, halves) }

func TestPeopleInABrowser(t *testing.T) { inTurn(t, people) }

func sideBySide(t *testing.T, rows []row) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t)
		})
	}
}

func inTurn(t *testing.T, rows []row) {
	for _, row := range rows {
		t.Run(row.name, row.run)
	}
}

func (r row) run(t *testing.T) {
	for _, test := range r.tests {
		t.Run(test.name, test.run)
	}
}
