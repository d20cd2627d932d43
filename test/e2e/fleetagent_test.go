//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"
)

// fingerprintOf finds the fingerprint of its key in an agent's log.
var fingerprintOf = regexp.MustCompile(`fingerprint="([0-9a-f]+)"`)

// joinsAndLeaves makes a shoot that stays out of the fleet by itself a member that the fleet talks to. The fleet's
// controllers are killed while it joins and while it leaves; it joins again when much is known of it.
func (l *landscape) joinsAndLeaves(t *testing.T, name string, fleet, member kubectl) {
	t.Helper()
	address := l.gardenKubectl().run(t, "-n", "garden-demo", "get", "shoot", name, "-o",
		`jsonpath={.status.advertisedAddresses[?(@.name=="external")].url}`)
	join := []string{"join", name, "--kubeconfig", member.kubeconfig, "--endpoint", address, "--wait"}
	l.fleetCommand(t, "", append(join, "0")...)
	l.killFederation(t)
	fleet.eventually(t, 2*time.Minute, equals("True"), "get", "cluster", name, "-o", conditionStatus("Ready"))
	fleet.eventually(t, time.Minute, equals("1"), "get", "cluster", name, "-o",
		"jsonpath={.status.nodeSummary.readyNum}")
	l.fleetCommand(t, "", append(join, "1m", "--region", "north")...)
	fleet.eventually(t, time.Second, equals("north"), "get", "cluster", name, "-o", "jsonpath={.spec.region}")
	l.fleetCommand(t, "", "unjoin", name, "--wait", "0")
	l.killFederation(t)
	fleet.eventually(t, 2*time.Minute, equals(""), "get", "cluster", name, "--ignore-not-found", "-o", "name")
}

// A cluster that the fleet does not talk to becomes a member by an agent in it, which the fleet accepts by its key,
// gets what policies send it, and is left without a trace. Before, it is one that the fleet talks to, and left without
// a trace, too. The cluster is a shoot that is created although gardenlet is killed meanwhile. In the end its control
// plane becomes highly available, and goes back to a point in time; when it is deleted, nothing of it is left.
func fleetAgent(t *testing.T) {
	l := open(t)
	fleet := l.fleet(t)
	edge := l.createShootDespiteAKill(t, "edge")
	const deployed = "agent-deployed"
	manifest := fleetNginx(deployed, 1, "  placement: {clusterAffinity: {clusterNames: [edge]}}\n")
	t.Cleanup(func() {
		_, _ = fleet.try(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-")
		_, _ = l.tryFleetCommand(context.Background(), "", "unjoin", "edge")
	})
	before := edge.run(t, "get", "namespaces,clusterroles,clusterrolebindings", "-o", "name")

	l.joinsAndLeaves(t, "edge", fleet, edge)
	edge.eventually(t, time.Minute, equals(strings.TrimSpace(before)), "get",
		"namespaces,clusterroles,clusterrolebindings", "-o", "name")

	image := l.runtimeKubectl().run(t, "-n", "shoot--demo--fleet", "get", "deployment", "federation", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}")
	agent := l.fleetCommand(t, "", "register", "edge", "--image", image)
	edge.apply(t, agent)
	var key string
	edge.eventually(t, 2*time.Minute, func(out string) error {
		if found := fingerprintOf.FindStringSubmatch(out); found != nil {
			key = found[1]
			return nil
		}
		return contains("fingerprint=")(out)
	}, "logs", "-n", namespaceOfAgent(agent), "deployment/agent")
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := l.tryFleetCommand(ctx, "", "accept", "edge", "--key", key)
		return err
	})
	l.killFederation(t)
	fleet.eventually(t, 2*time.Minute, equals("True"), "get", "cluster", "edge", "-o", conditionStatus("Ready"))

	fleet.apply(t, manifest)
	edge.eventually(t, 2*time.Minute, equals("1"), "get", "deployment", deployed, "-o",
		"jsonpath={.status.readyReplicas}")
	fleet.eventually(t, time.Minute, equals("1"), "get", "deployment", deployed, "-o",
		"jsonpath={.status.readyReplicas}")
	l.seesThroughTheTunnel(t, deployed)
	if _, err := fleet.try(t.Context(), manifest, "delete", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	edge.eventually(t, time.Minute, equals(""), "get", "deployment", deployed, "--ignore-not-found", "-o", "name")

	l.fleetCommand(t, "", "unjoin", "edge")
	edge.eventually(t, 2*time.Minute, equals(strings.TrimSpace(before)), "get",
		"namespaces,clusterroles,clusterrolebindings", "-o", "name")
	// The shoot is there anyway, and so are the volumes of three members when it is deleted.
	t.Run("GrowsToThree", whenChanged(controlPlane, func(t *testing.T) {
		l.growsToThree(t, "edge", edge)
	}))
	l.deleteShoot(t, "edge")
}

// seesThroughTheTunnel asks for what runs in the member with an agent, by the tunnel that the agent has opened. The
// fleet's controllers were killed since it did so first.
func (l *landscape) seesThroughTheTunnel(t *testing.T, deployed string) {
	t.Helper()
	choice := []string{"--garden", l.name, "--project", "demo", "--shoot", "fleet", "--members", "edge"}
	selected := append(choice, "--selector", "app="+deployed)
	eventually(t, time.Minute, func(ctx context.Context) error {
		out, err := l.command(ctx, "", "trellisctl", append([]string{"get", "pods"}, selected...)...)
		if err == nil {
			err = contains(deployed)(out)
		}
		return err
	})
	out, err := l.command(t.Context(), "", "trellisctl",
		append(append([]string{"exec"}, selected...), "--", "cat", "/etc/nginx/nginx.conf")...)
	if err != nil || !strings.Contains(out, "edge "+deployed) {
		t.Errorf("got %s, %v", out, err)
	}
}

// namespaceOfAgent finds the namespace in the manifest of an agent.
func namespaceOfAgent(manifest string) string {
	_, rest, _ := strings.Cut(manifest, "kind: Namespace")
	_, rest, _ = strings.Cut(rest, "name: ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}
