package controllerinstallation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// registrationFinalizer keeps a registration until it is installed nowhere.
const registrationFinalizer = "core.gardener.cloud/controllerregistration"

// Reconciler keeps, seed by seed, the installations that the seed needs.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller. What may change the needs of a seed enqueues the seed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("controllerinstallation").
		For(&gardencorev1beta1.Seed{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
				predicate.LabelChangedPredicate{}))).
		Watches(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(seedsOfShoot)).
		Watches(&gardencorev1beta1.BackupBucket{}, handler.EnqueueRequestsFromMapFunc(seedOfBucket), changed).
		Watches(&gardencorev1beta1.BackupEntry{}, handler.EnqueueRequestsFromMapFunc(seedOfEntry), changed).
		Watches(&gardencorev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(seedOfInstallation),
			changed).
		Watches(&gardencorev1beta1.ControllerRegistration{}, handler.EnqueueRequestsFromMapFunc(r.allSeeds), changed).
		Watches(&gardencorev1beta1.ControllerDeployment{}, handler.EnqueueRequestsFromMapFunc(r.allSeeds)).
		Complete(r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("controllerregistration-finalizer").
		For(&gardencorev1beta1.ControllerRegistration{}).
		Watches(&gardencorev1beta1.ControllerInstallation{},
			handler.EnqueueRequestsFromMapFunc(registrationOfInstallation)).
		Complete(reconcile.Func(r.reconcileFinalizer))
}

func request(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

func seedsOfShoot(_ context.Context, obj client.Object) []reconcile.Request {
	shoot, ok := obj.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil
	}
	wanted, actual := ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, "")
	requests := request(wanted)
	if actual != wanted {
		requests = append(requests, request(actual)...)
	}
	return requests
}

func seedOfBucket(_ context.Context, obj client.Object) []reconcile.Request {
	bucket, ok := obj.(*gardencorev1beta1.BackupBucket)
	if !ok {
		return nil
	}
	return request(ptr.Deref(bucket.Spec.SeedName, ""))
}

func seedOfEntry(_ context.Context, obj client.Object) []reconcile.Request {
	entry, ok := obj.(*gardencorev1beta1.BackupEntry)
	if !ok {
		return nil
	}
	return request(ptr.Deref(entry.Spec.SeedName, ""))
}

func seedOfInstallation(_ context.Context, obj client.Object) []reconcile.Request {
	installation, ok := obj.(*gardencorev1beta1.ControllerInstallation)
	if !ok || installation.Spec.SeedRef == nil {
		return nil
	}
	return request(installation.Spec.SeedRef.Name)
}

func registrationOfInstallation(_ context.Context, obj client.Object) []reconcile.Request {
	installation, ok := obj.(*gardencorev1beta1.ControllerInstallation)
	if !ok {
		return nil
	}
	return request(installation.Spec.RegistrationRef.Name)
}

func (r *Reconciler) allSeeds(ctx context.Context, _ client.Object) []reconcile.Request {
	seeds := &gardencorev1beta1.SeedList{}
	if err := r.Client.List(ctx, seeds); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list seeds")
		return nil
	}
	var requests []reconcile.Request
	for _, seed := range seeds.Items {
		requests = append(requests, request(seed.Name)...)
	}
	return requests
}

// Reconcile creates, updates and deletes the installations of one seed.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	situation, err := r.situation(ctx, req.Name)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("seed %s: %w", req.Name, err)
	}
	installations, err := r.installations(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("seed %s: %w", req.Name, err)
	}
	required := Required(situation)
	var errs []error
	for _, registration := range situation.Registrations {
		if required.Has(registration.Name) {
			errs = append(errs, r.install(ctx, situation.Seed, registration, installations[registration.Name]))
		}
	}
	for name, installation := range installations {
		if !required.Has(name) && installation.DeletionTimestamp == nil {
			ctrl.LoggerFrom(ctx).Info("Extension is no longer needed", "registration", name)
			errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, installation)))
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *Reconciler) situation(ctx context.Context, name string) (Situation, error) {
	situation := Situation{Seed: &gardencorev1beta1.Seed{}}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, situation.Seed); err != nil {
		return situation, err
	}
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := r.Client.List(ctx, registrations, client.UnsafeDisableDeepCopy); err != nil {
		return situation, fmt.Errorf("listing controller registrations: %w", err)
	}
	shoots := &gardencorev1beta1.ShootList{}
	buckets, entries := &gardencorev1beta1.BackupBucketList{}, &gardencorev1beta1.BackupEntryList{}
	for _, list := range []client.ObjectList{shoots, buckets, entries} {
		if err := r.Client.List(ctx, list, index.OfSeed(name), client.UnsafeDisableDeepCopy); err != nil {
			return situation, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	for i := range registrations.Items {
		situation.Registrations = append(situation.Registrations, &registrations.Items[i])
	}
	for i := range shoots.Items {
		situation.Shoots = append(situation.Shoots, &shoots.Items[i])
	}
	for i := range buckets.Items {
		situation.BackupBuckets = append(situation.BackupBuckets, &buckets.Items[i])
	}
	var err error
	situation.BackupEntryProviders, err = r.entryProviders(ctx, entries.Items)
	return situation, err
}

// entryProviders returns the providers of the buckets that hold backups which a seed cares for. Such a bucket may be
// another seed's: after a move, backups stay where they are until they are copied.
func (r *Reconciler) entryProviders(ctx context.Context,
	entries []gardencorev1beta1.BackupEntry) (sets.Set[string], error) {
	names := sets.New[string]()
	for i := range entries {
		names.Insert(entries[i].Spec.BucketName)
	}
	providers := sets.New[string]()
	for name := range names {
		bucket := &gardencorev1beta1.BackupBucket{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, bucket); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("backup bucket %s: %w", name, err)
		}
		if bucket.Spec.Provider.Type != "" {
			providers.Insert(bucket.Spec.Provider.Type)
		}
	}
	return providers, nil
}

