package shoot

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
)

// Operations are taken out of the annotation when the status has them; what is not ours stays.
func TestOperationsAreTaken(t *testing.T) {
	shoot := plantest.Inputs().Shoot
	shoot.ResourceVersion = ""
	shoot.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: "rotate-ca-start;rollout-workers=a"}
	garden := fake.NewClientBuilder().
		WithScheme(apis.GardenScheme()).WithObjects(shoot).WithStatusSubresource(shoot).Build()
	read := func() *gardencorev1beta1.Shoot {
		t.Helper()
		current := &gardencorev1beta1.Shoot{}
		if err := garden.Get(context.Background(), client.ObjectKeyFromObject(shoot), current); err != nil {
			t.Fatal(err)
		}
		return current
	}
	before := read()
	for range 2 {
		taken, err := takeOperations(t.Context(), status.NewWriter(garden, before), before)
		if err != nil {
			t.Fatal(err)
		}
		if taken.Status.Credentials.Rotation.CertificateAuthorities.Phase != gardencorev1beta1.RotationPreparing {
			t.Errorf("the rotation is %+v", taken.Status.Credentials.Rotation)
		}
		before = read()
		if got := before.Annotations[gardencorev1beta1.GardenerOperation]; got != "rollout-workers=a" {
			t.Errorf("left is %q", got)
		}
	}
}
