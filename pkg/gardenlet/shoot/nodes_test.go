package shoot

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// For a control plane without replicas nobody asks for nodes.
func TestNodesAreAskedForReplicasOnly(t *testing.T) {
	asked := false
	seed := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			asked = true
			return nil
		},
	}).Build()
	r, shoot := &Reconciler{Seed: seed}, &gardencorev1beta1.Shoot{}
	if single, err := r.isSeedSingleFor(t.Context(), shoot); single || err != nil || asked {
		t.Errorf("single is %v, %v, nodes were asked for: %v", single, err, asked)
	}
	shoot.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceTypeNode},
	}}
	if single, err := r.isSeedSingleFor(t.Context(), shoot); !single || err != nil || !asked {
		t.Errorf("single is %v, %v, nodes were asked for: %v", single, err, asked)
	}
}
