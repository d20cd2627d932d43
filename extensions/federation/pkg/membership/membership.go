package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const (
	// lifetime of a member's credentials; they are renewed when half of it is over.
	lifetime = 24 * time.Hour
	// checkInterval is how often a fleet is looked at when no event asks for it.
	checkInterval = time.Minute
)

// Reconciler keeps the members of one fleet after another up to date. A request names the fleet's Extension object.
type Reconciler struct {
	// Seed reads Extensions, Clusters and the fleets' credentials.
	Seed client.Client
	// Garden lists the shoots of a namespace and asks for credentials.
	Garden client.Client
	// Follow has the namespace of a fleet watched.
	Follow Follow
	// FleetScheme knows the kinds that are written into fleets.
	FleetScheme *runtime.Scheme
	// Now is the clock.
	Now func() time.Time
}

// Reconcile handles one fleet.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &extensionsv1alpha1.Extension{}
	err := r.Seed.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.Follow(ctx, request.NamespacedName, "")
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	shoot, err := cluster.Get(ctx, r.Seed, object.Namespace)
	if err != nil || !isServing(object, shoot) {
		return reconcile.Result{}, err
	}
	if err := r.Follow(ctx, request.NamespacedName, shoot.Shoot.Namespace); err != nil {
		return reconcile.Result{}, err
	}
	fleet, err := cluster.ShootClient(ctx, r.Seed, object.Namespace, r.FleetScheme)
	if err != nil {
		return reconcile.Result{}, err
	}
	var shoots gardencorev1beta1.ShootList
	if err := r.Garden.List(ctx, &shoots, client.InNamespace(shoot.Shoot.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the shoots of the project: %w", err)
	}
	if err := r.sync(ctx, fleet, shoots.Items); err != nil {
		return reconcile.Result{}, fmt.Errorf("members of fleet %s/%s: %w", shoot.Shoot.Namespace, shoot.Shoot.Name,
			err)
	}
	return reconcile.Result{RequeueAfter: lookAgain(shoots.Items, r.Now())}, nil
}

// isServing: the fleet's kinds are there, and its API is not about to go.
func isServing(object *extensionsv1alpha1.Extension, shoot *cluster.Cluster) bool {
	last := object.Status.LastOperation
	return object.DeletionTimestamp == nil && shoot != nil && shoot.Shoot != nil &&
		shoot.Shoot.DeletionTimestamp == nil &&
		!shoot.IsHibernated() && last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded
}

// sync goes on after failures of single members.
func (r *Reconciler) sync(ctx context.Context, fleet client.Client, shoots []gardencorev1beta1.Shoot) error {
	if err := registration.EnsureNamespace(ctx, fleet, clusterv1alpha1.CredentialsNamespace); err != nil {
		return err
	}
	var failures []error
	wanted := map[string]bool{}
	for i := range shoots {
		if shoot := &shoots[i]; wantsMembership(shoot) {
			wanted[shoot.Name] = true
			if err := r.join(ctx, fleet, shoot); err != nil {
				failures = append(failures, fmt.Errorf("shoot %s: %w", shoot.Name, err))
			}
		}
	}
	return errors.Join(append(failures, r.removeOthers(ctx, fleet, wanted))...)
}

