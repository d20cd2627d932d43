// Package seed cares for the Seed object of this gardenlet: it creates it from the configuration, proves with a Lease
// that gardenlet is alive, installs what the seed needs, and reports its health.
package seed

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/exposure"
	"github.com/trellis-garden/trellis/pkg/gardenlet/spread"
	"github.com/trellis-garden/trellis/pkg/version"
)

// Reconciler brings the seed into the state that the Seed object asks for.
type Reconciler struct {
	// Garden is a client of the garden, Seed one of the seed (not a cache).
	Garden, Seed client.Client
	// Config is gardenlet's configuration.
	Config *config.Configuration
	// System installs what the seed needs.
	System *System
	// Discovery asks the seed for its version.
	Discovery discovery.DiscoveryInterface
	// Identity of this process.
	Identity gardencorev1beta1.Gardener
	// CertificateExpiration is when gardenlet's certificate ends; nil when unknown.
	CertificateExpiration *metav1.Time

	// refused is why the garden does not take over the configuration; empty when it has.
	refused string
}

// Ensure creates the Seed, or brings its specification to that of the configuration. Where the garden refuses that,
// since its operators have not written it down there, the Seed stays as it is, and its status says why.
func (r *Reconciler) Ensure(ctx context.Context) (*gardencorev1beta1.Seed, error) {
	wanted := r.Config.SeedConfig
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: wanted.Name}}
	err := r.Garden.Get(ctx, client.ObjectKeyFromObject(seed), seed)
	if apierrors.IsNotFound(err) {
		seed.Labels, seed.Annotations = maps.Clone(wanted.Labels), maps.Clone(wanted.Annotations)
		seed.Spec = *wanted.Spec.DeepCopy()
		return seed, r.Garden.Create(ctx, seed)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Seed %s: %w", seed.Name, err)
	}
	configured := r.configured(seed)
	if apiequality.Semantic.DeepEqual(configured, seed) {
		return seed, nil
	}
	err = r.Garden.Update(ctx, configured)
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Error(err, "The garden does not take over seedConfig; the Seed stays as it is", "seed",
			seed.Name)
		r.refused = err.Error()
		return seed, nil
	}
	if err != nil {
		return nil, fmt.Errorf("updating Seed %s: %w", seed.Name, err)
	}
	return configured, nil
}

// configured returns a Seed as the configuration wants it.
func (r *Reconciler) configured(seed *gardencorev1beta1.Seed) *gardencorev1beta1.Seed {
	result, wanted := seed.DeepCopy(), r.Config.SeedConfig
	result.Labels = merged(seed.Labels, wanted.Labels)
	result.Annotations = merged(seed.Annotations, wanted.Annotations)
	overlay(&result.Spec, &wanted.Spec)
	return result
}

// success describes a round without errors.
func (r *Reconciler) success(seed *gardencorev1beta1.Seed) string {
	const done = "Seed cluster has been successfully reconciled."
	if r.refused == "" || apiequality.Semantic.DeepEqual(r.configured(seed), seed) {
		return done
	}
	return done + " The garden does not take over gardenlet's seedConfig: " + r.refused
}

// overlay takes over the wanted specification but keeps what the API server defaulted.
func overlay(spec, wanted *gardencorev1beta1.SeedSpec) {
	defaulted := spec.DeepCopy()
	*spec = *wanted.DeepCopy()
	if spec.Settings == nil {
		spec.Settings = defaulted.Settings
	}
	if len(spec.Networks.IPFamilies) == 0 {
		spec.Networks.IPFamilies = defaulted.Networks.IPFamilies
	}
}

// merged returns into with the entries of from.
func merged(into, from map[string]string) map[string]string {
	if len(from) == 0 {
		return into
	}
	result := maps.Clone(into)
	if result == nil {
		result = map[string]string{}
	}
	maps.Copy(result, from)
	return result
}

