// Package binding marks the credentials that bindings use: with the provider they are for, and with a finalizer, so
// that nobody takes away what a shoot still needs to be deleted.
package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// credentialsFinalizer keeps the credentials of a binding. Finalizers of Kubernetes' own kinds need a domain.
const credentialsFinalizer = "gardener.cloud/gardener"

// credentials is what a binding of either kind says about them.
type credentials struct {
	apiVersion, kind, namespace, name string
	// providers are the provider types that the credentials are for.
	providers []string
	// referenceLabel marks credentials that bindings of the kind use.
	referenceLabel string
}

// object returns an empty object of the credentials' kind; nil for a kind that holds no credentials.
func (c credentials) object() client.Object {
	switch c.apiVersion + "/" + c.kind {
	case "v1/Secret":
		return &corev1.Secret{}
	case gardencorev1beta1.SchemeGroupVersion.String() + "/InternalSecret":
		return &gardencorev1beta1.InternalSecret{}
	case securityv1alpha1.SchemeGroupVersion.String() + "/WorkloadIdentity":
		return &securityv1alpha1.WorkloadIdentity{}
	}
	return nil
}

// same tells whether other credentials are the same object.
func (c credentials) same(other credentials) bool {
	return c.apiVersion == other.apiVersion && c.kind == other.kind && c.namespace == other.namespace &&
		c.name == other.name
}

// Reconciler reconciles bindings of one kind.
type Reconciler struct {
	Client client.Client
	// new returns an empty binding of the kind; read, what one says.
	new  func() client.Object
	read func(client.Object) credentials
	name string
	// referenced returns the name of the binding that a shoot refers to.
	referenced func(*gardencorev1beta1.Shoot) *string
}

// SecretBindings returns the reconciler of SecretBindings.
func SecretBindings() *Reconciler {
	return &Reconciler{
		name:       "secretbinding",
		new:        func() client.Object { return &gardencorev1beta1.SecretBinding{} },
		referenced: func(shoot *gardencorev1beta1.Shoot) *string { return shoot.Spec.SecretBindingName },
		read: func(obj client.Object) credentials {
			binding := obj.(*gardencorev1beta1.SecretBinding)
			result := credentials{
				apiVersion: "v1", kind: "Secret", namespace: binding.SecretRef.Namespace, name: binding.SecretRef.Name,
				referenceLabel: gardencorev1beta1.LabelSecretBindingReference,
			}
			if binding.Provider != nil {
				result.providers = strings.Split(binding.Provider.Type, ",")
			}
			return result
		},
	}
}

// CredentialsBindings returns the reconciler of CredentialsBindings.
func CredentialsBindings() *Reconciler {
	return &Reconciler{
		name:       "credentialsbinding",
		new:        func() client.Object { return &securityv1alpha1.CredentialsBinding{} },
		referenced: func(shoot *gardencorev1beta1.Shoot) *string { return shoot.Spec.CredentialsBindingName },
		read: func(obj client.Object) credentials {
			binding := obj.(*securityv1alpha1.CredentialsBinding)
			return credentials{
				apiVersion: binding.CredentialsRef.APIVersion, kind: binding.CredentialsRef.Kind,
				namespace: binding.CredentialsRef.Namespace, name: binding.CredentialsRef.Name,
				providers:      []string{binding.Provider.Type},
				referenceLabel: gardencorev1beta1.LabelCredentialsBindingReference,
			}
		},
	}
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(r.name).
		For(r.new()).
		Watches(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.bindingOfShoot)).
		Complete(r)
}

func (r *Reconciler) bindingOfShoot(_ context.Context, obj client.Object) []reconcile.Request {
	shoot, ok := obj.(*gardencorev1beta1.Shoot)
	if !ok || ptr.Deref(r.referenced(shoot), "") == "" {
		return nil
	}
	return []reconcile.Request{
		{NamespacedName: client.ObjectKey{Namespace: shoot.Namespace, Name: *r.referenced(shoot)}},
	}
}

