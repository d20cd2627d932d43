// Package volumes provisions PersistentVolumes of the local landscape: directories of the node. It watches claims and
// volumes and acts at once, so that a claim is bound a fraction of a second after it was made.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// Provisioner is the name in StorageClasses.
	Provisioner = "local.trellis.garden/hostpath"

	annotationProvisionedBy      = "pv.kubernetes.io/provisioned-by"
	annotationStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	// annotationSelectedNode is set by the scheduler on claims of classes that wait for the first consumer.
	annotationSelectedNode = "volume.kubernetes.io/selected-node"
)

// Controller provisions and removes volumes.
type Controller struct {
	client kubernetes.Interface
	log    logr.Logger
	// dir is where the directories of volumes are made, on the node and in this process alike.
	dir     string
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	start   func(stop <-chan struct{})
}

// Rules are what a controller may do in the cluster of its client.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"create", "delete", "get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses"}, Verbs: []string{"get"}},
	}
}

// Keys of the queue: "claim/<namespace>/<name>" is written as the bare key with a prefix.
const (
	claimPrefix  = "claim:"
	volumePrefix = "volume:"
)

// New returns a controller for the cluster of the client. dir is an absolute path that is the same on the cluster's nodes.
func New(client kubernetes.Interface, dir string, log logr.Logger) *Controller {
	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	c := &Controller{
		client:  client,
		log:     log,
		dir:     dir,
		claims:  claims.Lister(),
		volumes: volumes.Lister(),
		synced:  []cache.InformerSynced{claims.Informer().HasSynced, volumes.Informer().HasSynced},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 30*time.Second)),
		start: factory.Start,
	}
	c.enqueueOn(claims.Informer(), claimPrefix)
	c.enqueueOn(volumes.Informer(), volumePrefix)
	return c
}

func (c *Controller) enqueueOn(informer cache.SharedIndexInformer, prefix string) {
	enqueue := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			c.queue.Add(prefix + key)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	})
}

// Run works until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	c.start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return nil
		}
		if err := c.reconcile(ctx, key); err != nil {
			c.log.Error(err, "volume", "key", key)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *Controller) reconcile(ctx context.Context, key string) error {
	if name, ok := cutPrefix(key, volumePrefix); ok {
		return c.reconcileVolume(ctx, name)
	}
	key, _ = cutPrefix(key, claimPrefix)
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	return c.reconcileClaim(ctx, namespace, name)
}

func cutPrefix(key, prefix string) (string, bool) {
	if len(key) < len(prefix) || key[:len(prefix)] != prefix {
		return key, false
	}
	return key[len(prefix):], true
}

func (c *Controller) reconcileClaim(ctx context.Context, namespace, name string) error {
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !needsVolume(claim) {
		return nil
	}
	class, err := c.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("claim %s/%s: %w", namespace, name, err)
	}
	volume := volumeFor(claim, class, c.dir)
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o777); err != nil {
		return fmt.Errorf("claim %s/%s: %w", namespace, name, err)
	}
	// The process' umask must not keep containers that run as another user out.
	if err := os.Chmod(volume.Spec.HostPath.Path, 0o777); err != nil {
		return fmt.Errorf("claim %s/%s: %w", namespace, name, err)
	}
	if _, err := c.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("claim %s/%s: %w", namespace, name, err)
	}
	c.log.Info("provisioned", "claim", namespace+"/"+name, "volume", volume.Name)
	return nil
}

func (c *Controller) reconcileVolume(ctx context.Context, name string) error {
	volume, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isReclaimable(volume) {
		return nil
	}
	if err := c.removeDirectory(name); err != nil {
		return fmt.Errorf("volume %s: %w", name, err)
	}
	if err := c.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("volume %s: %w", name, err)
	}
	c.log.Info("removed", "volume", name)
	return nil
}

func (c *Controller) removeDirectory(volume string) error {
	if err := os.RemoveAll(filepath.Join(c.dir, volume)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// needsVolume tells whether it is this provisioner's turn: the controller manager has named it in the annotation, and the claim is unbound.
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
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, dir string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	hostPathType := corev1.HostPathDirectoryOrCreate
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: reclaim,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, name), Type: &hostPathType},
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
	if node := claim.Annotations[annotationSelectedNode]; node != "" {
		volume.Spec.NodeAffinity = onNode(node)
	}
	return volume
}

func onNode(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}}
}
