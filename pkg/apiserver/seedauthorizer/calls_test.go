package seedauthorizer

import "testing"

// TestCallsOfSeeds lists what the processes of a seed ask of the garden. Whoever adds a call adds it here.
func TestCallsOfSeeds(t *testing.T) {
	g := state("one")
	for _, test := range []struct {
		who           Identity
		why, request  string
		fieldSelector string
	}{
		// pkg/gardenlet/bootstrap: renewal of its certificate.
		{gardenlet, "asks for a certificate", "create certificates.k8s.io/certificatesigningrequests", ""},
		{gardenlet, "waits for its certificate", "get certificates.k8s.io/certificatesigningrequests /csr-one", ""},
		// pkg/gardenlet: caches.
		{gardenlet, "lists its shoots", "list garden/shoots", "spec.seedName=one"},
		{gardenlet, "watches its shoots", "watch garden/shoots", "spec.seedName=one"},
		{gardenlet, "lists its installations", "list garden/controllerinstallations", "spec.seedRef.name=one"},
		{gardenlet, "watches its installations", "watch garden/controllerinstallations", "spec.seedRef.name=one"},
		{gardenlet, "lists its seed", "list garden/seeds /one", "metadata.name=one"},
		{gardenlet, "watches its seed", "watch garden/seeds /one", "metadata.name=one"},
		// pkg/gardenlet/seed.
		{gardenlet, "registers the seed", "create garden/seeds", ""},
		{gardenlet, "reads the seed", "get garden/seeds /one", ""},
		{gardenlet, "updates the seed", "update garden/seeds /one", ""},
		{gardenlet, "sets the seed's finalizer", "patch garden/seeds /one", ""},
		{gardenlet, "reports the seed's health", "patch garden/seeds/status /one", ""},
		{gardenlet, "reads its lease", "get coordination.k8s.io/leases gardener-system-seed-lease/one", ""},
		{gardenlet, "creates its lease", "create coordination.k8s.io/leases gardener-system-seed-lease/", ""},
		{gardenlet, "renews its lease", "update coordination.k8s.io/leases gardener-system-seed-lease/one", ""},
		// pkg/gardenlet/controllerinstallation.
		{gardenlet, "reads an installation", "get garden/controllerinstallations /installation-one", ""},
		{gardenlet, "sets an installation's finalizer", "patch garden/controllerinstallations /installation-one", ""},
		{gardenlet, "reports an installation", "patch garden/controllerinstallations/status /installation-one", ""},
		{gardenlet, "reads a chart", "get garden/controllerdeployments /deployment-one", ""},
		{gardenlet, "looks for the seed's namespace", "get core/namespaces seed-one/seed-one", ""},
		{gardenlet, "creates the seed's namespace", "create core/namespaces", ""},
		{gardenlet, "reads an extension's account", "get core/serviceaccounts seed-one/extension-x", ""},
		{gardenlet, "creates an extension's account", "create core/serviceaccounts seed-one/", ""},
		{gardenlet, "requests an extension's token", "create core/serviceaccounts/token seed-one/extension-x", ""},
		{gardenlet, "deletes an extension's account", "delete core/serviceaccounts seed-one/extension-x", ""},
		// pkg/gardenlet/shoot.
		{gardenlet, "sets a shoot's finalizer", "patch garden/shoots garden-one/s", ""},
		{gardenlet, "reports a shoot", "patch garden/shoots/status garden-one/s", ""},
		{gardenlet, "reads a shoot's profile", "get garden/cloudprofiles /parent-one", ""},
		{gardenlet, "reads a shoot's own profile", "get garden/namespacedcloudprofiles garden-one/profile-s", ""},
		{gardenlet, "reads a shoot's namespace", "get core/namespaces garden-one/garden-one", ""},
		{gardenlet, "reads a shoot's binding", "get security/credentialsbindings garden-one/binding-s", ""},
		{gardenlet, "reads a shoot's old binding", "get garden/secretbindings garden-one/oldbinding-s", ""},
		{gardenlet, "lists registrations", "list garden/controllerregistrations", ""},
		{gardenlet, "copies credentials", "get core/secrets garden-one/infra", ""},
		{gardenlet, "copies DNS credentials of the seed", "get core/secrets garden/dns-one", ""},
		{gardenlet, "copies DNS credentials of the shoot", "get core/secrets garden-one/dns-s", ""},
		{gardenlet, "copies referenced secrets", "get core/secrets garden-one/resource-s", ""},
		{gardenlet, "copies referenced config maps", "get core/configmaps garden-one/resource-s", ""},
		{gardenlet, "looks for the published authorities", "get core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "publishes the authorities", "create core/configmaps garden-one/", ""},
		{gardenlet, "changes the published authorities", "patch core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "withdraws the authorities", "delete core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "looks for the signing authority", "get garden/internalsecrets garden-one/s.ca-client", ""},
		{gardenlet, "hands over the signing authority", "create garden/internalsecrets garden-one/", ""},
		{gardenlet, "changes the signing authority", "patch garden/internalsecrets garden-one/s.ca-client", ""},
		{gardenlet, "withdraws the signing authority", "delete garden/internalsecrets garden-one/s.ca-client", ""},
		// pkg/gardenlet/bastion.
		{gardenlet, "lists its bastions", "list operations.gardener.cloud/bastions", "spec.seedName=one"},
		{gardenlet, "watches its bastions", "watch operations.gardener.cloud/bastions", "spec.seedName=one"},
		{gardenlet, "reads a bastion", "get operations.gardener.cloud/bastions garden-one/bastion", ""},
		{gardenlet, "sets a bastion's finalizer", "patch operations.gardener.cloud/bastions garden-one/bastion", ""},
		{gardenlet, "reports a bastion", "patch operations.gardener.cloud/bastions/status garden-one/bastion", ""},
		// extensions/federation/pkg/membership.
		{extension, "lists the shoots of a fleet's namespace", "list garden/shoots garden-one/", ""},
		{extension, "watches the shoots of a fleet's namespace", "watch garden/shoots garden-one/", ""},
		{extension, "asks for a member's credentials", "create garden/shoots/adminkubeconfig garden-one/member-on-another-seed", ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			if test.fieldSelector == "" {
				check(t, g, test.who, test.request, true)
			} else {
				check(t, g, test.who, test.request, true, test.fieldSelector)
			}
		})
	}
}
