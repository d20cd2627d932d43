//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A Deployment on the fleet is spread over the members, with one override, put back when changed, and removed with
// its policy and template.
func fleetSpreadsNginx(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	fleet.eventually(t, 2*time.Minute, contains("member1", "member2"), "get", "clusters", "-o", "name")

	manifest := input(t, l, "001-karmada-nginx-3docs.yaml")
	t.Cleanup(func() { _, _ = fleet.try(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-") })
	fleet.apply(t, manifest)
	fleet.eventually(t, 3*time.Minute, equals("2/2"), "get", "deploy", "nginx", "-o",
		"jsonpath={.status.readyReplicas}/{.spec.replicas}")
	m1.eventually(t, time.Minute, equals("1 skoala-stage"), "get", "deploy", "nginx", "-o",
		"jsonpath={.spec.replicas} {.metadata.annotations.env}")
	m2.eventually(t, time.Minute, equals("1"), "get", "deploy", "nginx", "-o",
		"jsonpath={.spec.replicas} {.metadata.annotations.env}")

	t.Run("what is changed in a member is put back", func(t *testing.T) {
		m1.run(t, "scale", "deploy", "nginx", "--replicas=3")
		m1.eventually(t, time.Minute, equals("1"), "get", "deploy", "nginx", "-o", "jsonpath={.spec.replicas}")
		m2.run(t, "delete", "deploy", "nginx")
		m2.eventually(t, time.Minute, equals("1"), "get", "deploy", "nginx", "-o", "jsonpath={.spec.replicas}")
	})
	t.Run("what is removed from the fleet is removed from the members", func(t *testing.T) {
		if _, err := fleet.try(t.Context(), manifest, "delete", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		for _, member := range []kubectl{m1, m2} {
			member.eventually(t, time.Minute, equals(""), "get", "deploy", "nginx", "--ignore-not-found", "-o", "name")
		}
	})
}

// Overriders of the older form change the image and the annotations for the member that their labels select.
func fleetLegacyOverride(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	manifest := input(t, l, "000-karmada-nginx-3docs.yaml")
	const replicasImageAnnotation = "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} " +
		"{.metadata.annotations.foo}"
	l.removeAfterwards(t, fleet, manifest, "deploy/nginx", m1, m2)
	fleet.apply(t, manifest)
	m1.eventually(t, time.Minute, equals("1 dc-1.registry.io/nginx:1.17.0-alpine bar"), "get", "deploy", "nginx", "-o",
		replicasImageAnnotation)
	m2.eventually(t, time.Minute, equals("1 nginx"), "get", "deploy", "nginx", "-o", replicasImageAnnotation)
}

// A policy that says nothing about replicas gives every member all of them.
func fleetDuplicates(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	deployment, _, _ := strings.Cut(input(t, l, "000-karmada-nginx-3docs.yaml"), "\n---\n")
	manifest := deployment + "\n---\n" + input(t, l, "003-karmada-cool-policy.yaml")
	l.removeAfterwards(t, fleet, manifest, "deploy/nginx", m1, m2)
	fleet.apply(t, manifest)
	for _, member := range []kubectl{m1, m2} {
		member.eventually(t, time.Minute, equals("2"), "get", "deploy", "nginx", "-o", "jsonpath={.spec.replicas}")
	}
	fleet.eventually(t, 2*time.Minute, equals("4"), "get", "deploy", "nginx", "-o", "jsonpath={.status.readyReplicas}")
}

// An override whose path the object lacks is shown in the binding with the field and the path; the other member gets
// the object as it is. The policy names the override among its dependent ones: else the member may get the object
// before the override is known, and an override that fails later takes nothing away.
func fleetOverrideOfMissingPath(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	manifest := input(t, l, "000-karmada-nginx-3docs.yaml")
	manifest = strings.Replace(manifest, "path: /spec/template/spec/containers/0/image",
		"path: /spec/template/spec/containers/7/image", 1)
	manifest = strings.Replace(manifest, "  resourceSelectors:",
		"  dependentOverrides: [example-override]\n  resourceSelectors:", 1)
	l.removeAfterwards(t, fleet, manifest, "deploy/nginx", m1, m2)
	fleet.apply(t, manifest)
	fleet.eventually(t, time.Minute, contains("False", "member1", "overriders.plaintext[0].path", "containers/7"),
		"get", "resourcebinding", "nginx-deployment", "-o",
		`jsonpath={range .status.conditions[?(@.type=="FullyApplied")]}{.status} {.message}{end}`)
	m2.eventually(t, time.Minute, equals("1 nginx"), "get", "deploy", "nginx", "-o",
		"jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}")
	m1.eventually(t, time.Minute, equals(""), "get", "deploy", "nginx", "--ignore-not-found", "-o", "name")
}

// removeAfterwards removes what a test applied to the fleet and waits until the members are rid of it, so that the next
// test may use the same names.
func (l *landscape) removeAfterwards(t *testing.T, fleet kubectl, manifest, object string, members ...kubectl) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := fleet.try(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Errorf("removing what the test applied: %v", err)
		}
		for _, member := range members {
			if _, err := member.try(context.Background(), "", "wait", "--for=delete", object,
				"--timeout=60s"); err != nil {
				t.Errorf("removing %s: %v", object, err)
			}
		}
	})
}

// A policy that names a cluster that does not exist says so where the user looks.
func fleetUnknownCluster(t *testing.T) {
	l := open(t)
	fleet := l.fleet(t)
	manifest := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lost, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: lost}}
  template:
    metadata: {labels: {app: lost}}
    spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: lost, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: lost}]
  placement: {clusterAffinity: {clusterNames: [atlantis]}}
`
	t.Cleanup(func() { _, _ = fleet.try(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-") })
	fleet.apply(t, manifest)
	fleet.eventually(t, time.Minute, func(out string) error {
		return contains("atlantis")(strings.TrimSpace(out))
	}, "get", "resourcebinding", "lost-deployment", "-o",
		`jsonpath={.status.conditions[?(@.type=="Scheduled")].message}`)
}