// Reconcile is one round: finalizer, deletion, installation, status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Garden.Get(ctx, req.NamespacedName, seed); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if seed.DeletionTimestamp != nil {
		if err := r.delete(ctx, seed); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
	}
	if err := finalizer.Ensure(ctx, r.Garden, seed, gardencorev1beta1.GardenerName); err != nil {
		return ctrl.Result{}, err
	}
	if seed.Status.LastOperation == nil || seed.Status.ObservedGeneration != seed.Generation {
		if err := r.patchStatus(ctx, seed, func(s *gardencorev1beta1.SeedStatus) {
			s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateProcessing, 0,
				"The seed is being reconciled.")
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	kubernetes, err := r.Discovery.ServerVersion()
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("asking the seed for its version: %w", err)
	}
	installErr := r.install(ctx, seed, kubernetes.GitVersion)
	if err := r.report(ctx, seed, kubernetes.GitVersion, installErr); err != nil {
		return ctrl.Result{}, err
	}
	if installErr != nil {
		return ctrl.Result{}, installErr
	}
	return ctrl.Result{RequeueAfter: spread.Period(seed.UID, r.Config.Controllers.Seed.SyncPeriod.Duration)}, nil
}

// install brings what a seed has up to date, if it is a seed that can have it.
func (r *Reconciler) install(ctx context.Context, seed *gardencorev1beta1.Seed, kubernetes string) error {
	if err := supportsSeed(kubernetes); err != nil {
		return err
	}
	if err := r.System.Install(ctx, seed); err != nil {
		return err
	}
	if err := r.expose(ctx, seed); err != nil {
		return err
	}
	return r.installExtensions(ctx, seed)
}

// leastKubernetes is the first version whose pods have sidecars that start before the other containers. What leaves a
// control plane for an address of its owner relies on them.
var leastKubernetes = utilversion.MustParseGeneric("1.29")

// supportsSeed tells whether a cluster of that version can be a seed.
func supportsSeed(kubernetes string) error {
	parsed, err := utilversion.ParseGeneric(kubernetes)
	if err != nil {
		return fmt.Errorf("the seed's version of Kubernetes: %w", err)
	}
	if parsed.LessThan(leastKubernetes) {
		return fmt.Errorf("a seed needs Kubernetes %d.%d or newer, and this cluster has %s: update it first",
			leastKubernetes.Major(), leastKubernetes.Minor(), kubernetes)
	}
	return nil
}

// delete lets the Seed go when nothing uses it any more.
func (r *Reconciler) delete(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	if !controllerutil.ContainsFinalizer(seed, gardencorev1beta1.GardenerName) {
		return nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Garden.List(ctx, shoots, client.MatchingFields{"spec.seedName": seed.Name}); err != nil {
		return fmt.Errorf("listing the shoots of seed %s: %w", seed.Name, err)
	}
	installations := &gardencorev1beta1.ControllerInstallationList{}
	if err := r.Garden.List(ctx, installations, client.MatchingFields{"spec.seedRef.name": seed.Name}); err != nil {
		return fmt.Errorf("listing the extensions of seed %s: %w", seed.Name, err)
	}
	if err := r.removeExtensions(ctx, nil); err != nil {
		return err
	}
	buckets := &gardencorev1beta1.BackupBucketList{}
	if err := r.Garden.List(ctx, buckets, client.MatchingFields{"spec.seedName": seed.Name}); err != nil {
		return fmt.Errorf("listing the buckets of seed %s: %w", seed.Name, err)
	}
	if n, m, b := len(shoots.Items), len(installations.Items), len(buckets.Items); n+m+b > 0 {
		return r.patchStatus(ctx, seed, func(s *gardencorev1beta1.SeedStatus) {
			s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateProcessing, 50,
				fmt.Sprintf("Waiting until %d shoots, %d buckets and %d extensions are gone.", n, b, m))
			s.LastOperation.Type = gardencorev1beta1.LastOperationTypeDelete
		})
	}
	if err := exposure.Remove(ctx, r.Seed); err != nil {
		return err
	}
	if err := r.System.Uninstall(ctx); err != nil {
		return err
	}
	return finalizer.Remove(ctx, r.Garden, seed, gardencorev1beta1.GardenerName)
}

