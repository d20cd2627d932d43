package federation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// The API servers of a world serve several tests. What one left there, the next one's controllers would bring to its
// members.

// namespacePrefix is that of the namespaces that tests get.
const namespacePrefix = "test-"

// kindRecord knows of which kinds objects were created in namespaces.
type kindRecord struct {
	mu    sync.Mutex
	kinds map[string]map[schema.GroupVersionKind]bool
}

func newKindRecord() *kindRecord {
	return &kindRecord{kinds: map[string]map[schema.GroupVersionKind]bool{}}
}

// by is the client, with a record of what it creates.
func (r *kindRecord) by(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption) error {
			r.note(c, object)
			return c.Create(ctx, object, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
			options ...client.ApplyOption) error {
			if object, is := object.(client.Object); is {
				r.note(c, object)
			}
			return c.Apply(ctx, object, options...)
		},
	})
}

func (r *kindRecord) note(c client.Client, object client.Object) {
	namespaced, err := c.IsObjectNamespaced(object)
	kind, kindErr := c.GroupVersionKindFor(object)
	if errors.Join(err, kindErr) != nil || !namespaced {
		return // A kind that is not known cannot be created either.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds[object.GetNamespace()] == nil {
		r.kinds[object.GetNamespace()] = map[schema.GroupVersionKind]bool{}
	}
	r.kinds[object.GetNamespace()][kind] = true
}

// in gives the kinds of all namespaces whose name begins so.
func (r *kindRecord) in(prefix string) []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[schema.GroupVersionKind]bool{}
	for namespace, kinds := range r.kinds {
		if strings.HasPrefix(namespace, prefix) {
			maps.Copy(all, kinds)
		}
	}
	return slices.Collect(maps.Keys(all))
}

// newNamespace is empty again after the test, in the fleet and in its members.
func (w *world) newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix}}
	if err := w.fleet.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.emptyNamespace(t, namespace.Name) })
	return namespace.Name
}

// emptyNamespace removes what a test created. Controllers that still run have to remove all that they made of it.
func (w *world) emptyNamespace(t *testing.T, namespace string) {
	t.Helper()
	kinds := w.created.in(namespace)
	deleteAll(t, w.fleet, namespace, kinds)
	if w.federations.Load() > 0 && !t.Failed() {
		eventuallyWithin(t, fourMinutes, "the controllers have removed what they made of "+namespace, func() error {
			objects, err := w.inFleet(kinds, namespace)
			return errors.Join(err, noneOf(objects))
		})
	} else {
		w.releaseAll(t, kinds, namespace)
	}
	for _, name := range memberNames {
		deleteAll(t, w.member[name], namespace, inMembers(kinds))
	}
}

// inMembers gives the kinds that templates of these kinds have in members.
func inMembers(kinds []schema.GroupVersionKind) []schema.GroupVersionKind {
	// What a FederatedResourceQuota becomes.
	all := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ResourceQuota")}
	for _, kind := range kinds {
		if !strings.HasSuffix(kind.Group, ".karmada.io") {
			all = append(all, kind)
		}
	}
	return all
}

func deleteAll(t *testing.T, c client.Client, namespace string, kinds []schema.GroupVersionKind) {
	t.Helper()
	for _, kind := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		// An API server that has much to do gives a request up after a minute, having removed some.
		eventuallyWithin(t, fourMinutes, fmt.Sprintf("all %s of %s are removed", kind.Kind, namespace), func() error {
			// No kubelet runs that pods would wait for.
			return ignoreNotServed(c.DeleteAllOf(ctx, object, client.InNamespace(namespace),
				client.GracePeriodSeconds(0)))
		})
	}
}

// releaseAll removes what is left, and does not wait for controllers.
func (w *world) releaseAll(t *testing.T, kinds []schema.GroupVersionKind, namespace string) {
	t.Helper()
	objects, err := w.inFleet(kinds, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		object := &objects[i]
		var err error
		if len(object.Finalizers) > 0 {
			err = w.fleet.Patch(ctx, object,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
		if err := errors.Join(client.IgnoreNotFound(err),
			client.IgnoreNotFound(w.fleet.Delete(ctx, object))); err != nil {
			t.Errorf("removing %s %s: %v", object.Kind, object.Name, err)
		}
	}
}

// inFleet are the objects of these kinds in the namespaces whose name begins so, and what controllers made of them.
func (w *world) inFleet(kinds []schema.GroupVersionKind, prefix string) ([]metav1.PartialObjectMetadata, error) {
	derived := []schema.GroupVersionKind{
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha1.GroupVersion.WithKind("Work"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
	}
	var all []metav1.PartialObjectMetadata
	for _, kind := range append(derived, kinds...) {
		objects, err := objectsOf(w.fleet, kind, prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// objectsOf are all that exist, or were made, for namespaces whose name begins so. There are none of a kind that is not
// served.
func objectsOf(c client.Client, kind schema.GroupVersionKind, prefix string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list); ignoreNotServed(err) != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	var objects []metav1.PartialObjectMetadata
	for _, object := range list.Items {
		for _, namespace := range []string{
			object.Namespace, object.Annotations[workv1alpha2.NamespaceAnnotation],
			object.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel],
		} {
			if strings.HasPrefix(namespace, prefix) {
				object.SetGroupVersionKind(kind)
				objects = append(objects, object)
				break
			}
		}
	}
	return objects, nil
}

func ignoreNotServed(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func noneOf(objects []metav1.PartialObjectMetadata) error {
	if len(objects) == 0 {
		return nil
	}
	first := objects[0]
	return fmt.Errorf("%d objects are left, such as %s %s/%s with finalizers %v", len(objects), first.Kind,
		first.Namespace, first.Name, first.Finalizers)
}

// nothingIsLeft after all tests have passed: of their namespaces' objects in the fleet and in members, and of policies
// for all.
func (w *world) nothingIsLeft() error {
	kinds := w.created.in(namespacePrefix)
	objects, err := w.inFleet(kinds, namespacePrefix)
	errs := []error{err, noneOf(objects)}
	for _, name := range memberNames {
		for _, kind := range inMembers(kinds) {
			objects, err := objectsOf(w.member[name], kind, namespacePrefix)
			errs = append(errs, err, noneOf(objects))
		}
	}
	for _, kind := range []string{"ClusterPropagationPolicy", "ClusterOverridePolicy", "ClusterTaintPolicy"} {
		objects, err := objectsOf(w.fleet, policyv1alpha1.GroupVersion.WithKind(kind), "")
		errs = append(errs, err, noneOf(objects))
	}
	return errors.Join(errs...)
}
