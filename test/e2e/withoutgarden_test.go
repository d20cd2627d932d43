//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// lostGarden is the heading of docs/operating.md whose commands lose the volume of the garden's etcd.
const lostGarden = "### Drill: the garden's etcd is lost"

// It runs alone, and after what needs a garden: for a minute there is none.
func TestGardenLosesItsEtcd(t *testing.T) { whenChanged(gardenBackups, gardenLosesItsEtcd)(t) }

// A garden that has lost its etcd has what it had before. Clusters serve on meanwhile, nobody takes the garden for
// empty, and its controllers go on with what is there, not with what they remember.
func gardenLosesItsEtcd(t *testing.T) {
	l := open(t)
	for _, name := range []string{"member1", "member2", "fleet"} {
		l.waitForShoot(t, name, "", 5*time.Minute)
	}
	l.createProject(t, "kept")
	// Without backups nothing is lost here: what follows would be the end of the landscape.
	l.waitForBackup(t, "garden")
	volume, inGarden, inSeed := l.volumeOfEtcd(t, "garden"), l.inGarden(t), l.inSeed(t)
	api := probeAPI(t, l.shoot(t, "member1"))
	l.drill(t, lostGarden, "GARDEN="+l.garden())
	restored := time.Now()
	if now := l.volumeOfEtcd(t, "garden"); now == volume {
		t.Fatalf("etcd has the volume %s still", volume)
	}
	l.waitForGardenlet(t, restored)
	api.stop().allAnswered(t, "kube-apiserver of member1, while the garden has lost its etcd")
	l.gardenKubectl().eventually(t, 2*time.Minute, equals("Ready"), phaseOf("kept")...)
	l.controllersOfTheGardenGoOn(t)
	allThere(t, "the garden", inGarden, l.inGarden(t))
	allThere(t, "the seed", inSeed, l.inSeed(t))
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		// The status has an error when anything of the landscape is not healthy.
		out, _ := l.command(ctx, "", "landscape", "status", "--name", l.name)
		return contains("all changes are saved; etcd-main found no data, although there are backups")(out)
	})
}

// createProject makes a project, which garden-controller-manager gets ready, and in whose namespace
// kube-controller-manager makes a service account. It goes with the test.
func (l *landscape) createProject(t *testing.T, name string) {
	t.Helper()
	garden := l.gardenKubectl()
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = garden.try(ctx, "", "annotate", "project", name, "confirmation.gardener.cloud/deletion=true")
		if _, err := garden.try(ctx, "", "delete", "project", name, "--ignore-not-found", "--timeout=3m"); err != nil {
			t.Errorf("removing project %s: %v", name, err)
		}
	})
	manifest := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: %s}, "+
		"spec: {namespace: garden-%s}}", name, name)
	garden.apply(t, manifest)
	garden.eventually(t, 2*time.Minute, equals("Ready"), phaseOf(name)...)
	garden.eventually(t, 2*time.Minute, contains("default"), "-n", "garden-"+name, "get", "serviceaccounts", "-o",
		"name")
}

func phaseOf(project string) []string {
	return []string{"get", "project", project, "-o", "jsonpath={.status.phase}"}
}

// waitForGardenlet waits until the gardenlet of the landscape's seed has told the garden that it is there after a time,
// and the garden says so.
func (l *landscape) waitForGardenlet(t *testing.T, after time.Time) {
	t.Helper()
	garden := l.gardenKubectl()
	garden.eventually(t, 5*time.Minute, func(out string) error {
		renewed, err := time.Parse(time.RFC3339, strings.TrimSpace(out))
		if err == nil && !renewed.After(after) {
			err = fmt.Errorf("it was renewed at %s, want a time after %s", renewed, after)
		}
		return err
	}, "-n", "gardener-system-seed-lease", "get", "lease", "local", "-o", "jsonpath={.spec.renewTime}")
	garden.eventually(t, 5*time.Minute, equals("True"), "get", "seed", "local", "-o", conditionStatus("GardenletReady"))
}