// report writes the outcome of a round.
func (r *Reconciler) report(ctx context.Context, seed *gardencorev1beta1.Seed, kubernetes string,
	installErr error) error {
	identity, err := r.clusterIdentity(ctx, seed)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, seed, func(s *gardencorev1beta1.SeedStatus) {
		s.Gardener = r.Identity.DeepCopy()
		s.KubernetesVersion = new(kubernetes)
		s.ClusterIdentity = &identity
		s.ClientCertificateExpirationTimestamp = r.CertificateExpiration
		s.Capacity, s.Allocatable = capacity(r.Config.Resources)
		s.ObservedGeneration = seed.Generation
		if installErr != nil {
			s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateError, 50, installErr.Error())
			return
		}
		s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateSucceeded, 100, r.success(seed))
	})
}

// operation returns the last operation in a new state; creation lasts until the first success.
func operation(s *gardencorev1beta1.SeedStatus, state gardencorev1beta1.LastOperationState, progress int32,
	description string) *gardencorev1beta1.LastOperation {
	t := gardencorev1beta1.LastOperationTypeReconcile
	if s.LastOperation == nil || (s.LastOperation.Type == gardencorev1beta1.LastOperationTypeCreate &&
		s.LastOperation.State != gardencorev1beta1.LastOperationStateSucceeded) {
		t = gardencorev1beta1.LastOperationTypeCreate
	}
	return &gardencorev1beta1.LastOperation{
		Type: t, State: state, Progress: progress, Description: description, LastUpdateTime: metav1.Now(),
	}
}

// capacity returns how many shoots the seed takes.
func capacity(resources config.Resources) (total, allocatable corev1.ResourceList) {
	quantity := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{gardencorev1beta1.ResourceShoots: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	return quantity(resources.Capacity.Shoots), quantity(resources.Capacity.Shoots - resources.Reserved.Shoots)
}

// clusterIdentity returns the identity of the seed: that of its ConfigMap kube-system/cluster-identity, which is
// created if it is missing. Once known it never changes.
func (r *Reconciler) clusterIdentity(ctx context.Context, seed *gardencorev1beta1.Seed) (string, error) {
	if identity := ptr.Deref(seed.Status.ClusterIdentity, ""); identity != "" {
		return identity, nil
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: gardencorev1beta1.ClusterIdentity},
	}
	err := r.Seed.Get(ctx, client.ObjectKeyFromObject(configMap), configMap)
	if apierrors.IsNotFound(err) {
		configMap.Data = map[string]string{gardencorev1beta1.ClusterIdentity: seed.Name + "-" + string(seed.UID)}
		err = r.Seed.Create(ctx, configMap)
	}
	if err != nil {
		return "", fmt.Errorf("identity of the seed in ConfigMap %s: %w", client.ObjectKeyFromObject(configMap), err)
	}
	return configMap.Data[gardencorev1beta1.ClusterIdentity], nil
}

// patchStatus changes the status and writes it if that made a difference.
func (r *Reconciler) patchStatus(ctx context.Context, seed *gardencorev1beta1.Seed,
	change func(*gardencorev1beta1.SeedStatus)) error {
	before := seed.DeepCopy()
	change(&seed.Status)
	if apiequality.Semantic.DeepEqual(before.Status, seed.Status) {
		return nil
	}
	if err := r.Garden.Status().Patch(ctx, seed, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of Seed %s: %w", seed.Name, err)
	}
	return nil
}

// NewIdentity describes this process in the status of objects.
func NewIdentity(id, name string) gardencorev1beta1.Gardener {
	return gardencorev1beta1.Gardener{ID: id, Name: name, Version: version.String()}
}

// setConditions returns the conditions with the given ones set.
func setConditions(list []gardencorev1beta1.Condition, now time.Time,
	set ...gardencorev1beta1.Condition) []gardencorev1beta1.Condition {
	for _, condition := range set {
		list = conditions.Set(list, condition, now)
	}
	return list
}

// key of the Seed object.
func key(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
