package shootsystem

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "shoot", Objects(Values{
		NodeAgentSecrets: []string{"gardener-node-agent-b", "gardener-node-agent-a"},
	})...)
	golden.Check(t, "workerless", Objects(Values{IsWorkerless: true})...)
}

// TestAttackViewers plays a viewer of a shoot who looks for Secrets in the kinds that hold them.
func TestAttackViewers(t *testing.T) {
	rules := viewerClusterRole().Rules
	for _, kind := range []struct{ group, resource string }{
		{"", "secrets"}, {"work.karmada.io", "works"}, {"work.karmada.io", "works/status"},
		{"resources.gardener.cloud", "managedresources"},
		{"core.gardener.cloud", "controllerdeployments"}, {"core.gardener.cloud", "shootstates"},
		{"core.gardener.cloud", "internalsecrets"},
		{"extensions.gardener.cloud", "operatingsystemconfigs"}, {"extensions.gardener.cloud", "infrastructures"},
	} {
		if reads(rules, kind.group, kind.resource) {
			t.Errorf("viewers read %s.%s", kind.resource, kind.group)
		}
	}
	for _, kind := range []struct{ group, resource string }{
		{"", "pods"}, {"apps", "deployments"}, {"work.karmada.io", "resourcebindings"},
	} {
		if !reads(rules, kind.group, kind.resource) {
			t.Errorf("viewers do not read %s.%s", kind.resource, kind.group)
		}
	}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("viewers may %s", verb)
			}
		}
	}
}

func reads(rules []rbacv1.PolicyRule, group, resource string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return has(rule.APIGroups, group) && has(rule.Resources, resource)
	})
}

func has(list []string, wanted string) bool {
	return slices.Contains(list, wanted) || slices.Contains(list, rbacv1.ResourceAll)
}
