package kills

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// namespaceFinalizer stands for what keeps a Namespace until it is empty.
const namespaceFinalizer = "kubernetes"

// key is where an API server has an object.
type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// content is what an API server holds. Objects are replaced and never changed, so that copies of the maps stay as they
// are.
type content struct {
	objects map[key]runtime.Object
	// applied is what gardenlet applied last: what is missing in it the next time is taken away.
	applied map[key][]byte
	// version counts changes.
	version int
}

func (c content) clone() content {
	return content{objects: maps.Clone(c.objects), applied: maps.Clone(c.applied), version: c.version}
}

// tracker keeps the objects of the fake client. It adds what API servers do and the fake leaves out: generations,
// UIDs, Namespaces that wait until they are empty, and applications that take away fields.
type tracker struct {
	clienttesting.ObjectTracker
	content
	scheme *runtime.Scheme
	// lock is held while objects change, and changed is called then.
	lock    *sync.Mutex
	changed func()
}

func newTracker(scheme *runtime.Scheme, begin content, lock *sync.Mutex, changed func()) (*tracker, error) {
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	t := &tracker{
		ObjectTracker: clienttesting.NewObjectTracker(scheme, decoder), content: begin.clone(), scheme: scheme,
		lock: lock, changed: changed,
	}
	if t.objects == nil {
		t.objects, t.applied = map[key]runtime.Object{}, map[key][]byte{}
	}
	for at, object := range t.objects {
		if err := t.ObjectTracker.Create(at.resource, object, at.namespace); err != nil {
			return nil, fmt.Errorf("%v: %w", at, err)
		}
	}
	return t, nil
}

// Create implements ObjectTracker.
func (t *tracker) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string,
	_ ...metav1.CreateOptions) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.create(resource, object, namespace)
}

func (t *tracker) create(resource schema.GroupVersionResource, object runtime.Object, namespace string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if accessor.GetUID() == "" {
		accessor.SetUID(types.UID(fmt.Sprintf("uid-%d", t.version)))
	}
	accessor.SetCreationTimestamp(metav1.Now())
	accessor.SetGeneration(1)
	if resource.Resource == "namespaces" {
		accessor.SetFinalizers([]string{namespaceFinalizer})
	}
	return t.note(key{resource, namespace, accessor.GetName()}, t.ObjectTracker.Create(resource, object, namespace))
}

// Update implements ObjectTracker.
func (t *tracker) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string,
	_ ...metav1.UpdateOptions) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.replace(resource, object, namespace)
}

// Patch implements ObjectTracker.
func (t *tracker) Patch(resource schema.GroupVersionResource, object runtime.Object, namespace string,
	_ ...metav1.PatchOptions) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.replace(resource, object, namespace)
}

func (t *tracker) replace(resource schema.GroupVersionResource, object runtime.Object, namespace string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	at := key{resource, namespace, accessor.GetName()}
	if before, found := t.objects[at]; found {
		if err := keepWhatServersSet(before, object); err != nil {
			return err
		}
	}
	return t.note(at, t.ObjectTracker.Update(resource, object, namespace))
}

// keepWhatServersSet counts the generation on, and leaves what clients do not change.
func keepWhatServersSet(before, after runtime.Object) error {
	old, err := meta.Accessor(before)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(after)
	if err != nil {
		return err
	}
	accessor.SetUID(old.GetUID())
	accessor.SetCreationTimestamp(old.GetCreationTimestamp())
	accessor.SetGeneration(old.GetGeneration())
	if !apiequality.Semantic.DeepEqual(specOf(before), specOf(after)) ||
		old.GetDeletionTimestamp() == nil && accessor.GetDeletionTimestamp() != nil || isAskedAnew(before, after) {
		accessor.SetGeneration(old.GetGeneration() + 1)
	}
	return nil
}

// specOf is the specification of an object; nil if its kind has none.
func specOf(object runtime.Object) any {
	spec := reflect.ValueOf(object).Elem().FieldByName("Spec")
	if !spec.IsValid() {
		return nil
	}
	return spec.Interface()
}

// isAskedAnew says whether another operation is asked of a Shoot.
func isAskedAnew(before, after runtime.Object) bool {
	old, isShoot := before.(*gardencorev1beta1.Shoot)
	if !isShoot {
		return false
	}
	asked := after.(*gardencorev1beta1.Shoot).Annotations[gardencorev1beta1.GardenerOperation]
	return asked != "" && asked != old.Annotations[gardencorev1beta1.GardenerOperation]
}

// Apply implements ObjectTracker.
func (t *tracker) Apply(resource schema.GroupVersionResource, object runtime.Object, namespace string,
	_ ...metav1.PatchOptions) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	object, err := t.typed(object)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	wanted, err := wantedOf(object)
	if err != nil {
		return err
	}
	at := key{resource, namespace, accessor.GetName()}
	before, found := t.objects[at]
	if !found {
		t.applied[at] = wanted
		return t.create(resource, object, namespace)
	}
	merged, err := merge(t.applied[at], wanted, before)
	if err != nil {
		return err
	}
	mergedAccessor, err := meta.Accessor(merged)
	if err != nil {
		return err
	}
	mergedAccessor.SetResourceVersion(accessor.GetResourceVersion())
	t.applied[at] = wanted
	return t.replace(resource, merged, namespace)
}

// typed is an object as all are kept.
func (t *tracker) typed(object runtime.Object) (runtime.Object, error) {
	given, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	typed, err := t.scheme.New(given.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(given.Object, typed)
}

// wantedOf is what an application says.
func wantedOf(object runtime.Object) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, found := content["metadata"].(map[string]any); found {
		for _, field := range []string{
			"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "deletionTimestamp",
		} {
			delete(metadata, field)
		}
	}
	return json.Marshal(content)
}

// merge changes an object from what was applied before to what is applied now.
func merge(applied, wanted []byte, object runtime.Object) (runtime.Object, error) {
	current, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	kind, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(applied, wanted, current, kind, true)
	if err != nil {
		return nil, err
	}
	changed, err := strategicpatch.StrategicMergePatch(current, patch, object)
	if err != nil {
		return nil, err
	}
	merged := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	return merged, json.Unmarshal(changed, merged)
}

// Delete implements ObjectTracker.
func (t *tracker) Delete(resource schema.GroupVersionResource, namespace, name string,
	_ ...metav1.DeleteOptions) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if err := t.ObjectTracker.Delete(resource, namespace, name); err != nil {
		return err
	}
	at := key{resource, namespace, name}
	delete(t.objects, at)
	delete(t.applied, at)
	t.version++
	t.changed()
	return nil
}

// note remembers an object as it was stored. What changed nothing does not count.
func (t *tracker) note(at key, err error) error {
	if err != nil {
		return err
	}
	stored, err := t.Get(at.resource, at.namespace, at.name)
	if err != nil {
		return err
	}
	before := t.objects[at]
	t.objects[at] = stored
	if before == nil || !sameButForVersion(before, stored) {
		t.version++
		t.changed()
	}
	return nil
}

func sameButForVersion(before, after runtime.Object) bool {
	copied := before.DeepCopyObject()
	old, oldErr := meta.Accessor(copied)
	accessor, err := meta.Accessor(after)
	if oldErr != nil || err != nil {
		return false
	}
	old.SetResourceVersion(accessor.GetResourceVersion())
	copied.GetObjectKind().SetGroupVersionKind(after.GetObjectKind().GroupVersionKind())
	return apiequality.Semantic.DeepEqual(copied, after)
}
