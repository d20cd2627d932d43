// Package cluster writes the Cluster of a shoot, in which extensions read the objects of the garden.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// Write gives extensions the objects of the garden. It must exist before the first extension object, and is written
// again whenever one of the objects changed.
func Write(ctx context.Context, seed client.Client, namespace string, in *plan.Inputs) error {
	profile, err := embed(in.CloudProfile, "CloudProfile")
	if err != nil {
		return err
	}
	seedObject, err := embed(in.Seed, "Seed")
	if err != nil {
		return err
	}
	shoot, err := embed(in.Shoot, "Shoot")
	if err != nil {
		return err
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err = controllerutil.CreateOrPatch(ctx, seed, cluster, func() error {
		cluster.Spec = extensionsv1alpha1.ClusterSpec{CloudProfile: *profile, Seed: seedObject, Shoot: *shoot}
		delete(cluster.Annotations, gardencorev1beta1.AnnotationSingleNodeSeed)
		if in.IsSeedSingle {
			metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, gardencorev1beta1.AnnotationSingleNodeSeed, "true")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing Cluster %s: %w", namespace, err)
	}
	return nil
}

// embed renders an object with its kind and without the notes of field managers.
func embed(object client.Object, kind string) (*runtime.RawExtension, error) {
	object = object.DeepCopyObject().(client.Object)
	object.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
	raw, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: raw}, err
}

// Refresh replaces the Shoot in a Cluster, so that extensions get to know of its deletion; without a Cluster there is
// nothing to do.
func Refresh(ctx context.Context, seed client.Client, namespace string, shoot *gardencorev1beta1.Shoot) error {
	raw, err := embed(shoot, "Shoot")
	if err != nil {
		return err
	}
	cluster := &extensionsv1alpha1.Cluster{}
	err = seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", namespace, err)
	}
	patch := client.MergeFrom(cluster.DeepCopy())
	cluster.Spec.Shoot = *raw
	return client.IgnoreNotFound(seed.Patch(ctx, cluster, patch))
}

// Annotate writes to the Cluster which Secrets extensions give to what they run for the control plane.
func Annotate(ctx context.Context, seed client.Client, namespace, genericKubeconfig, egressClient string) error {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil {
		return fmt.Errorf("reading Cluster %s: %w", namespace, err)
	}
	patch := client.MergeFrom(cluster.DeepCopy())
	cluster.Annotations = component.Merge(cluster.Annotations, map[string]string{
		gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: genericKubeconfig,
		gardencorev1beta1.AnnotationEgressClientSecretName:           egressClient,
	})
	return seed.Patch(ctx, cluster, patch)
}

// Delete removes the Cluster.
func Delete(ctx context.Context, seed client.Client, namespace string) error {
	err := seed.Delete(ctx, &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
