// Package component is what the parts of a control plane have in common: the verbs they offer, how their objects are
// applied, and how their health is judged. The parts themselves are the packages below it, one each; the same parts
// serve the virtual garden, shoots and fleets.
//
// Each part computes its desired objects from a Values struct in a pure function and applies them in Deploy.
package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// Labels of the objects of a control plane.
const (
	// LabelApp names the part, e.g. "kubernetes"; LabelRole tells its role, e.g. "apiserver".
	LabelApp  = "app"
	LabelRole = "role"
	// LabelGardenRole is "controlplane" on every object of a control plane.
	LabelGardenRole = gardencorev1beta1.GardenRole
	// GardenRoleControlPlane is the value of LabelGardenRole.
	GardenRoleControlPlane = gardencorev1beta1.GardenRoleControlPlane
)

// Deployer brings objects into being and removes them. Both are idempotent and do not wait.
type Deployer interface {
	// Deploy applies the desired objects.
	Deploy(ctx context.Context) error
	// Destroy deletes everything that Deploy made.
	Destroy(ctx context.Context) error
}

// Waiter waits for what a Deployer has asked for.
type Waiter interface {
	// Wait returns when the part serves in its desired version, or with an error that names what keeps it from that.
	Wait(ctx context.Context) error
	// WaitCleanup returns when everything that Destroy deletes is gone.
	WaitCleanup(ctx context.Context) error
}

// Component is a part of a control plane.
type Component interface {
	Deployer
	Waiter
}

// Apply applies objects in order, as gardenlet. Fields that are set by others and not by us stay.
func Apply(ctx context.Context, c client.Client, objects ...client.Object) error {
	return apply.Objects(ctx, c, apply.Gardenlet, objects...)
}

// Delete deletes objects in the background; what is not there is fine, also when its kind is unknown to the server.
func Delete(ctx context.Context, c client.Client, objects ...client.Object) error {
	var all []error
	for _, object := range objects {
		err := c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !isGone(err) {
			all = append(all, fmt.Errorf("deleting %s: %w", apply.Describe(c.Scheme(), object), err))
		}
	}
	return errors.Join(all...)
}

func isGone(err error) bool { return client.IgnoreNotFound(err) == nil || meta.IsNoMatchError(err) }

// pollInterval is how often waits look. They mostly read from a cache, and a user waits for the result.
const pollInterval = 200 * time.Millisecond

// WaitUntil waits until check returns nil, and returns its last error if ctx ends before.
func WaitUntil(ctx context.Context, check func(context.Context) error) error { return poll(ctx, check) }

// poll calls check until it returns nil or ctx is done; then the error is check's last one.
func poll(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", last, ctx.Err())
		case <-ticker.C:
		}
	}
}