// Reconcile marks, or releases, the credentials of one binding.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := r.new()
	if err := r.Client.Get(ctx, request.NamespacedName, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	if binding.GetDeletionTimestamp() == nil {
		err = r.protect(ctx, binding)
	} else {
		err = r.release(ctx, binding)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.name, request, err)
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) protect(ctx context.Context, binding client.Object) error {
	if err := finalizer.Ensure(ctx, r.Client, binding, gardencorev1beta1.GardenerName); err != nil {
		return err
	}
	used := r.read(binding)
	return r.patch(ctx, used, func(object client.Object) { mark(object, used) })
}

func mark(object client.Object, used credentials) {
	controllerutil.AddFinalizer(object, credentialsFinalizer)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[used.referenceLabel] = "true"
	for _, provider := range used.providers {
		labels[gardencorev1beta1.LabelSecretBindingProviderPrefix+provider] = "true"
	}
	object.SetLabels(labels)
}

// release lets go of the credentials when no shoot uses the binding and no other binding uses the credentials.
func (r *Reconciler) release(ctx context.Context, binding client.Object) error {
	if !controllerutil.ContainsFinalizer(binding, gardencorev1beta1.GardenerName) {
		return nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots, client.InNamespace(binding.GetNamespace())); err != nil {
		return fmt.Errorf("listing shoots: %w", err)
	}
	if slices.ContainsFunc(shoots.Items, func(shoot gardencorev1beta1.Shoot) bool {
		return ptr.Deref(r.referenced(&shoot), "") == binding.GetName()
	}) {
		return nil // a change of the shoots comes back here
	}
	used := r.read(binding)
	shared, err := r.isShared(ctx, binding, used)
	if err != nil {
		return err
	}
	if !shared {
		if err := r.patch(ctx, used, func(object client.Object) { unmark(object, used) }); err != nil {
			return err
		}
	}
	return finalizer.Remove(ctx, r.Client, binding, gardencorev1beta1.GardenerName)
}

func unmark(object client.Object, used credentials) {
	controllerutil.RemoveFinalizer(object, credentialsFinalizer)
	labels := object.GetLabels()
	delete(labels, used.referenceLabel)
	for _, provider := range used.providers {
		delete(labels, gardencorev1beta1.LabelSecretBindingProviderPrefix+provider)
	}
	object.SetLabels(labels)
}

// isShared tells whether another binding of either kind uses the same credentials.
func (r *Reconciler) isShared(ctx context.Context, binding client.Object, used credentials) (bool, error) {
	secretBindings, credentialsBindings := &gardencorev1beta1.SecretBindingList{},
		&securityv1alpha1.CredentialsBindingList{}
	if err := r.Client.List(ctx, secretBindings); err != nil {
		return false, fmt.Errorf("listing secret bindings: %w", err)
	}
	if err := r.Client.List(ctx, credentialsBindings); err != nil {
		return false, fmt.Errorf("listing credentials bindings: %w", err)
	}
	same := func(other client.Object, of credentials) bool {
		return other.GetUID() != binding.GetUID() && of.same(used)
	}
	readSecret, readCredentials := SecretBindings().read, CredentialsBindings().read
	return slices.ContainsFunc(secretBindings.Items,
		func(other gardencorev1beta1.SecretBinding) bool { return same(&other, readSecret(&other)) }) ||
		slices.ContainsFunc(credentialsBindings.Items, func(other securityv1alpha1.CredentialsBinding) bool {
			return same(&other, readCredentials(&other))
		}), nil
}

// patch changes the metadata of credentials; those that are missing need no mark.
func (r *Reconciler) patch(ctx context.Context, used credentials, change func(client.Object)) error {
	object := used.object()
	if object == nil {
		return nil
	}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: used.namespace, Name: used.name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", used.kind, used.namespace, used.name, err)
	}
	before := object.DeepCopyObject().(client.Object)
	change(object)
	if apiequality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, object,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
