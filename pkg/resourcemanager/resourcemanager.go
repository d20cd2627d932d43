// Package resourcemanager is the process that delivers objects to clusters: one per seed serves the seed itself and all
// shoots whose control planes run there. It applies ManagedResources, fills `shoot-access-*` Secrets with tokens and
// approves the serving certificates of kubelets and, in fleets, the certificates that members' agents renew.
package resourcemanager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/managers"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/csrapprover"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/managedresource"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/tokenrequestor"
)

// secretRefsIndex finds the ManagedResources that use a Secret.
const secretRefsIndex = "spec.secretRefs.name"

// Options of the process.
type Options struct {
	// ClusterID names the seed in the origin annotation of applied objects.
	ClusterID string
	// SyncPeriod is how often unchanged objects are applied again.
	SyncPeriod time.Duration
	// Concurrency is how many ManagedResources are worked on at a time.
	Concurrency int
	// HealthAddress serves /healthz and /readyz, MetricsAddress /metrics; "0" turns either off.
	HealthAddress, MetricsAddress string
	// LeaderElection lets one of several replicas work while the others stand by. With a single one it only costs time.
	LeaderElection bool
	// SkipNameValidation lets several run in one process; for tests.
	SkipNameValidation bool
}

// Run starts the controllers on the seed and blocks until ctx ends.
func Run(ctx context.Context, config *rest.Config, opts Options) error {
	if err := managers.Begin(ctx, opts.HealthAddress, managers.Groups(config)); err != nil {
		return err
	}
	mgr, err := newManager(config, opts)
	if err != nil {
		return err
	}
	targets, err := target.NewRegistry(config, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &resourcesv1alpha1.ManagedResource{}, secretRefsIndex,
		secretRefs); err != nil {
		return fmt.Errorf("indexing ManagedResources: %w", err)
	}
	for name, add := range map[string]func(context.Context, manager.Manager, *target.Registry, Options) error{
		"managedresource": addManagedResource,
		"token-requestor": addTokenRequestor,
		"csr-approver":    addCSRApprover,
	} {
		if err := add(ctx, mgr, targets, opts); err != nil {
			return fmt.Errorf("adding controller %s: %w", name, err)
		}
	}
	return mgr.Start(ctx)
}

// newManager caches ManagedResources whole, but of Secrets only the metadata.
func newManager(config *rest.Config, opts Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(resourcesv1alpha1.AddToScheme(scheme))

	config = rest.CopyConfig(config)
	config.QPS = -1
	mgr, err := manager.New(config, managers.Patient(manager.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: opts.MetricsAddress},
		HealthProbeBindAddress: opts.HealthAddress,
		LeaderElection:         opts.LeaderElection, LeaderElectionID: "resource-manager",
		LeaderElectionNamespace: gardencorev1beta1.GardenNamespace,
		Controller:              ctrlconfig.Controller{SkipNameValidation: &opts.SkipNameValidation},
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Client: client.Options{
			Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}},
		},
	}))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}

// addManagedResource adds the controller that applies ManagedResources.
func addManagedResource(_ context.Context, mgr manager.Manager, targets *target.Registry, opts Options) error {
	reconciler := &managedresource.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Targets: targets,
		ClusterID: opts.ClusterID, SyncPeriod: opts.SyncPeriod,
	}
	return builder.ControllerManagedBy(mgr).
		Named("managedresource").
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
			predicate.LabelChangedPredicate{}))).
		WatchesMetadata(&corev1.Secret{},
			handler.EnqueueRequestsFromMapFunc(managedResourcesOf(mgr.GetClient(), targets))).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Concurrency, RateLimiter: backoff()}).
		Complete(reconciler)
}

// addTokenRequestor adds the controller of shoot-access Secrets.
func addTokenRequestor(_ context.Context, mgr manager.Manager, targets *target.Registry, opts Options) error {
	reconciler := &tokenrequestor.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Targets: targets}
	return builder.ControllerManagedBy(mgr).
		Named("token-requestor").
		WatchesMetadata(&corev1.Secret{},
			handler.EnqueueRequestsFromMapFunc(accessSecretsOf(mgr.GetClient(), targets))).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Concurrency, RateLimiter: backoff()}).
		Complete(reconciler)
}

