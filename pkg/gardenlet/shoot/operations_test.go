package shoot

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/restore"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
)

// Operations are taken out of the annotation when the status has them, as is the force for one change; what is not ours
// stays.
func TestOperationsAreTaken(t *testing.T) {
	shoot := plantest.Inputs().Shoot
	shoot.ResourceVersion = ""
	shoot.Annotations = map[string]string{
		gardencorev1beta1.GardenerOperation: "force-in-place-update;rotate-ca-start;rollout-workers=a",
	}
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

// A restore is taken with its confirmation: the next one, even of the same time, has to be confirmed by itself. An old
// Shoot out of a cache is no new request.
func TestARestoreIsTakenOnce(t *testing.T) {
	shoot := plantest.Inputs().Shoot
	shoot.ResourceVersion, shoot.Generation, shoot.Status.TechnicalID = "", 2, "shoot--demo--one"
	shoot.Annotations = map[string]string{
		gardencorev1beta1.GardenerOperation:                 "restore-etcd=2026-01-01T12:00:00Z;rollout-workers=a",
		gardencorev1beta1.AnnotationConfirmationRestoreETCD: "2026-01-01T12:00:00Z", "mine": "",
	}
	garden := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoot).
		WithStatusSubresource(shoot).Build()
	seed := fake.NewClientBuilder().Build()
	cached := &gardencorev1beta1.Shoot{}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), cached); err != nil {
		t.Fatal(err)
	}
	record := &restore.Record{Seed: seed, Namespace: "shoot--demo--one"}
	var first string
	for range 2 {
		if err := takeRestore(t.Context(), status.NewWriter(garden, cached), seed, cached); err != nil {
			t.Fatal(err)
		}
		taken, err := record.Read(t.Context())
		if err != nil || taken.To != "2026-01-01T12:00:00Z" || (first != "" && taken.ID != first) {
			t.Errorf("got %+v, %v after %q", taken, err, first)
		}
		first = taken.ID
	}
	current := &gardencorev1beta1.Shoot{}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), current); err != nil {
		t.Fatal(err)
	}
	_, confirmed := current.Annotations[gardencorev1beta1.AnnotationConfirmationRestoreETCD]
	if got := current.Annotations[gardencorev1beta1.GardenerOperation]; got != "rollout-workers=a" || confirmed ||
		len(current.Annotations) != 2 {
		t.Errorf("left is %v", current.Annotations)
	}
	// What was never seen before is no request either until the Shoot is found to be the present one.
	other := fake.NewClientBuilder().Build()
	if err := takeRestore(t.Context(), status.NewWriter(garden, cached), other, cached); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	record.Seed = other
	if taken, err := record.Read(t.Context()); err != nil || taken.ID != "" {
		t.Errorf("got %+v, %v", taken, err)
	}
}
