package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

// Hibernation is how awake a shoot is to be.
type Hibernation string

const (
	// Awake shoots have everything they ask for.
	Awake Hibernation = "Awake"
	// FallingAsleep shoots lose their machines, and after that their control plane.
	FallingAsleep Hibernation = "FallingAsleep"
	// Asleep shoots have no machines, and nothing of their control plane runs. What they store stays.
	Asleep Hibernation = "Asleep"
)

// planHibernation decides. That a shoot sleeps is known by a mark in the seed and not from the Shoot's status: what was
// begun since, as a waking up that was cut short, must be undone in the right order as well.
func planHibernation(shoot *gardencorev1beta1.Shoot, asleep bool) Hibernation {
	switch {
	case !hibernationWanted(shoot):
		return Awake
	case asleep:
		return Asleep
	default:
		return FallingAsleep
	}
}

// hibernationWanted says whether the user wants the shoot to sleep.
func hibernationWanted(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// isAsleep says whether the shoot of a namespace sleeps: see markAsleep.
func isAsleep(ctx context.Context, seed client.Reader, namespace string) (bool, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret}
	if err := client.IgnoreNotFound(seed.Get(ctx, key, secret)); err != nil {
		return false, fmt.Errorf("reading Secret %s, which tells whether the shoot sleeps: %w", key, err)
	}
	return secret.Annotations[resourcesv1alpha1.Asleep] == "true", nil
}