// join writes credentials and Cluster of a shoot. A shoot whose API isn't up yet is waited for; one that was, stays.
func (r *Reconciler) join(ctx context.Context, fleet client.Client, shoot *gardencorev1beta1.Shoot) error {
	existing := &clusterv1alpha1.Cluster{}
	err := fleet.Get(ctx, client.ObjectKey{Name: shoot.Name}, existing)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	found := err == nil
	switch {
	case !found && !isReachable(shoot), existing.DeletionTimestamp != nil:
		return nil
	case found && existing.Labels[clusterv1alpha1.ShootLabel] == "":
		return fmt.Errorf("the fleet has an imported cluster of this name; rename it, or set the label %s=false on "+
			"the shoot", fleetv1alpha1.JoinLabel)
	}
	endpoint, err := r.ensureCredentials(ctx, fleet, shoot)
	if err != nil {
		return err
	}
	works := 0
	if found && wantsSleep(shoot) && !shoot.Status.IsHibernated {
		if works, err = worksLeft(ctx, fleet, shoot.Name); err != nil {
			return err
		}
	}
	if err := applyCluster(ctx, fleet,
		clusterFor(shoot, endpoint, restsNow(shoot, existing, works, r.Now()))); err != nil {
		return err
	}
	return r.drain(ctx, fleet, shoot)
}

// ensureCredentials renews the Secret when it is time to, and gives the endpoint that they are good for.
func (r *Reconciler) ensureCredentials(ctx context.Context, fleet client.Client,
	shoot *gardencorev1beta1.Shoot) (string, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: shoot.Name},
	}
	if err := fleet.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		return "", err
	}
	authorities := authoritiesOf(shoot, secret.Annotations[authoritiesAnnotation])
	if renew, err := time.Parse(time.RFC3339, secret.Annotations[renewAnnotation]); err == nil &&
		r.Now().Before(renew) && authorities == secret.Annotations[authoritiesAnnotation] {
		endpoint, _, err := reduce(secret.Data[clusterv1alpha1.SecretKubeconfig])
		return endpoint, err
	}
	logr.FromContextOrDiscard(ctx).Info("Renewing credentials", "shoot", client.ObjectKeyFromObject(shoot))
	seconds := int64(lifetime.Seconds())
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
	}
	if err := r.Garden.SubResource("adminkubeconfig").Create(ctx, shoot, request); err != nil {
		return "", fmt.Errorf("asking for credentials: %w", err)
	}
	endpoint, kubeconfig, err := reduce(request.Status.Kubeconfig)
	if err != nil {
		return "", err
	}
	renew := r.Now().Add(request.Status.ExpirationTimestamp.Sub(r.Now()) / 2)
	_, err = controllerutil.CreateOrPatch(ctx, fleet, secret, func() error {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, clusterv1alpha1.ShootLabel, shoot.Name)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, renewAnnotation, renew.UTC().Format(time.RFC3339))
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, authoritiesAnnotation, authorities)
		secret.Data = map[string][]byte{clusterv1alpha1.SecretKubeconfig: kubeconfig}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return endpoint, nil
}

// applyCluster owns what comes from the shoot. Labels, taints and others that people add stay.
func applyCluster(ctx context.Context, fleet client.Client, wanted *clusterv1alpha1.Cluster) error {
	return apply.Objects(ctx, fleet, apply.Membership, wanted)
}

// removeOthers lets members go whose shoot is gone. Their credentials are kept until nothing of the fleet is left
// there.
func (r *Reconciler) removeOthers(ctx context.Context, fleet client.Client, wanted map[string]bool) error {
	var clusters clusterv1alpha1.ClusterList
	if err := fleet.List(ctx, &clusters, client.HasLabels{clusterv1alpha1.ShootLabel}); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	present := map[string]bool{}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		present[c.Name] = true
		if wanted[c.Name] || c.DeletionTimestamp != nil {
			continue
		}
		if err := fleet.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing cluster %s: %w", c.Name, err)
		}
	}
	var secrets corev1.SecretList
	if err := fleet.List(ctx, &secrets, client.InNamespace(clusterv1alpha1.CredentialsNamespace),
		client.HasLabels{clusterv1alpha1.ShootLabel}); err != nil {
		return fmt.Errorf("listing credentials: %w", err)
	}
	for i := range secrets.Items {
		if s := &secrets.Items[i]; !wanted[s.Name] && !present[s.Name] {
			if err := fleet.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("removing the credentials of %s: %w", s.Name, err)
			}
		}
	}
	return nil
}