// addCSRApprover adds the approver of what kubelets and agents ask for.
func addCSRApprover(ctx context.Context, mgr manager.Manager, targets *target.Registry, _ Options) error {
	again := make(chan event.GenericEvent)
	reconciler := &csrapprover.Reconciler{Seed: mgr.GetAPIReader(), Targets: targets, Context: ctx,
		Again: func(namespace string) {
			select {
			case again <- event.GenericEvent{Object: targetSecret(namespace)}:
			case <-ctx.Done():
			}
		}}
	return builder.ControllerManagedBy(mgr).
		Named("csr-approver").
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(targetOf(targets)),
			builder.WithPredicates(predicate.NewPredicateFuncs(concernsApprovers))).
		WatchesRawSource(source.Channel(again, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5, RateLimiter: backoff()}).
		Complete(reconciler)
}

// targetSecret is the name of the Secret that leads to the shoot of a namespace.
func targetSecret(namespace string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: target.SecretName}}
}

// isTargetSecret says whether a Secret leads to a shoot.
func isTargetSecret(object client.Object) bool { return object.GetName() == target.SecretName }

// managedResourcesOf maps a Secret to the ManagedResources that use it. A Secret that leads to a shoot concerns all of
// its namespace, after its old client is forgotten.
func managedResourcesOf(c client.Client, targets *target.Registry) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		opts := []client.ListOption{
			client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretRefsIndex: secret.GetName()},
		}
		if isTargetSecret(secret) {
			targets.Refresh(secret.GetNamespace(), secret.GetResourceVersion())
			opts = opts[:1]
		}
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := c.List(ctx, list, opts...); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Listing the ManagedResources of a Secret", "secret",
				client.ObjectKeyFromObject(secret))
			return nil
		}
		var requests []reconcile.Request
		for _, mr := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&mr)})
		}
		return requests
	}
}

// concernsApprovers says whether a Secret leads to a shoot, or makes it a fleet.
func concernsApprovers(object client.Object) bool {
	return isTargetSecret(object) || object.GetName() == fleetv1alpha1.AccessSecret
}

// targetOf maps a Secret to the one that leads to the shoot of its namespace. If it is that, the client of its old
// content is forgotten.
func targetOf(targets *target.Registry) handler.MapFunc {
	return func(_ context.Context, secret client.Object) []reconcile.Request {
		if isTargetSecret(secret) {
			targets.Refresh(secret.GetNamespace(), secret.GetResourceVersion())
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(targetSecret(secret.GetNamespace()))}}
	}
}

// accessSecretsOf maps a shoot-access Secret to itself and a Secret that leads to a shoot to all of its namespace.
func accessSecretsOf(c client.Client, targets *target.Registry) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		if secret.GetLabels()[resourcesv1alpha1.ResourceManagerPurpose] == resourcesv1alpha1.LabelPurposeTokenRequest {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(secret)}}
		}
		if !isTargetSecret(secret) {
			return nil
		}
		targets.Refresh(secret.GetNamespace(), secret.GetResourceVersion())
		list := metadataList(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := c.List(ctx, list, client.InNamespace(secret.GetNamespace()),
			client.MatchingLabels{resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest})
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Listing the access Secrets of a namespace", "namespace",
				secret.GetNamespace())
			return nil
		}
		var requests []reconcile.Request
		for _, item := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&item)})
		}
		return requests
	}
}

// secretRefs indexes ManagedResources by the Secrets they use.
func secretRefs(object client.Object) []string {
	var names []string
	for _, ref := range object.(*resourcesv1alpha1.ManagedResource).Spec.SecretRefs {
		names = append(names, ref.Name)
	}
	return names
}

// backoff retries failures soon at first and every half minute at the latest.
func backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, 30*time.Second)
}

// metadataList returns an empty list of metadata of a kind.
func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return list
}
