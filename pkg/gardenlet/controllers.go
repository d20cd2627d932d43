package gardenlet

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/backup"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bastion"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bootstrap"
	"github.com/trellis-garden/trellis/pkg/gardenlet/controllerinstallation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/managedseed"
	"github.com/trellis-garden/trellis/pkg/gardenlet/seed"
	"github.com/trellis-garden/trellis/pkg/gardenlet/selfdeployment"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/care"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/shootstate"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/taskgraph"
	"github.com/trellis-garden/trellis/pkg/gardenlet/withdrawal"
	"github.com/trellis-garden/trellis/pkg/gardenlet/workloadidentity"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// apiServerPeriod is how often gardenlet looks whether the seed's API server has moved.
const apiServerPeriod = 10 * time.Second

// withdrawalPeriod is how often gardenlet looks whether its seed, if it was lost, has what is not its own any more.
const withdrawalPeriod = 10 * time.Second

// addControllers adds everything that runs.
func (a *agent) addControllers(mgr manager.Manager, own *ownSeed) error {
	if err := a.addSeed(mgr, own); err != nil {
		return err
	}
	if err := a.addControllerInstallation(mgr); err != nil {
		return err
	}
	renewer := &workloadidentity.Renewer{
		Tokens: &workloadidentity.Tokens{Garden: a.reader, Seed: a.seed, Now: time.Now},
		Period: a.config.Controllers.TokenRequestorWorkloadIdentity.SyncPeriod.Duration,
		Log:    ctrl.Log.WithName("workload-identity"),
	}
	if err := mgr.Add(renewer); err != nil {
		return err
	}
	if err := a.addShoot(mgr, renewer); err != nil {
		return err
	}
	if err := a.addWatchdog(mgr); err != nil {
		return err
	}
	if err := mgr.Add(&withdrawal.Withdrawer{
		Garden: a.reader, Seed: a.seed, SeedName: a.config.SeedConfig.Name, Period: withdrawalPeriod,
		Log: ctrl.Log.WithName("withdrawal"),
	}); err != nil {
		return err
	}
	if err := a.addBastion(mgr); err != nil {
		return err
	}
	if err := a.addBackup(mgr); err != nil {
		return err
	}
	if err := a.addManagedSeed(mgr); err != nil {
		return err
	}
	if err := a.addSelfDeployment(mgr); err != nil {
		return err
	}
	if a.config.GardenClientConnection.Kubeconfig != "" {
		return nil
	}
	return mgr.Add(&bootstrap.Renewer{
		Seed: a.seed, Garden: a.garden, Connection: a.config.GardenClientConnection, SeedName: a.config.SeedConfig.Name,
	})
}

// gardenClient reads what is watched from the cache and the rest from the API server.
func (a *agent) gardenClient(mgr manager.Manager) client.Client {
	return &splitClient{Client: a.reader, cached: mgr.GetClient()}
}

// ownSeed is the seed of this gardenlet, as it was registered, and what reconciles it.
type ownSeed struct {
	object     *gardencorev1beta1.Seed
	reconciler *seed.Reconciler
	system     *seed.System
}

// register brings the seed's custom resource definitions and priority classes, which must be there before the
// controllers start, and its Seed object.
func (a *agent) register(ctx context.Context) (*ownSeed, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(a.opts.Seed)
	if err != nil {
		return nil, err
	}
	system := &seed.System{Seed: a.seed, Helm: a.helm, Images: a.images, Config: a.config}
	reconciler := &seed.Reconciler{
		Garden: a.reader, Seed: a.seed, Config: a.config, System: system, Discovery: disco, Identity: a.identity,
	}
	if _, end, err := bootstrap.Expiry(a.garden); err == nil {
		reconciler.CertificateExpiration = &metav1.Time{Time: end}
	}
	if err := system.InstallCRDs(ctx); err != nil {
		return nil, err
	}
	if err := system.InstallPriorityClasses(ctx); err != nil {
		return nil, err
	}
	object, err := reconciler.Ensure(ctx)
	if err != nil {
		return nil, fmt.Errorf("registering the seed: %w", err)
	}
	return &ownSeed{object: object, reconciler: reconciler, system: system}, nil
}

