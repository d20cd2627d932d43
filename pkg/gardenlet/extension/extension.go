// Package extension is gardenlet's side of the contract with extensions: it writes an extension object with the request
// to reconcile it, waits until the extension has done so, and deletes it. What the objects say is not its concern.
package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/await"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

// Object is an extension object that can be written to the seed.
type Object interface {
	client.Object
	extensionsv1alpha1.Object
}

// Timing bounds the wait for one kind.
type Timing struct {
	// Severe is how long an error of the extension may last before the wait ends with it.
	Severe time.Duration
	// Timeout ends the wait in any case.
	Timeout time.Duration
}

// Timings per kind, as the published contract has them.
var (
	InfrastructureTiming = Timing{Severe: 3 * time.Minute, Timeout: 10 * time.Minute}
	WorkerTiming         = Timing{Severe: 30 * time.Second, Timeout: 10 * time.Minute}
	DNSRecordTiming      = Timing{Severe: 15 * time.Second, Timeout: 2 * time.Minute}
	DefaultTiming        = Timing{Severe: 30 * time.Second, Timeout: 3 * time.Minute}
)

// Error is what an extension reported about its object.
type Error struct {
	// Kind and Name of the object.
	Kind, Name string
	// Description is the extension's own words, Codes what they mean.
	Description string
	Codes       []gardencorev1beta1.ErrorCode
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Name, e.Description) }

// ErrorCodes implements errorcodes.Coded.
func (e *Error) ErrorCodes() []gardencorev1beta1.ErrorCode { return e.Codes }

