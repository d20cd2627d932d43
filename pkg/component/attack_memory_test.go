package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAttackMemoryOfSeeds plays a tenant who fills the memory of what runs for the own cluster: it ends at a limit,
// before which its garbage collector does all that it can. A tenant who asks for more is given it on request only,
// which the seed counts.
func TestAttackMemoryOfSeeds(t *testing.T) {
	for name, test := range map[string]struct {
		asked, limit, collect string
	}{
		"nothing asked for": {"", "4Gi", "3865470561"},
		"little asked for":  {"1Gi", "4Gi", "3865470561"},
		"much asked for":    {"6Gi", "12Gi", "11596411692"},
	} {
		t.Run(name, func(t *testing.T) {
			least := corev1.ResourceList{}
			if test.asked != "" {
				least[corev1.ResourceMemory] = resource.MustParse(test.asked)
			}
			limited := LimitMemory(AtLeast(Requests("20m", "200Mi"), least), "4Gi")
			if limit := resource.MustParse(test.limit); limited.Limits.Memory().Cmp(limit) != 0 {
				t.Errorf("limit %s, want %s", limited.Limits.Memory(), test.limit)
			}
			if environment := GarbageCollection(limited); environment[1].Name != "GOMEMLIMIT" ||
				environment[1].Value != test.collect {
				t.Errorf("environment %v, want GOMEMLIMIT %s", environment, test.collect)
			}
		})
	}
}