// addSeed adds the controller of the seed, its Lease and its conditions.
func (a *agent) addSeed(mgr manager.Manager, own *ownSeed) error {
	lease := &seed.Lease{
		Garden: a.reader, Seed: own.object, Log: ctrl.Log.WithName("seed-lease"),
		Period: time.Duration(*a.config.Controllers.Seed.LeaseResyncSeconds) * time.Second,
		Healthy: func(ctx context.Context) error {
			_, err := own.reconciler.Discovery.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
			return err
		},
	}
	apiServer := &seed.APIServer{Seed: a.seed, Period: apiServerPeriod, Log: ctrl.Log.WithName("seed-apiserver")}
	for _, runnable := range []manager.Runnable{lease, apiServer} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	if err := a.addSeedCare(mgr, own.system, lease); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("seed").
		For(&gardencorev1beta1.Seed{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{RateLimiter: backoff()}).
		Complete(own.reconciler)
}

// addSeedCare adds the controller that looks at the seed by the clock from when its Seed is there.
func (a *agent) addSeedCare(mgr manager.Manager, system *seed.System, lease *seed.Lease) error {
	care := &seed.Care{
		Garden: a.reader, System: system, Lease: lease, Period: a.config.Controllers.Seed.ConditionsPeriod.Duration,
	}
	return builder.ControllerManagedBy(mgr).Named("seed-care").
		For(&gardencorev1beta1.Seed{}, builder.WithPredicates(created())).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				500*time.Millisecond, seed.CareRetry),
		}).
		Complete(care)
}

// created passes objects that are there at the start or come later.
func created() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// addControllerInstallation adds the controller that installs extensions. A changed ControllerDeployment is seen by the
// generation of its installations: they name its resource version.
func (a *agent) addControllerInstallation(mgr manager.Manager) error {
	charts, err := a.charts()
	if err != nil {
		return err
	}
	reconciler := &controllerinstallation.Reconciler{
		Garden: a.reader, Seed: a.seed, Helm: a.helm, Charts: charts, Images: a.images,
		SeedName: a.config.SeedConfig.Name,
		Info: controllerinstallation.Garden{
			ClusterIdentity: a.gardenIdentity, Config: a.garden,
			Address: a.config.GardenClientConnection.GardenClusterAddress,
		},
	}
	return builder.ControllerManagedBy(mgr).Named("installation").
		For(&gardencorev1beta1.ControllerInstallation{},
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.ControllerInstallation.ConcurrentSyncs,
			RateLimiter:             backoff(),
		}).
		Complete(reconciler)
}

