package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
)

// Cleaner cleans up one cluster.
type Cleaner struct {
	// Client of the cluster, with all rights. It must not read from a cache.
	Client client.Client
	// Plan says how.
	Plan Plan
	// Now is the clock.
	Now func() time.Time
}

// Webhooks deletes admission webhooks: they could refuse what follows, as their pods go.
func (c *Cleaner) Webhooks(ctx context.Context) error {
	return c.pass(ctx, webhookKinds, c.Plan.Webhooks)
}

// ExtendedAPIs deletes CustomResourceDefinitions, and with them all of their objects, and APIServices.
func (c *Cleaner) ExtendedAPIs(ctx context.Context) error {
	if c.Plan.SkipExtendedAPIs {
		return nil
	}
	return c.pass(ctx, extendedAPIKinds, c.Plan.ExtendedAPIs)
}

// Resources deletes workloads, Services, Ingresses, volumes and what else may have something outside of the cluster.
func (c *Cleaner) Resources(ctx context.Context) error {
	if err := c.pass(ctx, resourceKinds, c.Plan.Resources); err != nil {
		return err
	}
	return c.volumes(ctx)
}

// MetricsAPI deletes the registration of the API of metrics-server. As long as an API does not answer, no namespace
// goes away.
func (c *Cleaner) MetricsAPI(ctx context.Context) error {
	registration := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: metricsserver.APIServiceName}}
	registration.SetGroupVersionKind(apiServiceKind)
	if err := client.IgnoreNotFound(c.Client.Delete(ctx, registration)); err != nil {
		return fmt.Errorf("deleting %s: %w", describe(apiServiceKind.Kind, registration), err)
	}
	return nil
}

// Namespaces deletes the namespaces of users.
func (c *Cleaner) Namespaces(ctx context.Context) error {
	list := &corev1.NamespaceList{}
	if err := c.Client.List(ctx, list); err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	var remaining remainder
	for i := range list.Items {
		namespace := &list.Items[i]
		if slices.Contains(systemNamespaces, namespace.Name) ||
			isSystem(&metav1.PartialObjectMetadata{ObjectMeta: namespace.ObjectMeta}) {
			continue
		}
		remaining.add("Namespace", namespace)
		if err := c.removeNamespace(ctx, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting namespace %s: %w", namespace.Name, err)
		}
	}
	return remaining.error()
}

// removeNamespace deletes a namespace, or lets go of one that is overdue.
func (c *Cleaner) removeNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	if namespace.DeletionTimestamp == nil {
		return c.Client.Delete(ctx, namespace)
	}
	if !isOverdue(&metav1.PartialObjectMetadata{ObjectMeta: namespace.ObjectMeta}, c.Plan.Namespaces, c.Now()) {
		return nil
	}
	namespace.Spec.Finalizers = nil
	return c.Client.SubResource("finalize").Update(ctx, namespace)
}

// pass deletes the users' objects of some kinds. Kinds that the cluster does not have are left out.
func (c *Cleaner) pass(ctx context.Context, kinds []schema.GroupVersionKind, grace Grace) error {
	var remaining remainder
	var failures []error
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := c.Client.List(ctx, list)
		if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			if !isUsers(object) {
				continue
			}
			remaining.add(kind.Kind, object)
			failures = append(failures, c.remove(ctx, object, grace))
		}
	}
	return errors.Join(append(failures, remaining.error())...)
}

// remove deletes one object, or lets go of one that is overdue.
func (c *Cleaner) remove(ctx context.Context, object *metav1.PartialObjectMetadata, grace Grace) error {
	var err error
	switch {
	case object.DeletionTimestamp == nil:
		err = c.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	case isOverdue(object, grace, c.Now()):
		err = c.release(ctx, object)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", describe(object.Kind, object), err)
	}
	return nil
}

// release removes the finalizers of an object under deletion; of a pod it does not wait for the kubelet either.
func (c *Cleaner) release(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	if len(object.Finalizers) > 0 {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Client.Patch(ctx, object, patch); err != nil {
			return err
		}
	}
	if object.GroupVersionKind() != podKind {
		return nil
	}
	return c.Client.Delete(ctx, object, client.GracePeriodSeconds(0))
}

// volumes waits for the volumes of claims that are gone: they are deleted where they are stored.
func (c *Cleaner) volumes(ctx context.Context) error {
	list := &corev1.PersistentVolumeList{}
	if err := c.Client.List(ctx, list); err != nil {
		return fmt.Errorf("listing persistent volumes: %w", err)
	}
	var remaining remainder
	for i := range list.Items {
		if isDeletedVolume(&list.Items[i]) {
			remaining.add("PersistentVolume", &list.Items[i])
		}
	}
	return remaining.error()
}

// shown is how many remaining objects an error names.
const shown = 5

// remainder is what is not gone yet.
type remainder struct {
	names []string
	count int
}

// add notes an object.
func (r *remainder) add(kind string, object client.Object) {
	r.count++
	if len(r.names) < shown {
		r.names = append(r.names, describe(kind, object))
	}
}

// error names what is left; nil if nothing is.
func (r *remainder) error() error {
	if r.count == 0 {
		return nil
	}
	text := strings.Join(r.names, ", ")
	if r.count > len(r.names) {
		text += fmt.Sprintf(" and %d more", r.count-len(r.names))
	}
	return fmt.Errorf("waiting until these objects of the cluster are gone: %s", text)
}

// describe names an object and what it waits for.
func describe(kind string, object client.Object) string {
	text := kind + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	if finalizers := object.GetFinalizers(); object.GetDeletionTimestamp() != nil && len(finalizers) > 0 {
		text += " (finalizers " + strings.Join(finalizers, ", ") + ")"
	}
	return text
}
