package shoot

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

const (
	// filesPeriod is how often they are looked at. The Shoot does not tell when one of them has changed.
	filesPeriod = 30 * time.Second
)

// filesPeriodOf is how long a shoot may be left alone because of its files; 0 if it has none.
func filesPeriodOf(shoot *gardencorev1beta1.Shoot) time.Duration {
	if apiserverconfig.Referred(shoot.Spec.Kubernetes.KubeAPIServer) {
		return filesPeriod
	}
	return 0
}

// soonest returns the shorter of two times to wait; 0 is no reason to come back.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// filesChanged tells whether the files of a shoot differ from those of its last operation, successful or not.
func (r *Reconciler) filesChanged(ctx context.Context, shoot *gardencorev1beta1.Shoot) (bool, error) {
	if filesPeriodOf(shoot) == 0 {
		return false, nil
	}
	now, err := r.stateOfFiles(ctx, shoot)
	if err != nil {
		return false, err
	}
	before, known := r.files.Load(client.ObjectKeyFromObject(shoot))
	if known {
		return now != before, nil
	}
	namespace := &corev1.Namespace{}
	err = r.Seed.Get(ctx, client.ObjectKey{Name: shoot.Status.TechnicalID}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Namespace %s: %w", shoot.Status.TechnicalID, err)
	}
	return now != namespace.Annotations[foundation.AnnotationFiles], nil
}

// noteFiles remembers the files that an operation starts with.
func (r *Reconciler) noteFiles(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	state, err := r.stateOfFiles(ctx, shoot)
	if err == nil {
		r.files.Store(client.ObjectKeyFromObject(shoot), state)
	}
	return err
}

// stateOfFiles identifies the files as they are; when some are missing, it says which.
func (r *Reconciler) stateOfFiles(ctx context.Context, shoot *gardencorev1beta1.Shoot) (string, error) {
	files, err := readFiles(ctx, r.Garden, shoot)
	var mistake *plan.ConfigurationError
	if errors.As(err, &mistake) {
		return mistake.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return files.Digest()
}
