//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// guestManifest is a shoot that is to live on the managed seed. It stays out of the fleet, whose tests count members.
const guestManifest = `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata:
  name: guest
  namespace: garden-demo
  labels:
    federation.trellis.garden/join: "false"
spec:
  seedName: example
  cloudProfile: {kind: CloudProfile, name: local}
  region: local
  kubernetes: {version: 1.36.3}
  provider: {type: local}
`

// leftInGarden are the objects of the garden that a managed seed and its shoot bring with them.
var leftInGarden = []string{"get", "-A", "-o", "name",
	"seeds,shoots,managedseeds,credentialsbindings,controllerinstallations,namespaces," +
		"configmaps,secrets,internalsecrets,leases,serviceaccounts,clusterrolebindings"}

// leftInShoot are the objects of a shoot that a gardenlet in it makes. Custom resource definitions stay.
var leftInShoot = []string{"get", "-o", "name",
	"namespaces,persistentvolumes,clusterroles,clusterrolebindings,priorityclasses," +
		"validatingwebhookconfigurations,mutatingwebhookconfigurations"}

// managedSeedStart is where the ManagedSeed begins in the example.
const managedSeedStart = "apiVersion: seedmanagement.gardener.cloud/v1alpha1\n"

// A shoot becomes a seed, although the gardenlet that makes it one is killed meanwhile, and hosts a shoot. Then it
// becomes a mere shoot again, and goes: nothing is left of any of it.
func becomesManagedSeed(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	manifest := input(t, l, "managedseed.yaml")
	before := garden.run(t, leftInGarden...)
	t.Cleanup(func() { l.removeManagedSeed(manifest) })

	shoot, managedSeed, _ := strings.Cut(manifest, managedSeedStart)
	garden.apply(t, shoot)
	l.waitForShootIn(t, "garden", "example", "Create", 8*time.Minute)
	inSeed := l.shootOf(t, "garden", "example")
	inShootBefore := strings.TrimSpace(inSeed.run(t, leftInShoot...))
	garden.apply(t, managedSeedStart+managedSeed)
	garden.eventually(t, time.Minute, equals("False"), managedSeedCondition("SeedRegistered")...)
	l.killGardenlet(t)
	garden.eventually(t, 5*time.Minute, equals("True"), managedSeedCondition("SeedRegistered")...)
	garden.eventually(t, time.Minute, equals("True"), managedSeedCondition("ShootReconciled")...)
	for _, condition := range []string{"GardenletReady", "SeedSystemComponentsHealthy", "ExtensionsReady"} {
		garden.eventually(t, 3*time.Minute, equals("True"), "get", "seed", "example", "-o", conditionStatus(condition))
	}

	garden.apply(t, guestManifest)
	l.waitForShoot(t, "guest", "Create", 8*time.Minute)
	garden.eventually(t, 2*time.Minute, equals("True"), "-n", "garden-demo", "get", "shoot", "guest", "-o",
		conditionStatus("APIServerAvailable"))
	inSeed.eventually(t, time.Minute, contains("kube-apiserver"), "-n", "shoot--demo--guest", "get", "deployments",
		"-o", "name")

	inSeed.eventually(t, 2*time.Minute, equals("2"), "-n", "garden", "get", "deployment", "gateway", "-o",
		"jsonpath={.status.readyReplicas}")
	t.Run("the shoot stays as long as it is a seed", func(t *testing.T) {
		garden.run(t, "-n", "garden", "annotate", "shoot", "example", "confirmation.gardener.cloud/deletion=true")
		_, err := garden.try(t.Context(), "", "-n", "garden", "delete", "shoot", "example", "--wait=false")
		if err == nil || !strings.Contains(err.Error(), "delete managedseed") {
			t.Errorf("want an error that names the managed seed, got %v", err)
		}
	})
	t.Run("the seed stays as long as it hosts a shoot", func(t *testing.T) {
		_, err := garden.try(t.Context(), "", "-n", "garden", "delete", "managedseed", "example", "--wait=false")
		if err == nil || !strings.Contains(err.Error(), "still used by shoot garden-demo/guest") {
			t.Errorf("want an error that names the shoot, got %v", err)
		}
	})
	garden.run(t, "-n", "garden-demo", "annotate", "shoot", "guest", "confirmation.gardener.cloud/deletion=true")
	garden.run(t, "-n", "garden-demo", "delete", "shoot", "guest", "--wait=false")
	garden.eventually(t, 5*time.Minute, equals(""), "-n", "garden-demo", "get", "shoot", "guest", "--ignore-not-found",
		"-o", "jsonpath={.status.lastOperation}")
	garden.run(t, "-n", "garden", "delete", "managedseed", "example", "--wait=false")
	garden.eventually(t, 5*time.Minute, equals(""), "-n", "garden", "get", "managedseed", "example",
		"--ignore-not-found", "-o", "jsonpath={.status.conditions}")
	inSeed.eventually(t, time.Minute, equals(inShootBefore), leftInShoot...)

	garden.run(t, "-n", "garden", "delete", "shoot", "example", "--wait=false")
	garden.eventually(t, 8*time.Minute, equals(""), "-n", "garden", "get", "shoot", "example", "--ignore-not-found",
		"-o", "jsonpath={.status.lastOperation} {.status.lastErrors}")
	garden.run(t, "-n", "garden", "delete", "credentialsbinding", "local")
	garden.eventually(t, time.Minute, equals(strings.TrimSpace(before)), leftInGarden...)
}

func managedSeedCondition(condition string) []string {
	return []string{"-n", "garden", "get", "managedseed", "example", "-o", conditionStatus(condition)}
}

// removeManagedSeed asks for the end of all that a test that failed has left.
func (l *landscape) removeManagedSeed(manifest string) {
	ctx, garden := context.Background(), l.gardenKubectl()
	for _, shoot := range [][]string{{"garden-demo", "guest"}, {"garden", "example"}} {
		_, _ = garden.try(ctx, "", "-n", shoot[0], "annotate", "shoot", shoot[1],
			"confirmation.gardener.cloud/deletion=true")
	}
	_, _ = garden.try(ctx, guestManifest, "delete", "--ignore-not-found", "--timeout=5m", "-f", "-")
	_, _ = garden.try(ctx, "", "-n", "garden", "delete", "managedseed", "example", "--ignore-not-found", "--timeout=5m")
	_, _ = garden.try(ctx, manifest, "delete", "--ignore-not-found", "--timeout=8m", "-f", "-")
}
