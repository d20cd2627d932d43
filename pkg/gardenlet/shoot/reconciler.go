package shoot

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cluster"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/deletion"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/hibernation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/restore"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/shootstate"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/taskgraph"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// errSuperseded ends a flow whose Shoot has changed in the meantime: the next one starts from the new state.
var errSuperseded = errors.New("the Shoot has changed; starting again")

// errStopped ends a flow because of the emergency stop of the seed, whose end has all Shoots looked at.
var errStopped = errors.New("the operations of the seed are stopped")

// releaseBackoff gives the cache time to catch up.
var releaseBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 6}

// Reconciler reconciles the Shoots of a seed.
type Reconciler struct {
	// Garden reads from the garden's API server (Shoots may come from a cache), Seed from the seed's.
	Garden client.Client
	Seed   client.WithWatch
	// Config is gardenlet's configuration.
	Config *config.Configuration
	// Images resolves image names.
	Images imagevector.Vector
	// Identity of this process, GardenIdentity that of the garden.
	Identity       gardencorev1beta1.Gardener
	GardenIdentity string
	// Shoots lists those of the seed, from a cache, when gardenlet starts.
	Shoots client.Reader
	// AfterOperation is called with the Shoot after every operation, to have its health checked.
	AfterOperation func(key client.ObjectKey)
	// Graphs tells the garden of operations task by task; if nil, nobody does.
	Graphs *taskgraph.Writer
	// WrapTask, if set, wraps the tasks of all flows; see flow.Options.
	WrapTask func(id flow.TaskID, fn flow.TaskFn) flow.TaskFn
	// AskEtcd asks an etcd-steward for its status; if nil, at the address of its pod.
	AskEtcd etcdcomponent.Ask
	// RSAKey is for tests; see secrets.Options.
	RSAKey func(bits int) (*rsa.PrivateKey, error)

	mu      sync.Mutex
	running map[client.ObjectKey]run
	resync  *resync
	// files holds the state of the files of each shoot at its last operation, as a string by its key.
	files sync.Map
}

// run is a flow at work.
type run struct {
	generation int64
	cancel     context.CancelCauseFunc
}

// Reconcile brings one Shoot into its desired state, or removes it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Garden.Get(ctx, req.NamespacedName, shoot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if status.SeedOf(shoot) != r.Config.SeedConfig.Name {
		return ctrl.Result{}, nil
	}
	if shoot.Annotations[gardencorev1beta1.ShootIgnore] == "true" {
		return ctrl.Result{}, nil
	}
	ctx, end := r.begin(ctx, shoot)
	defer end()
	// What begins a moment earlier is ended by Stop.
	if stopped, err := r.stopped(ctx); err != nil || stopped {
		return ctrl.Result{}, err
	}
	if shoot.DeletionTimestamp != nil {
		return r.delete(ctx, shoot)
	}
	now := time.Now()
	if err := r.beginResync(ctx, now); err != nil {
		return ctrl.Result{}, err
	}
	wait := r.untilSync(shoot, now)
	if status.IsFailed(shoot) || wait > 0 {
		changed, err := r.filesChanged(ctx, shoot)
		if err != nil || !changed {
			return ctrl.Result{RequeueAfter: soonest(wait, filesPeriodOf(shoot))}, err
		}
		shoot.Status.RetryCycleStartTime = nil
	}
	return r.reconcile(ctx, shoot)
}

// begin registers what is done about a Shoot, so that Interrupt and Stop find it. The returned function must be
// called at its end.
func (r *Reconciler) begin(ctx context.Context, shoot *gardencorev1beta1.Shoot) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := client.ObjectKeyFromObject(shoot)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[client.ObjectKey]run{}
	}
	r.running[key] = run{generation: shoot.Generation, cancel: cancel}
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, key)
		cancel(nil)
	}
}

// Interrupt ends the flow that works for an older generation of the Shoot: a change, or its deletion, need not wait
// for it.
func (r *Reconciler) Interrupt(shoot client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current, found := r.running[client.ObjectKeyFromObject(shoot)]; found &&
		current.generation < shoot.GetGeneration() {
		current.cancel(errSuperseded)
	}
}

// Leave ends the flow for a Shoot that this seed has no longer: another one restores it.
func (r *Reconciler) Leave(shoot client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current, found := r.running[client.ObjectKeyFromObject(shoot)]; found {
		current.cancel(errSuperseded)
	}
}

// Stop ends all flows, for an emergency stop of the seed.
func (r *Reconciler) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, current := range r.running {
		current.cancel(errStopped)
	}
}

// stopped tells whether the seed's shoots are to be left alone.
func (r *Reconciler) stopped(ctx context.Context) (bool, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Garden.Get(ctx, client.ObjectKey{Name: r.Config.SeedConfig.Name}, seed); err != nil {
		return false, fmt.Errorf("reading Seed %s: %w", r.Config.SeedConfig.Name, err)
	}
	return seed.Annotations[gardencorev1beta1.SeedEmergencyStop] == "true", nil
}

