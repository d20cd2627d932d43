// Package disruptionbudget has drains of a seed's nodes take one pod at a time of what extensions run several times in
// highly available control planes.
package disruptionbudget

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/pkg/component"
)

// Apply makes the PodDisruptionBudget of the pods with these labels, in a highly available control plane. Otherwise
// there is none to make, and none to remove: availability is not taken back.
func Apply(ctx context.Context, c client.Client, availability component.Availability, namespace, name string,
	labels map[string]string) error {
	if !availability.IsHigh() {
		return nil
	}
	wanted := component.DisruptionBudget(namespace, name, labels)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, c, budget, func() error {
		budget.Labels = component.Merge(budget.Labels, wanted.Labels)
		budget.Spec = wanted.Spec
		return nil
	}); err != nil {
		return fmt.Errorf("PodDisruptionBudget %s/%s: %w", namespace, name, err)
	}
	return nil
}
