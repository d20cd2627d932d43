package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
)

// TestSettingsAreFlags: the controllers know what the extension makes of a fleet's settings.
func TestSettingsAreFlags(t *testing.T) {
	config, err := fleet.ParseConfig([]byte(`
apiVersion: federation.extensions.trellis.garden/v1alpha1
kind: FleetConfig
skippedNamespaces: kube-.*
clusters: {probeInterval: 5s, surveyInterval: 20s, failureThreshold: 1m, successThreshold: 10s}
promiseLapse: 30m
failover: {after: 0s, evictionsPerSecond: "0.5", gracefulEvictionTimeout: 5m, failBack: Never, failBackWindow: 1h, failBacksPerHour: 10, failBacksPerClusterPerHour: 5}
deletionBudget: {percent: 100, atLeast: 0, window: 1m}
`))
	if err != nil {
		t.Fatal(err)
	}
	cmd := command()
	if err := cmd.ParseFlags(slices.Concat(fleet.EgressArguments(), fleet.Arguments(config))); err != nil {
		t.Error(err)
	}
	if got := durationFlag(t, cmd, "promise-lapse"); got != 30*time.Minute {
		t.Errorf("promises lapse after %s", got)
	}
	if got := durationFlag(t, command(), "promise-lapse"); got != 10*time.Minute {
		t.Errorf("by default, promises lapse after %s", got)
	}
}

// Neither a fleet nor a member is guessed at.
func TestMissingKubeconfigSaysWhatToDo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "")
	for cluster, arguments := range map[string][]string{"the fleet": {}, "the member": {"agent"}} {
		cmd := command()
		cmd.SetArgs(arguments)
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), "API of "+cluster) ||
			!strings.Contains(err.Error(), "--kubeconfig") {
			t.Errorf("%s: error %v", cluster, err)
		}
	}
}

func durationFlag(t *testing.T, cmd *cobra.Command, name string) time.Duration {
	t.Helper()
	got, err := cmd.Flags().GetDuration(name)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