// reconcile runs the flow that creates the shoot or brings it up to date.
func (r *Reconciler) reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) (ctrl.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	if err := finalizer.Ensure(ctx, r.Garden, shoot, gardencorev1beta1.GardenerName); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.noteFiles(ctx, shoot); err != nil {
		return ctrl.Result{}, err
	}
	writer := status.NewWriter(r.Garden, shoot)
	shoot, err := takeOperations(ctx, writer, shoot)
	if err == nil {
		err = takeRestore(ctx, writer, r.Seed, shoot)
	}
	if err != nil {
		return r.notBegun(ctx, writer, err)
	}
	op, err := r.prepare(ctx, log, shoot, writer)
	if err != nil {
		return r.notBegun(ctx, writer, err)
	}
	graph, err := op.ReconcileFlow()
	if err != nil {
		return ctrl.Result{}, err
	}
	log.Info("Reconciling", "operation", op.Inputs.Shoot.Status.LastOperation.Type, "tasks", graph.Len())
	started := time.Now()
	try := r.Graphs.Begin(ctx, op.Inputs.Shoot, graph)
	err = graph.Run(op.context(ctx), r.options(writer, log, try))
	if err == nil && op.Plan.Hibernation != plan.Asleep {
		err = op.cleanUpSecrets(ctx)
	}
	try.End(err)
	defer r.operated(shoot)
	if err != nil {
		return r.failed(ctx, writer, err)
	}
	log.Info("Reconciled", "seconds", time.Since(started).Seconds())
	if err := r.succeeded(ctx, op, writer); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(r.periodOf(shoot), filesPeriodOf(shoot))}, nil
}

// succeeded writes the end of an operation, to the status at last: who is killed before that begins the operation
// anew, and nobody would write the Cluster of a shoot that has nothing to do.
func (r *Reconciler) succeeded(ctx context.Context, op *Operation, writer *status.Writer) error {
	end := status.Succeeded(op.Plan, op.Inputs.Shoot, op.infrastructure.Reported(), metav1.Now())
	op.Inputs.Shoot = writer.Current()
	end(&op.Inputs.Shoot.Status)
	if err := cluster.Write(ctx, r.Seed, op.Plan.Namespace, op.Inputs); err != nil {
		return err
	}
	return writer.Update(ctx, end)
}

// options are those of a flow about whose progress the status tells, and of each task of it the graph.
func (r *Reconciler) options(writer *status.Writer, log logr.Logger, try *taskgraph.Try) flow.Options {
	options := writer.Options(log)
	options.Wrap, options.Observer = r.WrapTask, try
	return options
}

// operated has the health of the shoot checked.
func (r *Reconciler) operated(shoot *gardencorev1beta1.Shoot) {
	if r.AfterOperation != nil {
		r.AfterOperation(client.ObjectKeyFromObject(shoot))
	}
}

// prepare reads what decides about the shoot, plans, and writes the start of the operation to the status and the
// Cluster.
func (r *Reconciler) prepare(ctx context.Context, log logr.Logger, shoot *gardencorev1beta1.Shoot,
	writer *status.Writer) (*Operation, error) {
	seedName := r.Config.SeedConfig.Name
	in, err := readInputs(ctx, r.Garden, shoot, seedName, r.GardenIdentity)
	if err != nil {
		return nil, err
	}
	in.InsecureKubeconfigs = r.Config.Egress.InsecureKubeconfigs
	in.ETCDBackup = etcdBackup(r.Config.ETCDConfig)
	if in.Asleep, err = hibernation.IsAsleep(ctx, r.Seed, plan.TechnicalID(in.ProjectName, shoot)); err != nil {
		return nil, err
	}
	recorded := &restore.Record{Seed: r.Seed, Namespace: plan.TechnicalID(in.ProjectName, shoot)}
	if in.Restore, err = recorded.Read(ctx); err != nil {
		return nil, err
	}
	if in.IsSeedSingle, err = r.isSeedSingleFor(ctx, shoot); err != nil {
		return nil, err
	}
	if in.EgressExceptions, err = r.Config.Egress.Allowances(); err != nil {
		return nil, err
	}
	gateway, err := r.gatewayOf(ctx, shoot)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(in, gateway, r.Images)
	if err != nil {
		return nil, err
	}
	// Before it has begun here, the shoot may still be bound to another seed.
	restored, err := r.readState(ctx, p.Identity, shoot)
	if err != nil {
		return nil, err
	}
	if err := writer.Update(ctx, status.Begin(p, shoot, seedName, r.Identity, metav1.Now())); err != nil {
		return nil, err
	}
	in.Shoot = writer.Current()
	if err := cluster.Write(ctx, r.Seed, p.Namespace, in); err != nil {
		return nil, err
	}
	op := newOperation(p, in, r.Garden, r.Seed, r.AskEtcd, log)
	op.foundation.RSAKey, op.workers.Status = r.RSAKey, writer
	op.begin(restored)
	return op, nil
}

