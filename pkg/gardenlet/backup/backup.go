// Package backup makes the buckets for backups, and the directories of shoots in them, that the garden asks for: for
// each BackupBucket and BackupEntry it writes an extension object of the object store's provider, with the credentials
// beside it, and reports how far the extension is. The extension of an entry gives the shoot's etcd access.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

const (
	// recheck is how often an object is looked at while its extension is at work, resync when all is well: its
	// credentials may have changed.
	recheck, resync = 2 * time.Second, 10 * time.Minute
	// prefixes of the names of Secrets with credentials, in namespace garden of the seed.
	bucketSecretPrefix, entrySecretPrefix = "bucket-", "entry-"
	// annotationOwner names, on an extension's object, the object of the garden that it belongs to.
	annotationOwner = "trellis.garden/garden-object"
)

// Clients are what both reconcilers work with.
type Clients struct {
	// Garden is a client of the garden, Seed one of the seed.
	Garden, Seed client.Client
	// SeedName is the name of this seed.
	SeedName string
	// Now is the time.
	Now func() time.Time
}

// unfinished says what is waited for.
type unfinished struct{ error }

// mistake is something that an operator has to correct.
type mistake struct{ error }

// ErrorCodes implements errorcodes.Coded.
func (*mistake) ErrorCodes() []gardencorev1beta1.ErrorCode {
	return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}
}

// isMistake tells whether trying again soon is of no use.
func isMistake(err error) bool {
	var known *mistake
	return errors.As(err, &known)
}

// check says how far the extension is with an object: nil if it has finished.
func check(object extension.Object) error {
	err := extension.Check(object)
	var reported *extension.Error
	if err == nil || errors.As(err, &reported) {
		return err
	}
	return &unfinished{err}
}

// copyCredentials copies a Secret of the garden to the seed, and tells whether that changed anything.
func (c *Clients) copyCredentials(ctx context.Context, from corev1.ObjectReference,
	to string) (changed bool, err error) {
	if from.Kind != "Secret" {
		return false, &mistake{
			fmt.Errorf("spec.credentialsRef is a %s; only credentials in a Secret can be used for backups", from.Kind),
		}
	}
	source := &corev1.Secret{}
	key := client.ObjectKey{Namespace: from.Namespace, Name: from.Name}
	if err := c.Garden.Get(ctx, key, source); err != nil {
		err = fmt.Errorf("reading Secret %s of the garden: %w", key, err)
		if apierrors.IsNotFound(err) {
			return false, &mistake{err}
		}
		return false, err
	}
	existing := &corev1.Secret{ObjectMeta: seedMeta(to)}
	if err := c.Seed.Get(ctx, client.ObjectKeyFromObject(existing), existing); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Secret %s: %w", to, err)
	}
	if existing.ResourceVersion != "" &&
		maps.EqualFunc(existing.Data, source.Data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return false, nil
	}
	return true, component.Apply(ctx, c.Seed,
		&corev1.Secret{ObjectMeta: seedMeta(to), Type: corev1.SecretTypeOpaque, Data: source.Data})
}

// seedMeta is the metadata of a Secret of the seed.
func seedMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name}
}

// secretRef refers to such a Secret.
func secretRef(name string) corev1.SecretReference {
	return corev1.SecretReference{Namespace: gardencorev1beta1.GardenNamespace, Name: name}
}

// bind lets the extension of a kind and type read such a Secret. Which extension that is may have changed since.
func (c *Clients) bind(ctx context.Context, kind, extensionType string, secret corev1.SecretReference) error {
	return extensionrights.BindSecret(ctx, c.Seed, extensionrights.Pair(kind, extensionType), secret)
}

// forget deletes such a Secret, and who may read it.
func (c *Clients) forget(ctx context.Context, secret corev1.SecretReference) error {
	return errors.Join(
		extensionrights.ReleaseSecret(ctx, c.Seed, secret),
		component.Delete(ctx, c.Seed, &corev1.Secret{ObjectMeta: seedMeta(secret.Name)}),
	)
}

// removed deletes an extension's object; while it still exists, the error says so.
func (c *Clients) removed(ctx context.Context, object extension.Object) error {
	if err := extension.Destroy(ctx, c.Seed, object); err != nil {
		return err
	}
	err := c.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if last := object.GetExtensionStatus().LastError; last != nil {
		return &extension.Error{
			Kind: "the extension's object", Name: object.GetName(), Description: last.Description, Codes: last.Codes,
		}
	}
	return &unfinished{errors.New("the extension has not finished the deletion")}
}

// outcome is what an object's status tells about its operation.
type outcome struct {
	last *gardencorev1beta1.LastOperation
	err  *gardencorev1beta1.LastError
}

// outcomeOf judges what has become of an operation. What was said before stays if it is the same, with its time.
func outcomeOf(kind string, deleting bool, cause error, before outcome, now metav1.Time) outcome {
	if cause == nil && !deleting && before.last != nil &&
		before.last.State == gardencorev1beta1.LastOperationStateSucceeded {
		return outcome{last: before.last}
	}
	last := &gardencorev1beta1.LastOperation{Type: operationType(before.last, deleting), LastUpdateTime: now}
	result := outcome{last: last}
	var waiting *unfinished
	switch {
	case cause == nil:
		last.State, last.Progress, last.Description = gardencorev1beta1.LastOperationStateSucceeded, 100,
			kind+" is as it should be."
	case errors.As(cause, &waiting):
		last.State, last.Progress, last.Description = gardencorev1beta1.LastOperationStateProcessing, 50, cause.Error()
	default:
		last.State, last.Progress, last.Description = gardencorev1beta1.LastOperationStateError, 50, cause.Error()
		result.err = &gardencorev1beta1.LastError{
			Description: cause.Error(), Codes: errorcodes.Of(cause), LastUpdateTime: &now,
		}
	}
	return result.keepingTimes(before)
}

// keepingTimes takes over the times of what has been said before.
func (o outcome) keepingTimes(before outcome) outcome {
	if before.last != nil {
		same := *before.last
		same.LastUpdateTime = o.last.LastUpdateTime
		if same == *o.last {
			o.last = before.last
		}
	}
	if o.err != nil && before.err != nil && o.err.Description == before.err.Description &&
		apiequality.Semantic.DeepEqual(o.err.Codes, before.err.Codes) {
		o.err = before.err
	}
	return o
}

// operationType says what kind of operation comes after the last one: creation goes on until it succeeded.
func operationType(last *gardencorev1beta1.LastOperation, deleting bool) gardencorev1beta1.LastOperationType {
	switch {
	case deleting:
		return gardencorev1beta1.LastOperationTypeDelete
	case last == nil || last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return gardencorev1beta1.LastOperationTypeCreate
	}
	return gardencorev1beta1.LastOperationTypeReconcile
}

// next says when an object is looked at again; errors that are not an extension's or operator's are tried again with
// growing pauses.
func next(cause error) (ctrl.Result, error) {
	var (
		waiting  *unfinished
		reported *extension.Error
	)
	switch {
	case cause == nil:
		return ctrl.Result{RequeueAfter: resync}, nil
	case errors.As(cause, &waiting), errors.As(cause, &reported):
		return ctrl.Result{RequeueAfter: recheck}, nil
	case isMistake(cause):
		return ctrl.Result{RequeueAfter: 5 * recheck}, nil
	}
	return ctrl.Result{}, cause
}

// sorted is the form in which the seed returns raw JSON, so that it can be compared.
func sorted(raw *runtime.RawExtension) (*runtime.RawExtension, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	return &runtime.RawExtension{Raw: text}, err
}