// Deploy writes the object: mutate sets its specification. Before that, the extension gets its rights in the object's
// namespace. The annotations ask the extension to reconcile or, under WithStates, to restore it. Without a reason to
// (force is false, the specification is as it was, and the last operation succeeded) the extension is not bothered.
func Deploy(ctx context.Context, c client.Client, object Object, force bool, mutate func()) error {
	pair := ""
	result, err := controllerutil.CreateOrPatch(ctx, c, object, func() error {
		before := object.DeepCopyObject().(Object)
		mutate()
		pair = extensionrights.Pair(kindOf(object), object.GetExtensionSpec().Type)
		if err := extensionrights.Bind(ctx, c, object.GetNamespace(), pair,
			object.GetResourceVersion() == ""); err != nil {
			return fmt.Errorf("rights of the extension: %w", err)
		}
		if force || needsOperation(before, object) {
			annotate(object, gardencorev1beta1.GardenerOperation, request(ctx, object))
			annotate(object, gardencorev1beta1.GardenerTimestamp, time.Now().UTC().Format(time.RFC3339Nano))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	if result == controllerutil.OperationResultCreated {
		if err := extensionrights.Bind(ctx, c, object.GetNamespace(), pair, false); err != nil {
			return err
		}
	}
	return giveState(ctx, c, object)
}

// needsOperation says whether the extension has something to do.
func needsOperation(before, after Object) bool {
	return !sameSpec(before, after) || Check(before) != nil
}

// annotate sets one annotation.
func annotate(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// Check returns nil when the extension has done what was last asked for; else an error that says what is missing, of
// type *Error if the extension reported one since. An error of before the request says nothing of it: who mended the
// credentials and tries again is not to hear of the old ones.
func Check(object extensionsv1alpha1.Object) error {
	status := object.GetExtensionStatus()
	operation := object.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	// Extensions take this one away when they begin, those of a move when they have succeeded.
	begun := operation != gardencorev1beta1.GardenerOperationReconcile
	if err := reported(object); err != nil && begun {
		return err
	}
	if operation != "" {
		return fmt.Errorf("the extension has not picked up operation %q; is the controller of type %q running?",
			operation, object.GetExtensionSpec().Type)
	}
	if status.ObservedGeneration != object.GetGeneration() {
		return fmt.Errorf("the extension has seen generation %d, not %d", status.ObservedGeneration,
			object.GetGeneration())
	}
	if status.LastOperation == nil {
		return errors.New("the extension has not reported an operation yet")
	}
	if status.LastOperation.State != gardencorev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("operation %s is %s: %s", status.LastOperation.Type, status.LastOperation.State,
			status.LastOperation.Description)
	}
	return checkTimestamp(object, status.LastOperation.LastUpdateTime.Time)
}

// reported is the extension's last error, if it came after the extension was asked for something. Errors have whole
// seconds: in that of the request, one is not the answer if work goes on.
func reported(object extensionsv1alpha1.Object) error {
	status := object.GetExtensionStatus()
	if status.LastError == nil {
		return nil
	}
	asked, known := requested(object)
	if status.LastOperation == nil || status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing {
		asked = asked.Truncate(time.Second)
	}
	if at := status.LastError.LastUpdateTime; known && at != nil && at.Time.Before(asked) {
		return nil
	}
	return &Error{
		Kind: kindOf(object), Name: object.GetName(), Description: status.LastError.Description,
		Codes: status.LastError.Codes,
	}
}

// requested is when the extension was asked last, if that is known.
func requested(object extensionsv1alpha1.Object) (time.Time, bool) {
	asked, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[gardencorev1beta1.GardenerTimestamp])
	return asked, err == nil
}

// checkTimestamp compares the time of the request with that of the answer; the answer has whole seconds only.
func checkTimestamp(object extensionsv1alpha1.Object, updated time.Time) error {
	if asked, known := requested(object); known && updated.Before(asked.Truncate(time.Second)) {
		return fmt.Errorf("the extension's last operation (%s) is older than the request (%s)",
			updated.UTC().Format(time.RFC3339), asked.UTC().Format(time.RFC3339))
	}
	return nil
}

// Wait waits until Check accepts the object, which is read into object. An error that the extension reports ends the
// wait only when it lasts: most of them go away by themselves.
func Wait[T Object](ctx context.Context, c client.WithWatch, object T, timing Timing) error {
	ctx, cancel := context.WithTimeout(ctx, timing.Timeout)
	defer cancel()
	patience := &patience{limit: timing.Severe, now: time.Now}
	return await.Object(ctx, c, object, func(object T) error { return patience.judge(Check(object)) })
}

// patience makes an extension's error permanent when it lasted for limit.
type patience struct {
	limit time.Duration
	now   func() time.Time
	since time.Time
}

// judge returns err, marked as permanent if it was an extension's error for too long.
func (p *patience) judge(err error) error {
	var reported *Error
	if !errors.As(err, &reported) {
		return err
	}
	if p.since.IsZero() {
		p.since = p.now()
	}
	if p.now().Sub(p.since) >= p.limit || errorcodes.AreCertain(reported.Codes) {
		return flow.Permanent(err)
	}
	return err
}

// Destroy asks for the deletion of an object, with the confirmation that the contract wants. It is fine when there is
// none. An extension that could not delete it is asked to try now.
func Destroy(ctx context.Context, c client.Client, object Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	if err := extensionrights.Ensure(ctx, c, object.GetNamespace()); err != nil {
		return fmt.Errorf("rights of the extension of %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	if object.GetDeletionTimestamp() != nil {
		return askAgain(ctx, c, object)
	}
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	annotate(object, gardencorev1beta1.ConfirmationDeletion, "true")
	annotate(object, gardencorev1beta1.GardenerTimestamp, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirming the deletion of %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	return nil
}

// askAgain wakes an extension that waits longer after each failure to delete the object, also one that leaves the
// operation where it is. It never takes the place of another operation: one that lets go of an object is not to become
// its deletion.
func askAgain(ctx context.Context, c client.Client, object Object) error {
	operation := object.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	free := operation == "" || operation == gardencorev1beta1.GardenerOperationReconcile
	if object.GetExtensionStatus().LastError == nil || !free {
		return nil
	}
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	annotate(object, gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerOperationReconcile)
	annotate(object, gardencorev1beta1.GardenerTimestamp, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("asking to delete %s now: %w", apply.Describe(c.Scheme(), object), err)
	}
	return nil
}

// WaitGone waits until the object is gone, and takes back the rights that the extension had because of it.
func WaitGone[T Object](ctx context.Context, c client.WithWatch, object T, timing Timing) error {
	extensionType := object.GetExtensionSpec().Type
	if err := waitGone(ctx, c, object, timing); err != nil {
		return err
	}
	return extensionrights.Release(ctx, c, object.GetNamespace(), kindOf(object), extensionType)
}

func waitGone[T Object](ctx context.Context, c client.WithWatch, object T, timing Timing) error {
	if absent(c.Get(ctx, client.ObjectKeyFromObject(object), object)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timing.Timeout)
	defer cancel()
	patience := &patience{limit: timing.Severe, now: time.Now}
	return await.Gone(ctx, c, object, func(object T) error {
		if err := reported(object); err != nil {
			return patience.judge(err)
		}
		return errors.New("the extension has not finished the deletion")
	})
}

// absent says whether the object, or even its kind, does not exist.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
