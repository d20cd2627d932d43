// Package drain tells shoots that are members of the fleet, by a Lease in each, whether the fleet has something there
// that has to leave before the shoot sleeps. The shoot's gardenlet, which cannot ask the fleet, waits for that. Package
// failover moves the objects.
package drain

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const (
	// renewal is how often a Lease is renewed, and duration how long it holds. A fleet that is away is waited for only
	// if that happened lately.
	renewal  = time.Minute
	duration = 3 * renewal
	// look is how often a member that is being drained is looked at; elsewhere events and renewals are enough.
	look = 2 * time.Second
	// retryConnection is when a member is looked at again that the fleet has not connected to yet.
	retryConnection = 5 * time.Second
)

// drain handles Clusters.
type drain struct {
	client client.Client
	// connection gives access to a member, if the fleet is connected to it.
	connection func(name string) (client.Client, bool)
	now        func() time.Time

	mu sync.Mutex
	// leases is what was last written into members.
	leases map[string]lease
}

// lease is what a member was told, and when.
type lease struct {
	held bool
	at   time.Time
}

// Reconcile handles one member.
func (d *drain) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := d.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		d.forget(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isListening(cluster) {
		d.forget(cluster.Name)
		return reconcile.Result{}, nil
	}
	member, connected := d.connection(cluster.Name)
	if !connected {
		return reconcile.Result{RequeueAfter: retryConnection}, nil
	}
	held, err := d.holds(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := d.tell(ctx, member, cluster.Name, held); err != nil {
		return reconcile.Result{}, err
	}
	if held && isDrained(cluster) {
		return reconcile.Result{RequeueAfter: look}, nil
	}
	return reconcile.Result{RequeueAfter: renewal}, nil
}

// isListening tells whether a member is a shoot that answers.
func isListening(cluster *clusterv1alpha1.Cluster) bool {
	asleep := cluster.Annotations[clusterv1alpha1.HibernatedAnnotation] == "true"
	return cluster.Labels[clusterv1alpha1.ShootLabel] != "" && !asleep &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// holds tells whether something of the fleet has to leave a member before that sleeps. One that leaves the fleet is not
// held up.
func (d *drain) holds(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if cluster.DeletionTimestamp != nil {
		return false, nil
	}
	var works workv1alpha1.WorkList
	namespace := clusterv1alpha1.ExecutionNamespace(cluster.Name)
	if err := d.client.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the Works of %s: %w", cluster.Name, err)
	}
	for i := range works.Items {
		key, made := bindings.OfWork(&works.Items[i])
		if !made {
			continue
		}
		b, err := bindings.Get(ctx, d.client, key)
		if err != nil || leaves(cluster, &works.Items[i], b, d.now()) {
			return true, err
		}
	}
	return false, nil
}

// tell writes or removes the Lease, unless the member was told the same lately.
func (d *drain) tell(ctx context.Context, member client.Client, name string, held bool) error {
	told, known := d.told(name)
	if known && told.held == held && (!held || d.now().Sub(told.at) < renewal) {
		return nil
	}
	fleetID, err := registration.Identity(ctx, d.client)
	if err != nil {
		return err
	}
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	object := &coordinationv1.Lease{}
	object.Namespace, object.Name = metav1.NamespaceSystem, registration.AccessName(fleetID)
	if held {
		renew := func() error { fill(object, fleetID, d.now()); return nil }
		_, err = controllerutil.CreateOrPatch(ctx, member, object, renew)
	} else {
		err = client.IgnoreNotFound(member.Delete(ctx, object))
	}
	if err != nil {
		return fmt.Errorf("Lease %s of member %s: %w", client.ObjectKeyFromObject(object), name, err)
	}
	d.remember(name, lease{held, d.now()})
	return nil
}

// fill renews a Lease.
func fill(object *coordinationv1.Lease, fleetID string, now time.Time) {
	metav1.SetMetaDataLabel(&object.ObjectMeta, clusterv1alpha1.DrainLeaseLabel, "true")
	renewed := metav1.NewMicroTime(now)
	object.Spec.HolderIdentity, object.Spec.RenewTime = &fleetID, &renewed
	object.Spec.LeaseDurationSeconds = new(int32(duration.Seconds()))
}

func (d *drain) told(name string) (lease, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	told, known := d.leases[name]
	return told, known
}

func (d *drain) remember(name string, told lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases[name] = told
}

func (d *drain) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.leases, name)
}
