package seedauthorizer

import (
	"testing"

	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// TestCallsOfSeeds lists what the processes of a seed ask of the garden. Whoever adds a call adds it here.
func TestCallsOfSeeds(t *testing.T) {
	g := state("one")
	childToken := seedmanagementv1alpha1.BootstrapTokenSecretName("child-one")
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
		{gardenlet, "lists the shoots that it has, to take down others", "list garden/shoots", "status.seedName=one"},
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
		{gardenlet, "copies internal credentials", "get garden/internalsecrets garden-one/infra", ""},
		{gardenlet, "copies DNS credentials of the seed", "get core/secrets garden/dns-one", ""},
		{gardenlet, "copies DNS credentials of the shoot", "get core/secrets garden-one/dns-s", ""},
		{gardenlet, "copies referenced secrets", "get core/secrets garden-one/resource-s", ""},
		{gardenlet, "copies referenced config maps", "get core/configmaps garden-one/resource-s", ""},
		{gardenlet, "reads a shoot's audit policy", "get core/configmaps garden-one/audit-s", ""},
		{
			gardenlet, "reads a shoot's authentication configuration",
			"get core/configmaps garden-one/authentication-s", "",
		},
		{
			gardenlet, "reads a shoot's authorization configuration", "get core/configmaps garden-one/authorization-s",
			"",
		},
		{gardenlet, "reads the kubeconfig of a shoot's authorizer", "get core/secrets garden-one/authorizer-s", ""},
		{gardenlet, "looks for the published authorities", "get core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "publishes the authorities", "create core/configmaps garden-one/", ""},
		{gardenlet, "looks for the graph of an operation", "get core/configmaps garden-one/s.operation", ""},
		{gardenlet, "creates the graph of an operation", "create core/configmaps garden-one/", ""},
		{gardenlet, "writes the graph of an operation", "update core/configmaps garden-one/s.operation", ""},
		{gardenlet, "changes the published authorities", "patch core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "withdraws the authorities", "delete core/configmaps garden-one/s.ca-cluster", ""},
		{gardenlet, "looks for the signing authority", "get garden/internalsecrets garden-one/s.ca-client", ""},
		{gardenlet, "hands over the signing authority", "create garden/internalsecrets garden-one/", ""},
		{gardenlet, "changes the signing authority", "patch garden/internalsecrets garden-one/s.ca-client", ""},
		{gardenlet, "withdraws the signing authority", "delete garden/internalsecrets garden-one/s.ca-client", ""},
		{gardenlet, "looks for the key to machines", "get core/secrets garden-one/s.ssh-keypair", ""},
		{gardenlet, "publishes the key to machines", "create core/secrets garden-one/", ""},
		{gardenlet, "changes the key to machines", "patch core/secrets garden-one/s.ssh-keypair", ""},
		{gardenlet, "withdraws the old key to machines", "delete core/secrets garden-one/s.ssh-keypair.old", ""},
		// pkg/gardenlet/shoot/shootstate.
		{gardenlet, "looks for a shoot's state", "get garden/shootstates garden-one/s", ""},
		{gardenlet, "keeps a shoot's state", "create garden/shootstates garden-one/", ""},
		{gardenlet, "is asked about the state that it keeps", "create garden/shootstates garden-one/s", ""},
		{gardenlet, "changes a shoot's state", "patch garden/shootstates garden-one/s", ""},
		{gardenlet, "forgets a shoot's state", "delete garden/shootstates garden-one/s", ""},
		// pkg/gardenlet/workloadidentity.
		{gardenlet, "reads a workload identity", "get security/workloadidentities garden-one/infra", ""},
		{
			gardenlet, "requests a token of a workload identity",
			"create security/workloadidentities/token garden-one/infra", "",
		},
		{
			gardenlet, "requests a token of a referenced workload identity",
			"create security/workloadidentities/token garden-one/identity-s", "",
		},
		// pkg/gardenlet/bastion.
		{gardenlet, "lists its bastions", "list operations.gardener.cloud/bastions", "spec.seedName=one"},
		{gardenlet, "watches its bastions", "watch operations.gardener.cloud/bastions", "spec.seedName=one"},
		{gardenlet, "reads a bastion", "get operations.gardener.cloud/bastions garden-one/bastion", ""},
		{gardenlet, "sets a bastion's finalizer", "patch operations.gardener.cloud/bastions garden-one/bastion", ""},
		{gardenlet, "reports a bastion", "patch operations.gardener.cloud/bastions/status garden-one/bastion", ""},
		// pkg/gardenlet/backup.
		{gardenlet, "lists its buckets", "list garden/backupbuckets", "spec.seedName=one"},
		{gardenlet, "watches its buckets", "watch garden/backupbuckets", "spec.seedName=one"},
		{gardenlet, "reads a bucket", "get garden/backupbuckets /bucket-one", ""},
		{gardenlet, "sets a bucket's finalizer", "patch garden/backupbuckets /bucket-one", ""},
		{gardenlet, "reports a bucket", "patch garden/backupbuckets/status /bucket-one", ""},
		{gardenlet, "copies a bucket's credentials", "get core/secrets garden/backup-one", ""},
		{gardenlet, "looks for the access to a bucket", "get core/secrets garden/generated-bucket-bucket-one", ""},
		{gardenlet, "publishes the access to a bucket", "create core/secrets garden/", ""},
		{
			gardenlet, "is asked about the access that it publishes",
			"create core/secrets garden/generated-bucket-bucket-one", "",
		},
		{gardenlet, "changes the access to a bucket", "patch core/secrets garden/generated-bucket-bucket-one", ""},
		{gardenlet, "withdraws the access to a bucket", "delete core/secrets garden/generated-bucket-bucket-one", ""},
		{gardenlet, "lists its entries", "list garden/backupentries", "spec.seedName=one"},
		{gardenlet, "watches its entries", "watch garden/backupentries", "spec.seedName=one"},
		{gardenlet, "reads an entry", "get garden/backupentries garden-one/entry-one", ""},
		{gardenlet, "looks for a shoot's entry", "get garden/backupentries garden-one/shoot--p--s--uid-x", ""},
		{gardenlet, "makes a shoot's entry", "create garden/backupentries garden-one/", ""},
		{gardenlet, "deletes a shoot's entry", "delete garden/backupentries garden-one/shoot--p--s--uid-x", ""},
		{gardenlet, "reads the bucket of an entry", "get garden/backupbuckets /foreign-bucket-one", ""},
		{gardenlet, "sets an entry's finalizer", "patch garden/backupentries garden-one/entry-one", ""},
		{gardenlet, "reports an entry", "patch garden/backupentries/status garden-one/entry-one", ""},
		// pkg/gardenlet/managedseed.
		{
			gardenlet, "looks whether a shoot is to be a seed",
			"list seedmanagement.gardener.cloud/managedseeds garden/", "spec.shoot.name=base-one",
		},
		{
			gardenlet, "sets a managed seed's finalizer",
			"patch seedmanagement.gardener.cloud/managedseeds garden/child-one", "",
		},
		{
			gardenlet, "reports a managed seed",
			"patch seedmanagement.gardener.cloud/managedseeds/status garden/child-one", "",
		},
		{gardenlet, "looks for the managed seed's Seed", "get garden/seeds /child-one", ""},
		{gardenlet, "deletes the managed seed's Seed", "delete garden/seeds /child-one", ""},
		{gardenlet, "looks for a bootstrap token", "get core/secrets kube-system/" + childToken, ""},
		{gardenlet, "makes a bootstrap token", "create core/secrets kube-system/", ""},
		{
			gardenlet, "is asked about the bootstrap token that it makes",
			"create core/secrets kube-system/" + childToken, "",
		},
		{
			gardenlet, "is asked about the managed seed of the bootstrap token",
			"update seedmanagement.gardener.cloud/managedseeds garden/child-one", "",
		},
		{gardenlet, "takes a bootstrap token away", "delete core/secrets kube-system/" + childToken, ""},
		{
			gardenlet, "looks for a bootstrap account", "get core/serviceaccounts garden/gardenlet-bootstrap-child-one",
			"",
		},
		{gardenlet, "makes a bootstrap account", "create core/serviceaccounts garden/", ""},
		{
			gardenlet, "is asked about the bootstrap account that it makes",
			"create core/serviceaccounts garden/gardenlet-bootstrap-child-one", "",
		},
		{
			gardenlet, "requests a bootstrap account's token",
			"create core/serviceaccounts/token garden/gardenlet-bootstrap-child-one", "",
		},
		{
			gardenlet, "takes a bootstrap account away",
			"delete core/serviceaccounts garden/gardenlet-bootstrap-child-one", "",
		},
		// pkg/gardenlet/selfdeployment.
		{
			gardenlet, "lists the Gardenlet of its name", "list seedmanagement.gardener.cloud/gardenlets garden/one",
			"metadata.name=one",
		},
		{
			gardenlet, "watches the Gardenlet of its name", "watch seedmanagement.gardener.cloud/gardenlets garden/one",
			"metadata.name=one",
		},
		{gardenlet, "reports its Gardenlet", "patch seedmanagement.gardener.cloud/gardenlets/status garden/one", ""},
		{gardenlet, "pulls its chart with credentials", "get core/secrets garden/pull-one", ""},
		// extensions/federation/pkg/membership.
		{extension, "lists the shoots of a fleet's namespace", "list garden/shoots garden-one/", ""},
		{extension, "watches the shoots of a fleet's namespace", "watch garden/shoots garden-one/", ""},
		{
			extension, "asks for a member's credentials",
			"create garden/shoots/adminkubeconfig garden-one/member-on-another-seed", "",
		},
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
