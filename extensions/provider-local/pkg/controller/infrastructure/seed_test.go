package infrastructure

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func nodeWith(providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

// In a seed that is a shoot of the local cloud, machines would never come up. The owner of the shoot is told at once,
// and nothing is made.
func TestMachinesWithinMachines(t *testing.T) {
	a := actuatorWith(t, nodeWith("local:///infra-shoot--garden--example/n"))
	err := a.Reconcile(t.Context(), logr.Discard(), infrastructureOf(""), nil)
	if err == nil || !strings.Contains(err.Error(), "choose another seed") ||
		!slices.Equal(extension.Codes(err),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}) {
		t.Errorf("got %v", err)
	}
	roles := &rbacv1.RoleList{}
	if err := a.client.List(t.Context(), roles); err != nil || len(roles.Items) > 0 {
		t.Errorf("got %v, %v", roles.Items, err)
	}
	// What was begun before can be taken down.
	if err := a.Delete(t.Context(), logr.Discard(), infrastructureOf(""), nil); err != nil &&
		strings.Contains(err.Error(), "choose another seed") {
		t.Errorf("it cannot be deleted: %v", err)
	}
}

func TestMachinesInOtherSeeds(t *testing.T) {
	for _, providerID := range []string{"", "aws:///eu-west-1a/i-0", "local://infra-a"} {
		if err := actuatorWith(t, nodeWith(providerID)).refuseWithinMachines(t.Context()); err != nil {
			t.Errorf("nodes with provider ID %q: %v", providerID, err)
		}
	}
	if err := actuatorWith(t).refuseWithinMachines(t.Context()); err != nil {
		t.Errorf("no nodes: %v", err)
	}
}