// installations returns the seed's installations by registration.
func (r *Reconciler) installations(ctx context.Context,
	seed string) (map[string]*gardencorev1beta1.ControllerInstallation, error) {
	list := &gardencorev1beta1.ControllerInstallationList{}
	if err := r.Client.List(ctx, list, index.OfSeed(seed)); err != nil {
		return nil, fmt.Errorf("listing controller installations: %w", err)
	}
	result := map[string]*gardencorev1beta1.ControllerInstallation{}
	for i := range list.Items {
		result[list.Items[i].Spec.RegistrationRef.Name] = &list.Items[i]
	}
	return result, nil
}

// install creates or updates an installation. The references carry resource versions, so that gardenlet acts when a
// registration or its deployment has changed.
func (r *Reconciler) install(ctx context.Context, seed *gardencorev1beta1.Seed,
	registration *gardencorev1beta1.ControllerRegistration, present *gardencorev1beta1.ControllerInstallation) error {
	deployment := &gardencorev1beta1.ControllerDeployment{}
	reference := registration.Spec.Deployment.DeploymentRefs[0].Name
	if err := r.Client.Get(ctx, client.ObjectKey{Name: reference}, deployment); err != nil {
		return fmt.Errorf("controller registration %s refers to deployment %s: %w", registration.Name, reference, err)
	}
	spec, err := installationSpec(seed, registration, deployment)
	if err != nil {
		return err
	}
	if present == nil {
		installation := &gardencorev1beta1.ControllerInstallation{
			ObjectMeta: metav1.ObjectMeta{Name: InstallationName(registration.Name, seed.Name)},
			Spec:       spec,
		}
		ctrl.LoggerFrom(ctx).Info("Extension is needed", "registration", registration.Name)
		return client.IgnoreAlreadyExists(r.Client.Create(ctx, installation))
	}
	if present.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(present.Spec, spec) {
		return nil
	}
	updated := present.DeepCopy()
	updated.Spec = spec
	return r.Client.Update(ctx, updated)
}

func installationSpec(seed *gardencorev1beta1.Seed, registration *gardencorev1beta1.ControllerRegistration,
	deployment *gardencorev1beta1.ControllerDeployment) (gardencorev1beta1.ControllerInstallationSpec, error) {
	resources, err := resourcesOf(deployment)
	return gardencorev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: registration.Name, ResourceVersion: registration.ResourceVersion},
		SeedRef:         &corev1.ObjectReference{Name: seed.Name},
		DeploymentRef:   &corev1.ObjectReference{Name: deployment.Name, ResourceVersion: deployment.ResourceVersion},
		ResourceRefs:    resources,
	}, err
}

// resourcesOf returns the Secrets and ConfigMaps that an extension is deployed with. What an installation refers to,
// its gardenlet may read.
func resourcesOf(deployment *gardencorev1beta1.ControllerDeployment) ([]corev1.ObjectReference, error) {
	v1 := &gardencorev1.ControllerDeployment{}
	if err := gardencorev1.FromV1beta1(deployment, v1); err != nil {
		return nil, fmt.Errorf("controller deployment %s: %w", deployment.Name, err)
	}
	var references []corev1.ObjectReference
	for _, resource := range v1.Resources {
		references = append(references, corev1.ObjectReference{
			APIVersion: resource.ResourceRef.APIVersion, Kind: resource.ResourceRef.Kind,
			Namespace: gardencorev1beta1.GardenNamespace, Name: resource.ResourceRef.Name,
		})
	}
	if v1.Helm == nil || v1.Helm.OCIRepository == nil {
		return references, nil
	}
	for _, secret := range []*corev1.LocalObjectReference{
		v1.Helm.OCIRepository.PullSecretRef, v1.Helm.OCIRepository.CABundleSecretRef,
	} {
		if secret != nil {
			references = append(references, corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: gardencorev1beta1.GardenNamespace, Name: secret.Name,
			})
		}
	}
	return references, nil
}

// InstallationName is the name of the installation of an extension in a seed.
func InstallationName(registration, seed string) string {
	sum := sha256.Sum256([]byte(registration + "/" + seed))
	return registration + "-" + hex.EncodeToString(sum[:])[:8]
}

// reconcileFinalizer holds a registration as long as it is installed somewhere. Its deletion makes it unneeded
// everywhere, so the installations go first.
func (r *Reconciler) reconcileFinalizer(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	registration := &gardencorev1beta1.ControllerRegistration{}
	if err := r.Client.Get(ctx, req.NamespacedName, registration); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if registration.DeletionTimestamp == nil {
		return reconcile.Result{}, finalizer.Ensure(ctx, r.Client, registration, registrationFinalizer)
	}
	list := &gardencorev1beta1.ControllerInstallationList{}
	if err := r.Client.List(ctx, list, index.OfRegistration(registration.Name),
		client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing controller installations: %w", err)
	}
	if len(list.Items) > 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, finalizer.Remove(ctx, r.Client, registration, registrationFinalizer)
}
