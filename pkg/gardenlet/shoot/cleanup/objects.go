package cleanup

import (
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// Kinds that are cleaned up, in the order in which they are deleted: makers before what they make.
var (
	webhookKinds = []schema.GroupVersionKind{
		admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	}
	extendedAPIKinds = []schema.GroupVersionKind{
		apiServiceKind,
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	}
	resourceKinds = []schema.GroupVersionKind{
		batchv1.SchemeGroupVersion.WithKind("CronJob"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
		networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		podKind,
		{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"},
		{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"},
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	}
	apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	podKind        = corev1.SchemeGroupVersion.WithKind("Pod")
)

// infrastructureFinalizers are those of controllers that delete something outside of the cluster. They are waited for
// without an end, unless the user chose one.
var infrastructureFinalizers = []string{
	"service.kubernetes.io/load-balancer-cleanup",
	"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection",
}

// systemNamespaces stay.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// automanaged is the label of APIServices that kube-apiserver makes by itself.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// isSystem says whether an object belongs to the cluster itself.
func isSystem(object *metav1.PartialObjectMetadata) bool {
	labels := object.Labels
	return labels[gardencorev1beta1.ShootNoCleanup] == "true" ||
		labels[resourcesv1alpha1.ManagedBy] == resourcesv1alpha1.GardenerManager ||
		labels[automanaged] != "" ||
		object.Kind == "Service" && object.Namespace == metav1.NamespaceDefault && object.Name == "kubernetes"
}

// isUsers says whether an object is to be deleted. What another object controls goes, or stays, with that.
func isUsers(object *metav1.PartialObjectMetadata) bool {
	return !isSystem(object) && metav1.GetControllerOf(object) == nil
}

// isOverdue says whether an object's finalizers are to be removed.
func isOverdue(object *metav1.PartialObjectMetadata, grace Grace, now time.Time) bool {
	if object.DeletionTimestamp == nil || now.Sub(object.DeletionTimestamp.Time) < grace.Period {
		return false
	}
	return grace.Explicit || !slices.ContainsFunc(object.Finalizers,
		func(f string) bool { return slices.Contains(infrastructureFinalizers, f) })
}

// isDeletedVolume says whether a volume is about to be deleted where it is stored: its claim is gone, or will be.
func isDeletedVolume(volume *corev1.PersistentVolume) bool {
	return volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Spec.ClaimRef != nil &&
		volume.Labels[gardencorev1beta1.ShootNoCleanup] != "true"
}
