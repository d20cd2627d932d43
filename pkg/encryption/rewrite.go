package encryption

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// nothing is a patch that changes nothing. An API server writes the object all the same when it is not stored as it
// would write it now, which is so when it was encrypted with another key.
var nothing = []byte("{}")

// Rewrite makes API servers write every object of the resources anew, and returns how many there are. An object that
// cannot be written does not keep it from the others; it is named in the error.
func Rewrite(ctx context.Context, client metadata.Interface, resources []schema.GroupVersionResource) (int, error) {
	count := 0
	var failed []error
	for _, resource := range resources {
		err := eachOf(ctx, client.Resource(resource), func(object *metav1.PartialObjectMetadata) {
			count++
			if err := touch(ctx, client.Resource(resource), object); err != nil {
				failed = append(failed, fmt.Errorf("writing %s %s/%s anew: %w", resource.GroupResource(),
					object.Namespace, object.Name, err))
			}
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("listing %s: %w", resource.GroupResource(), err))
		}
	}
	return count, errors.Join(failed...)
}

func eachOf(ctx context.Context, resource metadata.Getter, do func(*metav1.PartialObjectMetadata)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		item, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a %T came instead of metadata", object)
		}
		do(item)
		return nil
	})
}

// touch writes one object. Who was faster with a change or a deletion has written it with the new key, or taken it
// away.
func touch(ctx context.Context, resource metadata.Getter, object *metav1.PartialObjectMetadata) error {
	var writer metadata.ResourceInterface = resource
	if object.Namespace != "" {
		writer = resource.Namespace(object.Namespace)
	}
	_, err := writer.Patch(ctx, object.Name, types.MergePatchType, nothing, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
