// Package volumes provisions PersistentVolumes of the local landscape: directories of a node. It watches claims and
// volumes and acts at once, so that a claim is bound a fraction of a second after it was made.
//
// sigs.k8s.io/sig-storage-lib-external-provisioner would save half of this, and brings what is worse here. v13.1.0
// needs Kubernetes 0.37. v13.0.0 builds with 0.36, with 13 modules more: it ends the process when its options are
// wrong, registers types with client-go's global scheme while others read it, and by default removes a volume's
// directory when the PersistentVolume could not be saved. Here only a released volume loses its directory.
package volumes

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Provisioner is the name in StorageClasses.
	Provisioner = "local.trellis.garden/hostpath"

	annotationProvisionedBy      = "pv.kubernetes.io/provisioned-by"
	annotationStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// annotationSelectedNode is set by the scheduler on claims of classes that wait for the first consumer.
	annotationSelectedNode = "volume.kubernetes.io/selected-node"
)

// Rules are what the controllers may do in the cluster of their manager.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"persistentvolumes"},
			Verbs: []string{"create", "delete", "get", "list", "watch"},
		},
		{
			APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"},
			Verbs: []string{"get", "list", "watch"},
		},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses"}, Verbs: []string{"get"}},
	}
}

// Options say which volumes are provisioned, and where.
type Options struct {
	// Dir is the folder with a folder for each volume, an absolute path.
	Dir string
	// Node is whose folder that is: its volumes are used there only. Empty: all nodes of the cluster share it.
	Node string
	// ChosenOnly leaves claims for which no node was chosen, and volumes that are bound to none, to another node.
	ChosenOnly bool
}

// concerns says whether what belongs to a node, or to none, is here.
func (o Options) concerns(node string) bool {
	return o.Node == "" || node == o.Node || node == "" && !o.ChosenOnly
}

func (o Options) provides(claim *corev1.PersistentVolumeClaim) bool {
	return needsVolume(claim) && o.concerns(claim.Annotations[annotationSelectedNode])
}

func (o Options) removes(volume *corev1.PersistentVolume) bool {
	return isReclaimable(volume) && o.concerns(nodeOf(volume))
}

// Add registers two controllers for the cluster of the manager: one provisions what claims ask for, one removes what
// was released.
func Add(mgr manager.Manager, options Options) error {
	claims := &provisioner{client: mgr.GetClient(), classes: mgr.GetAPIReader(), options: options}
	volumes := &reclaimer{client: mgr.GetClient(), options: options}
	asksForVolume := func(object client.Object) bool {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		return ok && options.provides(claim)
	}
	isReleased := func(object client.Object) bool {
		volume, ok := object.(*corev1.PersistentVolume)
		return ok && options.removes(volume)
	}
	if err := add(mgr, "volume-claims", &corev1.PersistentVolumeClaim{}, asksForVolume, claims); err != nil {
		return err
	}
	return add(mgr, "volumes", &corev1.PersistentVolume{}, isReleased, volumes)
}

func add(
	mgr manager.Manager, name string, kind client.Object, concerns func(client.Object) bool, r reconcile.Reconciler,
) error {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond,
		30*time.Second)
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(kind, builder.WithPredicates(predicate.NewPredicateFuncs(concerns))).
		WithOptions(controller.Options{RateLimiter: retries}).Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of %s: %w", name, err)
	}
	return nil
}

// provisioner makes the volumes that claims ask for.
type provisioner struct {
	client client.Client
	// classes is read without a cache: a StorageClass is needed once for each claim.
	classes client.Reader
	options Options
}

// Reconcile implements reconcile.Reconciler for claims.
func (p *provisioner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := p.client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !p.options.provides(claim) {
		return reconcile.Result{}, nil
	}
	if err := p.provision(ctx, claim); err != nil {
		return reconcile.Result{}, fmt.Errorf("claim %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{}, nil
}

func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class := &storagev1.StorageClass{}
	if err := p.classes.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, class); err != nil {
		return err
	}
	volume := volumeFor(claim, class, p.options)
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o777); err != nil {
		return err
	}
	// The process' umask must not keep containers that run as another user out.
	if err := os.Chmod(volume.Spec.HostPath.Path, 0o777); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(p.client.Create(ctx, volume)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("provisioned", "volume", volume.Name)
	return nil
}

// reclaimer removes volumes that nobody claims any more.
type reclaimer struct {
	client  client.Client
	options Options
}

// Reconcile implements reconcile.Reconciler for volumes.
func (r *reclaimer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	volume := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, request.NamespacedName, volume); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.options.removes(volume) {
		return reconcile.Result{}, nil
	}
	if err := os.RemoveAll(filepath.Join(r.options.Dir, volume.Name)); err != nil {
		return reconcile.Result{}, fmt.Errorf("volume %s: %w", volume.Name, err)
	}
	if err := client.IgnoreNotFound(r.client.Delete(ctx, volume)); err != nil {
		return reconcile.Result{}, fmt.Errorf("volume %s: %w", volume.Name, err)
	}
	log.FromContext(ctx).Info("removed")
	return reconcile.Result{}, nil
}

// needsVolume tells whether it is this provisioner's turn: the controller manager has named it in the annotation, and
// the claim is unbound.
func needsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && claim.Spec.StorageClassName != nil &&
		claim.Annotations[annotationStorageProvisioner] == Provisioner
}

func isReclaimable(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased && volume.DeletionTimestamp == nil &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Annotations[annotationProvisionedBy] == Provisioner
}

// volumeFor is the volume of a claim. Its name follows from the claim's UID, so that repeating is harmless.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
	options Options) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	hostPathType := corev1.HostPathDirectoryOrCreate
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: reclaim,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(options.Dir, name), Type: &hostPathType},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "PersistentVolumeClaim",
				Namespace:  claim.Namespace,
				Name:       claim.Name,
				UID:        claim.UID,
			},
		},
	}
	if node := cmp.Or(claim.Annotations[annotationSelectedNode], options.Node); node != "" {
		volume.Spec.NodeAffinity = onNode(node)
	}
	return volume
}

func onNode(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		},
	}}}}
}

// nodeOf is the node that onNode has bound a volume to, or "".
func nodeOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, requirement := range term.MatchExpressions {
			if requirement.Key == corev1.LabelHostname && len(requirement.Values) == 1 {
				return requirement.Values[0]
			}
		}
	}
	return ""
}
