//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// attackPod is a pod of a fleet of which its owner says that it lies at an address of the seed.
const attackPod = `
apiVersion: v1
kind: Pod
metadata: {name: attack, namespace: default, labels: {test: attack}}
spec:
  containers: [{name: c, image: c}]
`

// pathIntoTheSeed has a pod of the fleet lie where resource-manager does in the seed, and returns what leads to that
// one's health.
func (l *landscape) pathIntoTheSeed(t *testing.T, fleet kubectl) string {
	t.Helper()
	t.Cleanup(func() {
		_, _ = fleet.try(context.Background(), "", "delete", "pod", "attack", "-n", "default", "--ignore-not-found",
			"--now")
	})
	address := strings.TrimSpace(l.runtimeKubectl().run(t,
		"get", "pods", "-n", "garden", "-l", "app=resource-manager", "-o", "jsonpath={.items[0].status.podIP}"))
	fleet.apply(t, attackPod)
	fleet.run(t, "patch", "pod", "attack", "-n", "default", "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, address, address))
	return "/api/v1/namespaces/default/pods/attack:8081/proxy/healthz"
}

// The owner of a fleet has its API server connect to a pod of the seed, and by URL to its node. Members are reached
// through the fleet even so.
func TestAttackAddressesOfTheSeedFromAFleet(t *testing.T) {
	l := open(t)
	fleet := l.fleet(t)
	t.Cleanup(func() {
		_, _ = fleet.try(context.Background(), "", "delete", "validatingwebhookconfiguration", "attack",
			"--ignore-not-found")
	})
	said, err := fleet.try(t.Context(), "", "get", "--raw", l.pathIntoTheSeed(t, fleet))
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("resource-manager's health: got %q, %v, want 403 of the egress proxy", said, err)
	}

	fleet.apply(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: attack}
webhooks:
- name: attack.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  objectSelector: {matchLabels: {attack: webhook}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  clientConfig: {url: "https://172.18.0.2:6443/"}
`)
	const asked = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asked, namespace: default, labels: {attack: " +
		"webhook}}\n"
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		if _, err := fleet.try(ctx, asked, "create", "--dry-run=server", "-f", "-"); err == nil ||
			!strings.Contains(err.Error(), "403") {
			return fmt.Errorf("the seed's API server as a webhook: got %v, want 403 of the egress proxy", err)
		}
		return nil
	})
	fleet.eventually(t, 30*time.Second, contains("gitVersion"), "get", "--raw",
		"/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/version")
}
