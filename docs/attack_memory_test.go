package docs

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What runs for one control plane reads what its owner writes: each container of it ends at a limit of memory, before
// which its garbage collector does all that it can.
func TestAttackMemoryOfControlPlanes(t *testing.T) {
	templates := podTemplates(t)
	pods := podsOf(t, templates)
	for _, pod := range slices.Concat(pods["shoot"], pods["fleet"]) {
		source, name, _ := strings.Cut(pod, " ")
		for _, template := range templates[source] {
			if template.name != name {
				continue
			}
			for _, container := range template.spec.Containers {
				checkMemory(t, pod, container)
			}
		}
	}
}

func checkMemory(t *testing.T, pod string, container corev1.Container) {
	t.Helper()
	limit := container.Resources.Limits.Memory()
	if limit.IsZero() {
		t.Errorf("%s, container %s: no limit of memory", pod, container.Name)
		return
	}
	at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
	if at < 0 {
		t.Errorf("%s, container %s: its garbage collector knows no limit", pod, container.Name)
		return
	}
	// Go writes Ki as KiB.
	collects, err := resource.ParseQuantity(strings.TrimSuffix(container.Env[at].Value, "B"))
	if err != nil || collects.Sign() <= 0 || collects.Cmp(*limit) >= 0 {
		t.Errorf("%s, container %s: GOMEMLIMIT is %q, and its limit of memory %s", pod, container.Name,
			container.Env[at].Value, limit)
	}
}
