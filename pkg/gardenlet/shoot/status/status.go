// Package status writes how the operations on a Shoot go to its status: their progress, what came of them, and errors
// with codes.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// progressPeriod is the least time between two reports of progress.
const progressPeriod = time.Second

// Writer writes the status of one Shoot during one operation. It is safe for concurrent use.
type Writer struct {
	garden client.Client
	// generation is what the operation works for; the object below follows the API server and may be newer.
	generation int64

	mu    sync.Mutex
	shoot *gardencorev1beta1.Shoot
}

// NewWriter returns the writer for an operation on the Shoot as it is.
func NewWriter(garden client.Client, shoot *gardencorev1beta1.Shoot) *Writer {
	return &Writer{garden: garden, generation: shoot.Generation, shoot: shoot.DeepCopy()}
}

// Current returns the Shoot as it was last written.
func (w *Writer) Current() *gardencorev1beta1.Shoot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shoot.DeepCopy()
}

// Update changes the status and writes it if that made a difference.
func (w *Writer) Update(ctx context.Context, change func(*gardencorev1beta1.ShootStatus)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.shoot.DeepCopy()
	change(&w.shoot.Status)
	if apiequality.Semantic.DeepEqual(before.Status, w.shoot.Status) {
		return nil
	}
	if err := w.garden.Status().Patch(ctx, w.shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of Shoot %s/%s: %w", before.Namespace, before.Name, err)
	}
	return nil
}

// Generation is what the operation works for; the Shoot may be newer.
func (w *Writer) Generation() int64 { return w.generation }

// DropOperations takes operations out of the annotation of the Shoot; what others add to it meanwhile must not get
// lost.
func (w *Writer) DropOperations(ctx context.Context, done []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	patch := client.MergeFromWithOptions(w.shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})
	left :=
		slices.DeleteFunc(gardencorev1beta1.SplitOperations(w.shoot.Annotations[gardencorev1beta1.GardenerOperation]),
			func(operation string) bool {
				return slices.Contains(done, operation)
			})
	if slices.ContainsFunc(done, gardencorev1beta1.IsRestoreOperation) {
		// The next one is to be confirmed by itself.
		delete(w.shoot.Annotations, gardencorev1beta1.AnnotationConfirmationRestoreETCD)
	}
	if len(left) > 0 {
		w.shoot.Annotations[gardencorev1beta1.GardenerOperation] = strings.Join(left, ";")
	} else {
		delete(w.shoot.Annotations, gardencorev1beta1.GardenerOperation)
	}
	if err := w.garden.Patch(ctx, w.shoot, patch); err != nil {
		return fmt.Errorf("taking operations %s out of the annotations of Shoot %s/%s: %w", strings.Join(done, ", "),
			w.shoot.Namespace, w.shoot.Name, err)
	}
	return nil
}

// Options are those of a flow that the status tells about.
func (w *Writer) Options(log logr.Logger) flow.Options {
	return flow.Options{Log: log, OnProgress: w.progress, ProgressPeriod: progressPeriod, OnSuccess: w.taskSucceeded}
}

// progress reports how far the flow is.
func (w *Writer) progress(ctx context.Context, p flow.Progress) {
	if len(p.Running) == 0 {
		return
	}
	// A lost report does no harm: the next one, or the end of the operation, replaces it.
	_ = w.Update(ctx, func(s *gardencorev1beta1.ShootStatus) {
		if s.LastOperation == nil {
			return
		}
		s.LastOperation.Progress = int32(p.Percent)
		s.LastOperation.Description = p.Description()
		s.LastOperation.LastUpdateTime = metav1.Now()
	})
}

// taskSucceeded forgets the error that a task had in an earlier run.
func (w *Writer) taskSucceeded(ctx context.Context, task flow.TaskID) {
	w.mu.Lock()
	stale := len(withoutTask(w.shoot.Status.LastErrors, string(task))) != len(w.shoot.Status.LastErrors)
	w.mu.Unlock()
	if !stale {
		return
	}
	_ = w.Update(ctx, func(s *gardencorev1beta1.ShootStatus) { s.LastErrors = withoutTask(s.LastErrors, string(task)) })
}

// Begin returns the change of the status at the start of an operation.
func Begin(p *plan.Plan, shoot *gardencorev1beta1.Shoot, seedName string, gardener gardencorev1beta1.Gardener,
	now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(s *gardencorev1beta1.ShootStatus) {
		s.Gardener = gardener
		s.TechnicalID = p.Namespace
		s.UID = shoot.UID
		s.SeedName = &seedName
		s.ClusterIdentity = &p.ClusterIdentity
		s.AdvertisedAddresses = p.Addresses
		if s.ObservedGeneration != shoot.Generation || s.RetryCycleStartTime == nil {
			s.RetryCycleStartTime = &now
		}
		s.ObservedGeneration = shoot.Generation
		if s.Networking == nil {
			s.Networking = &gardencorev1beta1.NetworkingStatus{}
		}
		s.Networking.Pods, s.Networking.Services = p.Networks.Pods, p.Networks.Services
		if len(p.Networks.Nodes) > 0 {
			s.Networking.Nodes = p.Networks.Nodes
		}
		s.LastOperation = Start(s.LastOperation, shoot.DeletionTimestamp != nil, now)
	}
}

