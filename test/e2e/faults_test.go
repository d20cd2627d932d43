//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever is killed starts again, and what the API had accepted is still there.
func faultsOfAShoot(t *testing.T) {
	l := open(t)
	l.waitForShoot(t, "member1", "", 5*time.Minute)
	m1 := l.shoot(t, "member1")
	const namespace = "shoot--demo--member1"
	pod := `
apiVersion: v1
kind: Pod
metadata: {name: witness, namespace: default}
spec: {containers: [{name: nginx, image: nginx}]}
`
	t.Cleanup(func() {
		_, _ = m1.try(context.Background(), "", "delete", "pod/witness", "configmap", "-l", "test=faults",
			"--ignore-not-found", "--now")
		_, _ = m1.try(context.Background(), "", "delete", "configmap", "-l", "test=faults")
	})
	m1.apply(t, pod)
	m1.run(t, "wait", "--for=condition=Ready", "pod/witness", "--timeout=90s")
	machinePod := strings.TrimSpace(l.runtimeKubectl().run(t, "-n", "infra-"+namespace, "get", "pods", "-o", "name"))
	onMachine := func(pattern string) func() {
		return func() {
			l.runtimeKubectl().run(t, "-n", "infra-"+namespace, "exec", machinePod, "--", "pkill", "-9", "-f", pattern)
		}
	}
	inSeed := func(selector, program string) func() {
		return func() { l.killProcess(t, namespace, selector, program) }
	}
	var accepted []string
	for _, fault := range []struct {
		name string
		kill func()
	}{
		{"etcd-main", inSeed("statefulset.kubernetes.io/pod-name=etcd-main-0", "etcd-steward")},
		{"kube-apiserver", inSeed("app=kubernetes,role=apiserver", "kubernetes")},
		{"vpn-seed-server", inSeed("app=vpn-seed-server", "vpn")},
		{"vpn-shoot", onMachine("^/usr/local/bin/vpn shoot-client")},
		{"kubelet", onMachine("/kubelet ")},
	} {
		t.Run(fault.name, func(t *testing.T) {
			name := "before-" + fault.name
			m1.run(t, "create", "configmap", name)
			m1.run(t, "label", "configmap", name, "test=faults")
			accepted = append(accepted, name)
			fault.kill()
			m1.eventually(t, 2*time.Minute, contains(accepted...), "get", "configmaps", "-o", "name")
			m1.eventually(t, 2*time.Minute, contains("nginx"), "exec", "witness", "--", "cat", "/etc/nginx/nginx.conf")
			m1.eventually(t, 2*time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
		})
	}
}

// The federation controller is killed while it brings a Deployment to its members.
func faultOfFederation(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	template := strings.ReplaceAll(input(t, l, "001-karmada-nginx-3docs.yaml"), "nginx-propagation", "survivor")
	template = strings.ReplaceAll(template, "name: nginx", "name: survivor")
	t.Cleanup(func() { _, _ = fleet.try(context.Background(), template, "delete", "--ignore-not-found", "-f", "-") })
	fleet.apply(t, template)
	l.killProcess(t, "shoot--demo--fleet", "role=federation", "federation")
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, 2*time.Minute, equals("1"), "get", "deploy", "survivor", "-o", "jsonpath={.spec.replicas}")
	}
	if _, err := fleet.try(t.Context(), template, "delete", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	l.killProcess(t, "shoot--demo--fleet", "role=federation", "federation")
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, 2*time.Minute, equals(""), "get", "deploy", "survivor", "--ignore-not-found", "-o", "name")
	}
}

// A shoot that is deleted half-way through its creation leaves nothing behind.
func deleteHalfCreatedShoot(t *testing.T) {
	l := open(t)
	l.createShoot(t, "half")
	l.waitForProgress(t, "half", 40)
	l.deleteShoot(t, "half")
}

// createShoot makes a shoot like member1 with another name and another network of machines.
func (l *landscape) createShoot(t *testing.T, name string) {
	t.Helper()
	manifest := input(t, l, "shoot-member1.yaml")
	manifest = strings.Replace(manifest, "name: member1", "name: "+name, 1)
	manifest = strings.Replace(manifest, "nodes: 10.180.1.0/24", "nodes: 10.180.9.0/24", 1)
	// It stays out of the fleet, whose tests count members.
	manifest = strings.Replace(manifest, "  labels:\n", "  labels:\n    federation.trellis.garden/join: \"false\"\n", 1)
	l.gardenKubectl().apply(t, manifest)
}

// createShootDespiteAKill makes such a shoot while gardenlet is killed, and waits until it is there, with a node.
func (l *landscape) createShootDespiteAKill(t *testing.T, name string) kubectl {
	t.Helper()
	l.createShoot(t, name)
	l.waitForProgress(t, name, 30)
	l.killGardenlet(t)
	l.waitForShoot(t, name, "Create", 6*time.Minute)
	shoot := l.shoot(t, name)
	shoot.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	return shoot
}

func (l *landscape) waitForProgress(t *testing.T, name string, progress int) {
	t.Helper()
	l.gardenKubectl().eventually(t, 3*time.Minute, func(out string) error {
		var reached int
		if err := json.Unmarshal([]byte(out), &reached); err != nil || reached < progress {
			return fmt.Errorf("progress %q, want %d", out, progress)
		}
		return nil
	}, "-n", "garden-demo", "get", "shoot", name, "-o", "jsonpath={.status.lastOperation.progress}")
}

// deleteShoot deletes a shoot and checks that neither the seed nor the infrastructure keeps anything of it.
func (l *landscape) deleteShoot(t *testing.T, name string) {
	t.Helper()
	garden, seed := l.gardenKubectl(), l.runtimeKubectl()
	if _, err := garden.try(t.Context(), "", "-n", "garden-demo", "delete", "shoot", name,
		"--wait=false"); err == nil || !strings.Contains(err.Error(), "confirmation.gardener.cloud/deletion") {
		t.Errorf("a deletion without confirmation must be refused with the annotation's name, got %v", err)
	}
	garden.run(t, "-n", "garden-demo", "annotate", "shoot", name, "confirmation.gardener.cloud/deletion=true")
	garden.run(t, "-n", "garden-demo", "delete", "shoot", name, "--wait=false")
	garden.eventually(t, 5*time.Minute, equals(""), "-n", "garden-demo", "get", "shoot", name, "--ignore-not-found",
		"-o", "jsonpath={.status.lastOperation.progress} {.status.lastOperation.description} {.status.lastErrors}")
	technicalID := "shoot--demo--" + name
	for _, resource := range []string{"namespaces", "clusters.extensions.gardener.cloud", "persistentvolumes"} {
		seed.eventually(t, time.Minute, func(out string) error {
			if strings.Contains(out, technicalID) {
				return fmt.Errorf("left behind: %s", out)
			}
			return nil
		}, "get", resource, "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.claimRef.namespace}{"\n"}{end}`)
	}
	if out := garden.run(t, "-n", "garden-demo", "get", "configmaps,internalsecrets", "-o",
		"name"); strings.Contains(out, "/"+name+".") {
		t.Errorf("left behind in the garden: %s", out)
	}
}
