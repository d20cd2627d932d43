package kills

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/shootstate"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// seedIsLost has the state of the shoot kept, and then everything of it gone from the seed, which so is another one, to
// which the shoot is bound. Its backups are that seed's.
func seedIsLost(ctx context.Context, w *world) error {
	keeper := &shootstate.Keeper{
		Garden: w.gardenClient, Seed: w.seedClient, SeedName: seedName, Period: time.Minute,
	}
	if _, err := keeper.Reconcile(ctx, ctrl.Request{NamespacedName: shootKey}); err != nil {
		return err
	}
	if err := w.loseSeed(ctx); err != nil {
		return err
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := w.gardenClient.Get(ctx, shootKey, shoot); err != nil {
		return err
	}
	shoot.Status.BeginRestore("another", seedName, metav1.Now())
	if err := w.gardenClient.Status().Update(ctx, shoot); err != nil {
		return err
	}
	entry := &gardencorev1beta1.BackupEntry{}
	key := client.ObjectKey{
		Namespace: gardenNamespace, Name: gardencorev1beta1.BackupEntryName(technicalID, string(shoot.UID)),
	}
	if err := w.gardenClient.Get(ctx, key, entry); err != nil {
		return err
	}
	entry.Status = gardencorev1beta1.BackupEntryStatus{}
	if err := w.gardenClient.Status().Update(ctx, entry); err != nil {
		return err
	}
	return change(withPurpose)(ctx, w)
}

// loseSeed removes what the seed has of the shoot, whatever holds it.
func (w *world) loseSeed(ctx context.Context) error {
	for _, stored := range w.stored() {
		o := stored.DeepCopyObject().(client.Object)
		_, isNamespace := o.(*corev1.Namespace)
		_, isCluster := o.(*extensionsv1alpha1.Cluster)
		if o.GetNamespace() != technicalID && !(isNamespace || isCluster) || o.GetName() == gardenNamespace ||
			isNamespace && o.GetName() != technicalID {
			continue
		}
		o.SetFinalizers(nil)
		err := w.seedClient.Update(ctx, o)
		if err == nil {
			err = w.seedClient.Delete(ctx, o)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("losing %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// What was lost with its seed is the same cluster on another one: its authorities and keys are those that nodes, users
// and tokens know, and extensions are asked to go on with what there is.
func TestRestoredOnAnotherSeed(t *testing.T) {
	server()
	var created scenario
	for _, s := range scenarios {
		if s.name == "creation with backups" {
			created = s
		}
	}
	_, before := undisturbed(t, created, state{})
	var kept, found map[string]map[string][]byte
	var state string
	last := &gardencorev1beta1.LastOperation{}
	_, err := inWorld(t, before, func(ctx context.Context, w *world) (err error) {
		if kept, err = w.keys(ctx); err != nil {
			return err
		}
		if err := seedIsLost(ctx, w); err != nil {
			return err
		}
		if gone, err := w.keys(ctx); err != nil || len(gone) > 0 {
			return fmt.Errorf("the seed still has %d keys: %v", len(gone), err)
		}
		if err := operate(ctx, w, observer{}); err != nil {
			return err
		}
		if found, err = w.keys(ctx); err != nil {
			return err
		}
		infrastructure := &extensionsv1alpha1.Infrastructure{}
		key := client.ObjectKey{Namespace: technicalID, Name: shootName}
		if err := w.seedClient.Get(ctx, key, infrastructure); err != nil {
			return err
		}
		state = string(infrastructure.Status.LastOperation.Type) + " " + string(infrastructure.Status.State.Raw)
		shoot := &gardencorev1beta1.Shoot{}
		err = w.gardenClient.Get(ctx, shootKey, shoot)
		last = shoot.Status.LastOperation
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b map[string][]byte) bool {
		return maps.EqualFunc(a, b, func(a, b []byte) bool { return string(a) == string(b) })
	}
	if len(kept) < 10 || !maps.EqualFunc(kept, found, same) {
		t.Errorf("of %d authorities and keys, %d are there, or they are others", len(kept), len(found))
	}
	if state != `Restore {"id":"n1"}` {
		t.Errorf("the Infrastructure was asked for, and has: %s", state)
	}
	if last.Type != gardencorev1beta1.LastOperationTypeRestore ||
		last.State != gardencorev1beta1.LastOperationStateSucceeded ||
		last.Description != "Shoot cluster has been successfully restored." {
		t.Errorf("the Shoot tells %+v", last)
	}
}

// keys are the authorities and keys of the control plane, by their names.
func (w *world) keys(ctx context.Context) (map[string]map[string][]byte, error) {
	list := &corev1.SecretList{}
	if err := w.seedClient.List(ctx, list, client.InNamespace(technicalID)); err != nil {
		return nil, err
	}
	found := map[string]map[string][]byte{}
	for i := range list.Items {
		if secrets.IsPersistent(&list.Items[i]) {
			found[list.Items[i].Name] = list.Items[i].Data
		}
	}
	return found, nil
}