// readState reads what the control plane had on another seed; nil but in a restore.
func (r *Reconciler) readState(ctx context.Context, identity plan.Identity,
	shoot *gardencorev1beta1.Shoot) (*shootstate.Restored, error) {
	if !gardencorev1beta1.IsRestoring(shoot) {
		return nil, nil
	}
	return shootstate.Read(ctx, r.Garden, identity)
}

// failed writes the failure of an operation. A flow that was cut off by a newer generation, an emergency stop or the
// end of the process has not failed: it is started again.
func (r *Reconciler) failed(ctx context.Context, writer *status.Writer, cause error) (ctrl.Result, error) {
	switch ended := context.Cause(ctx); {
	case errors.Is(ended, errSuperseded):
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	case errors.Is(ended, errStopped):
		ctrl.LoggerFrom(ctx).Info("Stopped in the middle of an operation, as the seed's emergency stop asks")
		return ctrl.Result{}, nil
	}
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	if apierrors.IsConflict(cause) {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	shoot := writer.Current()
	err := writer.Update(ctx, func(s *gardencorev1beta1.ShootStatus) {
		if s.LastOperation == nil || s.ObservedGeneration != writer.Generation() {
			now := metav1.Now()
			s.Gardener, s.UID = r.Identity, shoot.UID
			s.ObservedGeneration, s.RetryCycleStartTime = writer.Generation(), &now
			s.LastOperation = status.Start(s.LastOperation, shoot.DeletionTimestamp != nil, now)
		}
		status.Failed(cause, r.Config.Controllers.Shoot.RetryDuration.Duration, metav1.Now())(s)
	})
	if err != nil {
		return ctrl.Result{}, errors.Join(cause, err)
	}
	if writer.Current().Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed {
		ctrl.LoggerFrom(ctx).Error(cause, "The operation failed for good; it is tried again when the Shoot changes")
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, cause
}

// notBegun writes the failure of an operation that had no tasks yet.
func (r *Reconciler) notBegun(ctx context.Context, writer *status.Writer, cause error) (ctrl.Result, error) {
	result, err := r.failed(ctx, writer, cause)
	if ctx.Err() == nil && !apierrors.IsConflict(cause) {
		r.Graphs.NotBegun(ctx, writer.Current(), cause)
	}
	return result, err
}

// delete runs the flow that removes the shoot, then lets the Shoot go.
func (r *Reconciler) delete(ctx context.Context, shoot *gardencorev1beta1.Shoot) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return ctrl.Result{}, nil
	}
	log := ctrl.LoggerFrom(ctx)
	writer := status.NewWriter(r.Garden, shoot)
	p, err := r.prepareDeletion(ctx, shoot, writer)
	if err != nil {
		return r.notBegun(ctx, writer, err)
	}
	graph, err := deletion.New(p, r.Garden, r.Seed).Flow()
	if err != nil {
		return ctrl.Result{}, err
	}
	log.Info("Deleting", "tasks", graph.Len())
	try := r.Graphs.Begin(ctx, writer.Current(), graph)
	err = graph.Run(ctx, r.options(writer, log, try))
	try.End(err)
	if err != nil {
		return r.failed(ctx, writer, err)
	}
	r.Graphs.Forget(client.ObjectKeyFromObject(shoot))
	return ctrl.Result{}, r.release(ctx, writer.Current())
}

// prepareDeletion is prepare for a deletion: what cannot be planned any more is not needed for it.
func (r *Reconciler) prepareDeletion(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	writer *status.Writer) (*plan.Deletion, error) {
	project, err := projectOf(ctx, r.Garden, shoot.Namespace)
	if err != nil && shoot.Status.TechnicalID == "" {
		return nil, err
	}
	p, err := plan.NewDeletion(project, shoot)
	if err != nil {
		return nil, err
	}
	err = writer.Update(ctx, func(s *gardencorev1beta1.ShootStatus) {
		now := metav1.Now()
		s.Gardener, s.TechnicalID, s.UID = r.Identity, p.Namespace, shoot.UID
		if s.ObservedGeneration != shoot.Generation || s.RetryCycleStartTime == nil {
			s.RetryCycleStartTime = &now
		}
		s.ObservedGeneration = shoot.Generation
		s.LastOperation = status.Start(s.LastOperation, true, now)
	})
	if err != nil {
		return nil, err
	}
	return p, cluster.Refresh(ctx, r.Seed, p.Namespace, writer.Current())
}

// release removes the finalizer. Others write to the Shoot as well, so a conflict is tried again with what the cache
// has by then.
func (r *Reconciler) release(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	err := retry.OnError(releaseBackoff, apierrors.IsConflict, func() error {
		err := finalizer.Remove(ctx, r.Garden, shoot, gardencorev1beta1.GardenerName)
		if apierrors.IsConflict(err) {
			if getErr := r.Garden.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); getErr != nil {
				return getErr
			}
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer from Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	r.files.Delete(client.ObjectKeyFromObject(shoot))
	ctrl.LoggerFrom(ctx).Info("Deleted")
	return nil
}
