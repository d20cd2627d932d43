// Package bastion makes the bastions that people ask for in the garden: for each it writes an extension object of the
// shoot's provider into the control plane's namespace, and reports the address at which the bastion is reached. When
// bastions go is decided in the garden.
package bastion

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
)

// recheck is how often a bastion is looked at while its extension is at work.
const recheck = 2 * time.Second

// Reconciler makes and removes the bastions of a seed.
type Reconciler struct {
	// Garden is a client of the garden, Seed one of the seed.
	Garden, Seed client.Client
	// SeedName is the name of this seed.
	SeedName string
	// Now is the time.
	Now func() time.Time
}

// Reconcile brings one Bastion into its desired state, or removes it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := r.Garden.Get(ctx, req.NamespacedName, bastion); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(bastion.Spec.SeedName, "") != r.SeedName {
		return ctrl.Result{}, nil
	}
	shoot := &gardencorev1beta1.Shoot{}
	err := r.Garden.Get(ctx, client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}, shoot)
	if apierrors.IsNotFound(err) {
		shoot, err = nil, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the Shoot of Bastion %s: %w", req, err)
	}
	if bastion.DeletionTimestamp != nil {
		return r.delete(ctx, bastion, shoot)
	}
	if shoot == nil || shoot.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // The garden deletes such bastions.
	}
	return r.reconcile(ctx, bastion, shoot)
}

// reconcile asks the extension for the bastion and reports how far it is.
func (r *Reconciler) reconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion,
	shoot *gardencorev1beta1.Shoot) (ctrl.Result, error) {
	if shoot.Status.TechnicalID == "" {
		err := r.report(ctx, bastion, progressing("ShootNotReady", "The shoot has no control plane yet."),
			whereabouts{})
		return ctrl.Result{RequeueAfter: recheck}, err
	}
	if err := finalizer.Ensure(ctx, r.Garden, bastion, gardencorev1beta1.GardenerName); err != nil {
		return ctrl.Result{}, err
	}
	object := objectFor(bastion, shoot)
	asked := bastion.Annotations[gardencorev1beta1.GardenerOperation] == gardencorev1beta1.GardenerOperationReconcile
	if err := r.ask(ctx, object, bastion, shoot, asked); err != nil {
		return ctrl.Result{}, errors.Join(err, r.report(ctx, bastion, failed(err), whereabouts{}))
	}
	if asked {
		if err := r.operationDone(ctx, bastion); err != nil {
			return ctrl.Result{}, err
		}
	}
	condition, ready := judge(object)
	if err := r.report(ctx, bastion, condition, whereaboutsOf(object)); err != nil || ready {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}

// ask writes the extension's object if it is to change. Otherwise the extension is left alone: it tries again by
// itself.
func (r *Reconciler) ask(ctx context.Context, object *extensionsv1alpha1.Bastion, bastion *operationsv1alpha1.Bastion,
	shoot *gardencorev1beta1.Shoot, force bool) error {
	err := r.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Bastion %s of the seed: %w", client.ObjectKeyFromObject(object), err)
	}
	exists := err == nil
	access, err := accessFor(bastion.Spec.SSHPublicKey, object.Spec.UserData)
	if err != nil {
		return err
	}
	spec := specFor(bastion, shoot, access)
	if exists && !force && apiequality.Semantic.DeepEqual(object.Spec, spec) {
		return nil
	}
	return extension.Deploy(ctx, r.Seed, object, force, func() { object.Spec = spec })
}

// judge says how far the extension is with a bastion.
func judge(object *extensionsv1alpha1.Bastion) (condition gardencorev1beta1.Condition, ready bool) {
	err := extension.Check(object)
	var reported *extension.Error
	switch {
	case errors.As(err, &reported):
		return failed(err, reported.Codes...), false
	case err != nil:
		return progressing("BastionProgressing", err.Error()), false
	case object.Status.Ingress == nil || object.Status.Ingress.IP == "" && object.Status.Ingress.Hostname == "":
		return progressing("BastionProgressing", "The bastion has no address yet."), false
	}
	return conditions.New(operationsv1alpha1.BastionReady, gardencorev1beta1.ConditionTrue, "BastionReady",
		"The bastion can be reached."), true
}

func progressing(reason, message string) gardencorev1beta1.Condition {
	return conditions.New(operationsv1alpha1.BastionReady, gardencorev1beta1.ConditionProgressing, reason, message)
}

func failed(err error, codes ...gardencorev1beta1.ErrorCode) gardencorev1beta1.Condition {
	return conditions.New(operationsv1alpha1.BastionReady, gardencorev1beta1.ConditionFalse, "BastionFailed",
		err.Error(), codes...)
}