// Start returns the last operation at its start.
func Start(last *gardencorev1beta1.LastOperation, deleting bool, now metav1.Time) *gardencorev1beta1.LastOperation {
	t := operationType(last, deleting)
	return &gardencorev1beta1.LastOperation{
		Type: t, State: gardencorev1beta1.LastOperationStateProcessing, LastUpdateTime: now,
		Description: fmt.Sprintf("%s of Shoot cluster initialized.", t),
	}
}

func isRestoring(last *gardencorev1beta1.LastOperation) bool {
	return last != nil && last.Type == gardencorev1beta1.LastOperationTypeRestore &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded
}

// operationType says what kind of operation comes after the last one: creation and restore go on until they succeeded.
func operationType(last *gardencorev1beta1.LastOperation, deleting bool) gardencorev1beta1.LastOperationType {
	switch {
	case deleting:
		return gardencorev1beta1.LastOperationTypeDelete
	case last == nil:
		return gardencorev1beta1.LastOperationTypeCreate
	case last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return gardencorev1beta1.LastOperationTypeCreate
	case isRestoring(last):
		return gardencorev1beta1.LastOperationTypeRestore
	default:
		return gardencorev1beta1.LastOperationTypeReconcile
	}
}

// Infrastructure is what the status tells of it.
type Infrastructure struct {
	// Nodes are the networks of the nodes, Egress those that traffic leaves from.
	Nodes, Egress []string
}

// Succeeded returns the change of the status after a flow that has brought about a plan; infrastructure is nil if the
// flow had none.
func Succeeded(p *plan.Plan, shoot *gardencorev1beta1.Shoot, infrastructure *Infrastructure,
	now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(s *gardencorev1beta1.ShootStatus) {
		finished(infrastructure, p.Hibernation != plan.Awake, now)(s)
		if s.Credentials == nil {
			s.Credentials = &gardencorev1beta1.ShootCredentials{}
		}
		if p.Hibernation != plan.Asleep {
			s.Credentials.EncryptionAtRest = plan.EncryptionAtRest(p.APIServer().Encryption.Scheme())
		}
		rotation.Finish(shoot, now)(s)
	}
}

// finished returns the change of the status after a flow without errors.
func finished(infrastructure *Infrastructure, hibernated bool, now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(s *gardencorev1beta1.ShootStatus) {
		s.IsHibernated = hibernated
		if s.LastOperation != nil {
			s.LastOperation.State = gardencorev1beta1.LastOperationStateSucceeded
			s.LastOperation.Progress = 100
			s.LastOperation.Description = successOf(s.LastOperation.Type)
			s.LastOperation.LastUpdateTime = now
		}
		s.LastErrors = nil
		s.RetryCycleStartTime = nil
		if infrastructure != nil && s.Networking != nil {
			if len(infrastructure.Nodes) > 0 {
				s.Networking.Nodes = infrastructure.Nodes
			}
			s.Networking.EgressCIDRs = infrastructure.Egress
		}
	}
}

// successOf tells of an operation that succeeded.
func successOf(operation gardencorev1beta1.LastOperationType) string {
	if operation == gardencorev1beta1.LastOperationTypeRestore {
		return "Shoot cluster has been successfully restored."
	}
	return "Shoot cluster has been successfully reconciled."
}

// Failed returns the change of the status after a flow with errors. The operation has failed for good when the user
// must do something, or it was tried for too long; otherwise it will be tried again.
func Failed(cause error, retryFor time.Duration, now metav1.Time) func(*gardencorev1beta1.ShootStatus) {
	return func(s *gardencorev1beta1.ShootStatus) {
		s.LastErrors = lastErrors(cause, now)
		if s.LastOperation == nil {
			return
		}
		s.LastOperation.LastUpdateTime = now
		tooLong := s.RetryCycleStartTime != nil && now.Sub(s.RetryCycleStartTime.Time) > retryFor
		if hopeless(s.LastErrors) || tooLong {
			s.LastOperation.State = gardencorev1beta1.LastOperationStateFailed
			s.LastOperation.Description = cause.Error()
			return
		}
		s.LastOperation.State = gardencorev1beta1.LastOperationStateError
		s.LastOperation.Description = cause.Error() + " Operation will be retried."
	}
}

// IsFailed says whether the last operation failed for good and nothing has changed since.
func IsFailed(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed &&
		shoot.Status.ObservedGeneration == shoot.Generation
}

// Settled says whether the latest generation has been brought about.
func Settled(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
		shoot.Status.ObservedGeneration == shoot.Generation
}

// SeedOf returns the seed that hosts the control plane now, else the one it is assigned to.
func SeedOf(shoot *gardencorev1beta1.Shoot) string {
	return ptr.Deref(cmp.Or(shoot.Status.SeedName, shoot.Spec.SeedName), "")
}
