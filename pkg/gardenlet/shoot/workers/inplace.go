package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/inplace"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// admissionInterval is how often nodes that were updated are looked at, while machines are waited for.
const admissionInterval = 2 * time.Second

// inPlaceUpdates is what an OperatingSystemConfig tells of updates in place; nil where machines are replaced.
func inPlaceUpdates(pool plan.Pool) *extensionsv1alpha1.InPlaceUpdates {
	if pool.InPlace == nil {
		return nil
	}
	told := &extensionsv1alpha1.InPlaceUpdates{
		OperatingSystemVersion: pool.ImageVersion, Kubelet: pool.KubernetesVersion,
	}
	rotations := extensionsv1alpha1.CredentialsRotation{}
	if at := pool.InPlace.AuthoritiesInitiated; at != nil {
		rotations.CertificateAuthorities = &extensionsv1alpha1.CARotation{LastInitiationTime: at}
	}
	if at := pool.InPlace.KeyInitiated; at != nil {
		rotations.ServiceAccountKey = &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: at}
	}
	if rotations != (extensionsv1alpha1.CredentialsRotation{}) {
		told.CredentialsRotation = &rotations
	}
	return told
}

// addInPlaceWait adds the wait for what machines need that are updated in place: what they are updated to, and who
// signs certificates for them after a rotation.
func (w *Workers) addInPlaceWait(g *flow.Graph, c controlplane.Tasks, nodeAgent flow.TaskID) flow.TaskID {
	after := []flow.TaskID{nodeAgent}
	skip := !w.Plan.UpdatesInPlace() || w.Plan.Hibernation != plan.Awake
	if !skip {
		after = append(after, c.Controllers...)
	}
	return g.Add(flow.Task{
		Name:   "Waiting until machines can be updated in place",
		SkipIf: skip, Dependencies: after,
		Fn: flow.TaskFn(w.checkConfigurationsReadable).RetryUntilTimeout(tasks.RetryInterval, tasks.RolloutTimeout),
	})
}

// checkConfigurationsReadable is an error until the shoot has what machines are to be updated to in place. Only then
// may machine-controller-manager drain them: node-agent takes what it finds when its node is ready for the update.
func (w *Workers) checkConfigurationsReadable(ctx context.Context) error {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, pool := range w.Plan.Pools {
		if pool.InPlace == nil {
			continue
		}
		wanted, err := w.configurationChecksum(ctx, pool)
		if err != nil {
			return err
		}
		secret, err := clientset.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, pool.SecretName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading Secret %s/%s of the shoot: %w", metav1.NamespaceSystem, pool.SecretName, err)
		}
		if sum := sha256.Sum256(secret.Data[oscKey]); hex.EncodeToString(sum[:]) != wanted {
			return fmt.Errorf("Secret %s/%s of the shoot does not have the latest configuration of pool %s yet; see "+
				"ManagedResource %s", metav1.NamespaceSystem, pool.SecretName, pool.Worker.Name, resourceNodeAgent)
		}
	}
	return nil
}

// notePendingUpdates writes to the status of the Shoot which pools are about to wait for updates in place. It does so
// before the Worker asks for them: killed in between, gardenlet finds the Worker as it was, and notes them again.
func (w *Workers) notePendingUpdates(ctx context.Context, pools []extensionsv1alpha1.WorkerPool) error {
	if !w.Plan.UpdatesInPlace() {
		return nil
	}
	worker, err := w.worker(ctx)
	if err != nil {
		return err
	}
	begun := inplace.Begun(worker.Spec.Pools, pools)
	return w.Status.Update(ctx, func(s *gardencorev1beta1.ShootStatus) { inplace.Begin(s, begun) })
}

// noteUpdated writes to the status of the Shoot which pools wait no more.
func (w *Workers) noteUpdated(ctx context.Context) error {
	if !w.Plan.UpdatesInPlace() {
		return nil
	}
	worker, err := w.worker(ctx)
	if err != nil {
		return err
	}
	updated, err := inplace.Updated(ctx, w.Seed, worker)
	if err != nil {
		return err
	}
	return w.Status.Update(ctx, func(s *gardencorev1beta1.ShootStatus) {
		inplace.Settle(s, w.workers(), updated)
	})
}

// worker reads the Worker; one that does not exist is empty.
func (w *Workers) worker(ctx context.Context) (*extensionsv1alpha1.Worker, error) {
	worker := &extensionsv1alpha1.Worker{}
	key := w.Plan.Key(w.Plan.ShootName)
	if err := client.IgnoreNotFound(w.Seed.Get(ctx, key, worker)); err != nil {
		return nil, fmt.Errorf("reading Worker %s: %w", key, err)
	}
	return worker, nil
}

// workers are the pools as the Shoot has them.
func (w *Workers) workers() []gardencorev1beta1.Worker {
	var all []gardencorev1beta1.Worker
	for _, pool := range w.Plan.Pools {
		all = append(all, pool.Worker)
	}
	return all
}

// admitUpdatedNodes lets pods on nodes that have been updated, until the returned function is called: the drain of the
// next node needs the place.
func (w *Workers) admitUpdatedNodes(ctx context.Context) (end func()) {
	var pools []string
	for _, pool := range w.Plan.Pools {
		if pool.InPlace != nil {
			pools = append(pools, pool.Worker.Name)
		}
	}
	if len(pools) == 0 || w.Plan.Hibernation != plan.Awake {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) { w.admit(ctx, pools) }, admissionInterval)
	}()
	return func() { cancel(); <-done }
}

func (w *Workers) admit(ctx context.Context, pools []string) {
	if err := w.tryToAdmit(ctx, pools); err != nil && ctx.Err() == nil {
		w.Log.V(1).Info("nodes that were updated do not take pods yet", "reason", err.Error())
	}
}

func (w *Workers) tryToAdmit(ctx context.Context, pools []string) error {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return inplace.AdmitNodes(ctx, clientset, nodes.Items, pools)
}
