//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"
)

// explainFailure has a test that fails log how a shoot of project demo is: what it waits for, who says what about its machines,
// and what both ends of its tunnel say.
func (l *landscape) explainFailure(t *testing.T, name string) {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		ask := func(of kubectl, arguments ...string) {
			out, err := of.try(ctx, "", arguments...)
			t.Logf("kubectl %v: %v\n%s", arguments, err, out)
		}
		garden, seed, namespace := l.gardenKubectl(), l.runtimeKubectl(), "shoot--demo--"+name
		ask(garden, "-n", "garden-demo", "get", "shoot", name, "-o", "jsonpath={.status.lastOperation} {.status.lastErrors} {.status.conditions}")
		ask(seed, "-n", "garden", "logs", "deploy/gardenlet", "--tail=15")
		ask(seed, "-n", "garden", "logs", "deploy/gateway", "--tail=8")
		ask(seed, "-n", namespace, "get", "workers,machines,managedresources")
		ask(seed, "-n", namespace, "logs", "deploy/vpn-seed-server", "--tail=8")
		ask(seed, "-n", namespace, "logs", "deploy/machine-controller-manager", "--all-containers", "--tail=8")
		shoot, err := l.tryShoot(ctx, folder, "demo", name)
		if err != nil {
			t.Logf("kubeconfig of %s: %v", name, err)
			return
		}
		ask(shoot, "get", "nodes", "-o", "wide")
		ask(shoot, "get", "pods", "-A", "-o", "wide")
		ask(shoot, "-n", "kube-system", "logs", "deploy/vpn-shoot", "--tail=8")
	})
}