// controllersOfTheGardenGoOn has every one of them do something about an object of after the loss, which one that still
// watches what was before would never hear of; and lists come from caches of servers.
func (l *landscape) controllersOfTheGardenGoOn(t *testing.T) {
	t.Helper()
	garden := l.gardenKubectl()
	// garden-controller-manager, kube-controller-manager.
	l.createProject(t, "later")
	for path, want := range map[string]string{
		"/apis/core.gardener.cloud/v1beta1/projects": `"name":"later"`, "/api/v1/namespaces": `"name":"garden-later"`,
	} {
		garden.eventually(t, 2*time.Minute, contains(want), "get", "--raw", path+"?resourceVersion=0")
	}
	l.schedulerGoesOn(t)
	// gardenlet.
	l.operate(t, "member1", "reconcile")
	l.waitForShoot(t, "member1", "Reconcile", 5*time.Minute)
}

// schedulerGoesOn has garden-scheduler tell of a shoot that no seed fits.
func (l *landscape) schedulerGoesOn(t *testing.T) {
	t.Helper()
	garden := l.gardenKubectl()
	manifest := strings.NewReplacer("name: member1", "name: nowhere", "nodes: 10.180.1.0/24", "nodes: 10.180.9.0/24",
		"  labels:\n", "  labels:\n    federation.trellis.garden/join: \"false\"\n",
		"  region: local\n", "  region: local\n  seedSelector: {matchLabels: {example.com/is: nowhere}}\n",
	).Replace(input(t, l, "shoot-member1.yaml"))
	t.Cleanup(func() {
		ctx, ofShoot := context.Background(), []string{"-n", "garden-demo"}
		_, _ = garden.try(ctx, "", append(ofShoot, "annotate", "shoot", "nowhere",
			"confirmation.gardener.cloud/deletion=true")...)
		if _, err := garden.try(ctx, "", append(ofShoot, "delete", "shoot", "nowhere", "--ignore-not-found",
			"--timeout=2m")...); err != nil {
			t.Errorf("removing a shoot that has no seed: %v", err)
		}
	})
	garden.apply(t, manifest)
	garden.eventually(t, 2*time.Minute, equals("Pending"), "-n", "garden-demo", "get", "shoot", "nowhere", "-o",
		"jsonpath={.status.lastOperation.state}")
}

// identities lists objects, one a line: kind, name, UID, and whether they are being deleted.
func (k kubectl) identities(t *testing.T, arguments ...string) []string {
	t.Helper()
	const format = "go-template={{range .items}}{{.kind}} {{.metadata.namespace}}/{{.metadata.name}} " +
		"{{.metadata.uid}} deleted: {{.metadata.deletionTimestamp}}\n{{end}}"
	return strings.Split(strings.TrimSpace(k.run(t, append(arguments, "-o", format)...)), "\n")
}

// inGarden are objects of the garden on which others act when they are gone.
func (l *landscape) inGarden(t *testing.T) []string {
	t.Helper()
	const group = ".core.gardener.cloud"
	return l.gardenKubectl().identities(t, "get", "-A", strings.Join([]string{
		"namespaces", "projects" + group, "seeds" + group, "shoots" + group, "shootstates" + group,
		"backupbuckets" + group, "backupentries" + group, "controllerinstallations" + group,
	}, ","))
}

// inSeed are objects of the seed that nobody may touch while there is no garden: what stands for shoots, and the
// control plane and the machines of member1.
func (l *landscape) inSeed(t *testing.T) []string {
	t.Helper()
	const extensions = ".extensions.gardener.cloud"
	seed := l.runtimeKubectl()
	return slices.Concat(
		seed.identities(t, "get", "-A", strings.Join([]string{
			"namespaces", "clusters" + extensions, "infrastructures" + extensions, "controlplanes" + extensions,
			"workers" + extensions, "dnsrecords" + extensions, "backupentries" + extensions,
			"backupbuckets" + extensions,
		}, ",")),
		seed.identities(t, "-n", "shoot--demo--member1", "get",
			"deployments,statefulsets,persistentvolumeclaims,pods,machines.machine.sapcloud.io"),
		seed.identities(t, "-n", "infra-shoot--demo--member1", "get", "pods"),
	)
}

// allThere checks that what was there is there, and is the same.
func allThere(t *testing.T, where string, before, now []string) {
	t.Helper()
	for _, object := range before {
		if !slices.Contains(now, object) {
			t.Errorf("%s has no longer what it had before its garden was lost: %s", where, object)
		}
	}
}
