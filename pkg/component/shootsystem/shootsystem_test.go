package shootsystem

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "shoot", Objects(Values{NodeAgentSecrets: []string{"gardener-node-agent-b", "gardener-node-agent-a"}})...)
	golden.Check(t, "workerless", Objects(Values{IsWorkerless: true})...)
}

func TestViewersDoNotSeeSecrets(t *testing.T) {
	for _, rule := range viewerClusterRole().Rules {
		core := slices.Contains(rule.APIGroups, "") || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)
		if core && (slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, rbacv1.ResourceAll)) {
			t.Errorf("rule %v lets viewers read Secrets", rule)
		}
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("viewers may %s", verb)
			}
		}
	}
}