// addBastion adds the controller that makes bastions.
func (a *agent) addBastion(mgr manager.Manager) error {
	reconciler := &bastion.Reconciler{
		Garden: a.gardenClient(mgr), Seed: a.seed, SeedName: a.config.SeedConfig.Name, Now: time.Now,
	}
	return builder.ControllerManagedBy(mgr).Named("bastion").
		For(&operationsv1alpha1.Bastion{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.Bastion.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(reconciler)
}

// addBackup adds the controllers that make buckets and the directories of shoots in them.
func (a *agent) addBackup(mgr manager.Manager) error {
	clients := backup.Clients{Garden: a.reader, Seed: a.seed, SeedName: a.config.SeedConfig.Name, Now: time.Now}
	config := a.config.Controllers
	err := builder.ControllerManagedBy(mgr).Named("backupbucket").
		For(&gardencorev1beta1.BackupBucket{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: config.BackupBucket.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(&backup.BucketReconciler{Clients: clients})
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("backupentry").
		For(&gardencorev1beta1.BackupEntry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: config.BackupEntry.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(&backup.EntryReconciler{Clients: clients, Config: config.BackupEntry})
}

// addShoot adds the controllers that reconcile shoots and care for their health.
func (a *agent) addShoot(mgr manager.Manager, tokens *workloadidentity.Renewer) error {
	looks, states := make(chan event.GenericEvent, 100), make(chan event.GenericEvent, 100)
	reconciler := &shoot.Reconciler{
		Garden: a.gardenClient(mgr), Seed: a.seed, Config: a.config, Images: a.images, Identity: a.identity,
		GardenIdentity: a.gardenIdentity, Shoots: mgr.GetClient(), AskEtcd: a.opts.AskEtcd,
		Graphs: &taskgraph.Writer{Garden: a.reader},
		AfterOperation: func(key client.ObjectKey) {
			object := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			for _, told := range []chan event.GenericEvent{looks, states} {
				select {
				case told <- event.GenericEvent{Object: object}:
				default: // The next periodic look comes soon.
				}
			}
		},
	}
	err := builder.ControllerManagedBy(mgr).Named("shoot").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(changed(reconciler))).
		Watches(&gardencorev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(allShoots(mgr.GetClient())),
			builder.WithPredicates(stopEnded(reconciler))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.Shoot.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(reconciler)
	if err != nil {
		return err
	}
	if err := a.addShootState(mgr, states); err != nil {
		return err
	}
	health := &care.Reconciler{
		Garden: a.gardenClient(mgr), Seed: a.seed, Seeds: mgr.GetClient(), Config: a.config,
		TokenProblem: tokens.Problem,
	}
	return builder.ControllerManagedBy(mgr).Named("shoot-care").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(created())).
		WatchesRawSource(source.Channel(looks, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.ShootCare.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(health)
}

// addShootState adds the controller that keeps what another seed would need of shoots.
func (a *agent) addShootState(mgr manager.Manager, looks <-chan event.GenericEvent) error {
	keeper := &shootstate.Keeper{
		Garden: a.gardenClient(mgr), Seed: a.seed, SeedName: a.config.SeedConfig.Name,
		Period: a.config.Controllers.ShootState.SyncPeriod.Duration,
	}
	return builder.ControllerManagedBy(mgr).Named("shoot-state").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(created())).
		WatchesRawSource(source.Channel(looks, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.ShootState.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(keeper)
}

// addManagedSeed adds the controller that makes seeds of shoots: of those in the namespace garden, the operators'.
func (a *agent) addManagedSeed(mgr manager.Manager) error {
	overwrite, err := imagevector.Overwrite()
	if err != nil {
		return err
	}
	reconciler := &managedseed.Reconciler{
		Garden: a.gardenClient(mgr), Seed: a.seed, GardenConfig: a.garden, Config: a.config, Images: a.images,
		ImageVectorOverwrite: string(overwrite), ShootConfig: a.opts.ShootConfig,
	}
	ofOperators := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == gardencorev1beta1.GardenNamespace
	})
	return builder.ControllerManagedBy(mgr).Named("managedseed").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(ofOperators, predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.config.Controllers.ManagedSeed.ConcurrentSyncs, RateLimiter: backoff(),
		}).
		Complete(reconciler)
}

// charts pulls those of extensions and of gardenlet. Registries send it nowhere where the seed's egress proxy would not
// connect to.
func (a *agent) charts() (*helm.Puller, error) {
	rules, err := seed.EgressRules(&a.config.SeedConfig.Spec.Networks, a.config.Egress.AllowedNetworks)
	return &helm.Puller{Rules: rules}, err
}

// addSelfDeployment adds the controller that deploys this gardenlet anew.
func (a *agent) addSelfDeployment(mgr manager.Manager) error {
	charts, err := a.charts()
	if err != nil {
		return err
	}
	reconciler := &selfdeployment.Reconciler{
		Garden: a.reader, Seed: a.seed, Helm: a.helm, Charts: charts, Config: a.config,
	}
	return builder.ControllerManagedBy(mgr).Named("gardenlet").
		For(&seedmanagementv1alpha1.Gardenlet{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{RateLimiter: backoff()}).
		Complete(reconciler)
}

// changed lets through Shoots whose generation changed, and those that are ignored no longer, and ends flows that work
// for an older generation, or for a Shoot that is not of this seed any more.
func changed(reconciler *shoot.Reconciler) predicate.Predicate {
	generation := predicate.GenerationChangedPredicate{}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			deletion := (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
			// What was changed while it was ignored has been left alone.
			takenUp := isIgnored(e.ObjectOld) && !isIgnored(e.ObjectNew)
			if !generation.Update(e) && !deletion && !takenUp {
				return false
			}
			reconciler.Interrupt(e.ObjectNew)
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			reconciler.Leave(e.Object)
			return false
		},
	}
}

func isIgnored(shoot client.Object) bool {
	return shoot.GetAnnotations()[gardencorev1beta1.ShootIgnore] == "true"
}

// stopEnded lets through the Seed whose emergency stop has ended, and ends all flows when one begins.
func stopEnded(reconciler *shoot.Reconciler) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := isStopped(e.ObjectOld), isStopped(e.ObjectNew)
			if now && !before {
				reconciler.Stop()
			}
			return before && !now
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func isStopped(seed client.Object) bool {
	return seed.GetAnnotations()[gardencorev1beta1.SeedEmergencyStop] == "true"
}

// allShoots leads from the seed to its shoots, which the cache has.
func allShoots(cached client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		var shoots gardencorev1beta1.ShootList
		if err := cached.List(ctx, &shoots); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the shoots of the seed failed")
			return nil
		}
		var requests []reconcile.Request
		for i := range shoots.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[i])})
		}
		return requests
	}
}

// backoff retries failures soon at first and every minute at the latest.
func backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](500*time.Millisecond, time.Minute)
}
