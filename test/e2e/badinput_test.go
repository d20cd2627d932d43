//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Each mistake is refused with the path of the field and what would be right.
func TestBadInputIsRefused(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	good := input(t, l, "shoot-member1.yaml")
	for name, c := range map[string]struct {
		replace, by string
		want        []string
	}{
		"unknown cloud profile": {"name: local", "name: nosuch", []string{"spec.cloudProfile", "nosuch"}},
		"version the profile lacks": {
			"version: 1.36.3", "version: 1.12.0", []string{"spec.kubernetes.version", "1.36.3"},
		},
		"unknown machine type": {
			"type: small", "type: gigantic", []string{"spec.provider.workers[0].machine.type", "small"},
		},
		"unknown zone": {"zones: [a]", "zones: [mars]", []string{"spec.provider.workers[0].zones"}},
		"overlapping ranges": {
			"services: 10.4.0.0/16", "services: 10.3.128.0/17", []string{"spec.networking", "10.3."},
		},
		"minimum over maximum": {"minimum: 1", "minimum: 9", []string{"spec.provider.workers[0]", "imum"}},
		"a name that is too long": {
			"name: member1", "name: a-name-that-is-much-too-long-for-a-shoot", []string{"metadata.name"},
		},
		"a range that is not a CIDR":   {"pods: 10.3.0.0/16", "pods: everywhere", []string{"spec.networking.pods"}},
		"an unknown field is reported": {"purpose: evaluation", "purpouse: evaluation", []string{"purpouse"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.replace) {
				t.Fatalf("the example has no %q", c.replace)
			}
			bad := strings.Replace(good, c.replace, c.by, 1)
			if !strings.Contains(c.by, "name: a-name") {
				bad = strings.Replace(bad, "name: member1", "name: bad", 1)
			}
			out, err := garden.try(t.Context(), bad, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
			if err == nil {
				t.Fatalf("accepted: %s", out)
			}
			if problem := contains(c.want...)(err.Error()); problem != nil {
				t.Error(problem)
			}
		})
	}
	t.Run("an immutable field", func(t *testing.T) {
		_, err := garden.try(t.Context(), "", "-n", "garden-demo", "patch", "shoot", "member1", "--type=merge", "-p",
			`{"spec":{"region":"elsewhere"}}`)
		if err == nil || !strings.Contains(err.Error(), "spec.region") {
			t.Errorf("want an error about spec.region, got %v", err)
		}
	})
}

// A cloud profile of another provider, as people have it, is taken as it is.
func TestCloudProfileInput(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	t.Cleanup(func() {
		_, _ = garden.try(context.Background(), "", "delete", "cloudprofile", "aws", "--ignore-not-found")
	})
	garden.apply(t, input(t, l, "003-gardener-cloudprofile.yaml"))
	garden.eventually(t, 10*time.Second, equals("aws m5.large eu-central-1c CloudProfileConfig"), "get", "cloudprofile",
		"aws",
		"-o", "jsonpath={.spec.type} {.spec.machineTypes[0].name} {.spec.regions[0].zones[2].name} "+
			"{.spec.providerConfig.kind}")
}
