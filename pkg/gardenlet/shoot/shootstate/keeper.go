package shootstate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
	"github.com/trellis-garden/trellis/pkg/machinestate"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// keepTimeout bounds one look at a control plane.
	keepTimeout = 20 * time.Second
	// recheck is how often the garden is asked for a state although nothing has changed: somebody may have deleted it.
	recheck = 10 * time.Minute
)

// Keeper keeps the ShootStates of the shoots of a seed up to date.
type Keeper struct {
	// Garden and Seed are clients.
	Garden, Seed client.Client
	// SeedName is the name of this seed.
	SeedName string
	// Period is how often a shoot is looked at, and so how much of what is new may be missing elsewhere.
	Period time.Duration

	// written holds what was last written of each shoot, as a writing by its key.
	written sync.Map
}

// writing is the checksum of a state, and when it was written or found to be there.
type writing struct {
	sum [sha256.Size]byte
	at  time.Time
}

// Reconcile looks at one shoot.
func (k *Keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := k.Garden.Get(ctx, req.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			k.written.Delete(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !k.hosts(shoot) {
		return ctrl.Result{RequeueAfter: k.Period}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if err := k.keep(ctx, shoot); err != nil {
		return ctrl.Result{}, fmt.Errorf("keeping the state of Shoot %s: %w", req, err)
	}
	return ctrl.Result{RequeueAfter: k.Period}, nil
}

// hosts tells whether all of the shoot's control plane is here. One that is being restored may lack what the state has.
func (k *Keeper) hosts(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return ptr.Deref(shoot.Spec.SeedName, "") == k.SeedName && status.SeedOf(shoot) == k.SeedName &&
		shoot.DeletionTimestamp == nil && shoot.Status.TechnicalID != "" && last != nil &&
		!gardencorev1beta1.IsRestoring(shoot)
}

// keep writes the ShootState if something has changed.
func (k *Keeper) keep(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	spec, err := k.look(ctx, shoot)
	if err != nil {
		return err
	}
	if len(spec.Gardener) == 0 {
		// What was kept is not replaced by what a loss has left.
		return errors.New("the namespace of the control plane has no authorities and keys; the ShootState stays")
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	key, now := client.ObjectKeyFromObject(shoot), writing{sum: sha256.Sum256(text), at: time.Now()}
	if last, found := k.written.Load(key); found && last.(writing).sum == now.sum &&
		now.at.Sub(last.(writing).at) < recheck {
		return nil
	}
	if err := k.write(ctx, key, spec); err != nil {
		return err
	}
	k.written.Store(key, now)
	return nil
}

func (k *Keeper) write(ctx context.Context, key client.ObjectKey, spec gardencorev1beta1.ShootStateSpec) error {
	state := &gardencorev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	_, err := controllerutil.CreateOrPatch(ctx, k.Garden, state, func() error {
		state.Spec = spec
		return nil
	})
	return err
}

// look reads what the namespace of a control plane has.
func (k *Keeper) look(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (spec gardencorev1beta1.ShootStateSpec, err error) {
	in := client.InNamespace(shoot.Status.TechnicalID)
	managed := &corev1.SecretList{}
	if err := k.Seed.List(ctx, managed, in,
		client.MatchingLabels{secrets.LabelManagedBy: secrets.LabelManagedByValue}); err != nil {
		return spec, fmt.Errorf("listing the secrets: %w", err)
	}
	machines := &machinestate.State{}
	if len(shoot.Spec.Provider.Workers) > 0 {
		if machines, err = k.machines(ctx, in); err != nil {
			return spec, err
		}
	}
	objects, err := extension.ListOfShoot(ctx, k.Seed, shoot.Status.TechnicalID)
	if err != nil {
		return spec, err
	}
	return collect(managed.Items, machines, objects)
}

func (k *Keeper) machines(ctx context.Context, in client.InNamespace) (*machinestate.State, error) {
	var (
		deployments machinev1alpha1.MachineDeploymentList
		sets        machinev1alpha1.MachineSetList
		machines    machinev1alpha1.MachineList
	)
	// Machines first: one that is made meanwhile has its set then.
	for _, list := range []client.ObjectList{&machines, &sets, &deployments} {
		if err := k.Seed.List(ctx, list, in); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	return machinestate.Collect(deployments.Items, sets.Items, machines.Items), nil
}

// Remove deletes the ShootState of a shoot that is gone, if there is one.
func Remove(ctx context.Context, garden client.Client, shoot plan.Identity) error {
	state := &gardencorev1beta1.ShootState{}
	key := client.ObjectKey{Namespace: shoot.ShootNamespace, Name: shoot.ShootName}
	err := garden.Get(ctx, key, state)
	if err == nil {
		before := client.MergeFrom(state.DeepCopy())
		metav1.SetMetaDataAnnotation(&state.ObjectMeta, gardencorev1beta1.ConfirmationDeletion, "true")
		if err = garden.Patch(ctx, state, before); err == nil {
			err = garden.Delete(ctx, state)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ShootState %s: %w", key, err)
	}
	return nil
}
