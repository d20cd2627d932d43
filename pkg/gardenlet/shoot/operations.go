package shoot

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/restore"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
)

// takeOperations begins the rotations that are asked for and takes them out of the annotation, in this order: killed
// in between, gardenlet begins them again, which changes nothing. An update by force is allowed for the change that is
// made with it, and for none after. It returns the Shoot to go on with.
func takeOperations(ctx context.Context, writer *status.Writer,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	operations := rotation.Operations(shoot)
	if err := writer.Update(ctx, rotation.Begin(shoot, operations, metav1.Now())); err != nil {
		return nil, err
	}
	const force = gardencorev1beta1.ShootOperationForceInPlaceUpdate
	asked := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	if slices.Contains(asked, force) {
		operations = append(operations, force)
	}
	if err := writer.DropOperations(ctx, operations); err != nil {
		return nil, err
	}
	// The specification stays the one that this operation is for; a newer one has an operation of its own.
	taken := shoot.DeepCopy()
	taken.Status = writer.Current().Status
	return taken, nil
}

// takeRestore records a restore of etcd that is asked for, takes it out of the annotation, and records that. Killed in
// between, gardenlet finds it recorded, and that it is the same one. The Shoot may be an old one out of a cache.
func takeRestore(ctx context.Context, writer *status.Writer, seed client.Client,
	shoot *gardencorev1beta1.Shoot) error {
	operation, to, err := gardencorev1beta1.RestoreOperation(shoot)
	if err != nil {
		return &plan.ConfigurationError{Err: err}
	}
	record := &restore.Record{Seed: seed, Namespace: shoot.Status.TechnicalID}
	if record.Namespace == "" {
		return nil // nothing was ever deployed
	}
	if operation != "" {
		asked, err := record.Ask(ctx, to, shoot.Generation)
		if err != nil || !asked {
			return err
		}
		if err := writer.DropOperations(ctx, []string{operation}); err != nil {
			return err
		}
	}
	return record.Take(ctx, writer.Current().Generation)
}