// delete removes the extension's object, then lets the Bastion go. Without a shoot the namespace with the object is
// gone.
func (r *Reconciler) delete(ctx context.Context, bastion *operationsv1alpha1.Bastion,
	shoot *gardencorev1beta1.Shoot) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(bastion, gardencorev1beta1.GardenerName) {
		return ctrl.Result{}, nil
	}
	forced := bastion.Annotations[gardencorev1beta1.AnnotationConfirmationForceDeletion] == "true"
	if shoot != nil && shoot.Status.TechnicalID != "" && !forced {
		object := objectFor(bastion, shoot)
		if err := extension.Destroy(ctx, r.Seed, object); err != nil {
			return ctrl.Result{}, errors.Join(err, r.report(ctx, bastion, failed(err), whereaboutsNow(bastion)))
		}
		err := r.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("reading Bastion %s of the seed: %w", client.ObjectKeyFromObject(object),
				err)
		}
		if err == nil {
			return ctrl.Result{RequeueAfter: recheck}, r.report(ctx, bastion, leaving(object), whereaboutsNow(bastion))
		}
		if err := extensionrights.Release(ctx, r.Seed, object.Namespace, extensionsv1alpha1.BastionResource,
			object.Spec.Type); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, finalizer.Remove(ctx, r.Garden, bastion, gardencorev1beta1.GardenerName)
}

// leaving is the condition while the extension removes the bastion.
func leaving(object *extensionsv1alpha1.Bastion) gardencorev1beta1.Condition {
	if last := object.Status.LastError; last != nil {
		return conditions.New(operationsv1alpha1.BastionReady, gardencorev1beta1.ConditionFalse, "DeletionFailed",
			last.Description, last.Codes...)
	}
	return conditions.New(operationsv1alpha1.BastionReady, gardencorev1beta1.ConditionFalse, "DeletionInProgress",
		"The bastion is being removed.")
}

// operationDone takes away the request to reconcile.
func (r *Reconciler) operationDone(ctx context.Context, bastion *operationsv1alpha1.Bastion) error {
	patch := client.MergeFrom(bastion.DeepCopy())
	delete(bastion.Annotations, gardencorev1beta1.GardenerOperation)
	return r.Garden.Patch(ctx, bastion, patch)
}

// whereabouts are where a bastion is, and how it proves itself there.
type whereabouts struct {
	ingress  *corev1.LoadBalancerIngress
	hostKeys []string
}

// whereaboutsOf are those that the extension tells. Keys are told with the address that they are for.
func whereaboutsOf(object *extensionsv1alpha1.Bastion) whereabouts {
	at := whereabouts{ingress: object.Status.Ingress}
	access, err := bastionaccess.Parse(object.Spec.UserData)
	if at.ingress == nil || err != nil {
		return at
	}
	if keys, err := access.HostKeys(); err == nil {
		at.hostKeys = keys
	}
	return at
}

// whereaboutsNow are those that are known.
func whereaboutsNow(bastion *operationsv1alpha1.Bastion) whereabouts {
	return whereabouts{bastion.Status.Ingress, bastion.Status.HostKeys}
}

// report writes the status if it changes.
func (r *Reconciler) report(ctx context.Context, bastion *operationsv1alpha1.Bastion,
	condition gardencorev1beta1.Condition, at whereabouts) error {
	before := bastion.DeepCopy()
	bastion.Status.Conditions = conditions.Set(bastion.Status.Conditions, condition, r.Now())
	bastion.Status.Ingress, bastion.Status.HostKeys = at.ingress.DeepCopy(), at.hostKeys
	bastion.Status.ObservedGeneration = &bastion.Generation
	if apiequality.Semantic.DeepEqual(before.Status, bastion.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Garden.Status().Patch(ctx, bastion, client.MergeFrom(before)))
}

// objectFor names the extension's object of a bastion.
func objectFor(bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot) *extensionsv1alpha1.Bastion {
	return &extensionsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: bastion.Name},
	}
}

// accessFor is what the user data is to say. A bastion that exists keeps its key. One of another user that had the same
// name does not count.
func accessFor(publicKey string, userData []byte) (bastionaccess.Access, error) {
	access, err := bastionaccess.Parse(userData)
	if err == nil && access.AuthorizedKey == strings.TrimSpace(publicKey) {
		return access, nil
	}
	return bastionaccess.New(publicKey)
}

// specFor is what the extension is asked for.
func specFor(bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot,
	access bastionaccess.Access) extensionsv1alpha1.BastionSpec {
	spec := extensionsv1alpha1.BastionSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: ptr.Deref(bastion.Spec.ProviderType, shoot.Spec.Provider.Type),
		},
		UserData: access.UserData(),
	}
	for _, policy := range bastion.Spec.Ingress {
		spec.Ingress = append(spec.Ingress, extensionsv1alpha1.BastionIngressPolicy{IPBlock: policy.IPBlock})
	}
	return spec
}
