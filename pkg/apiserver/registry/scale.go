package registry

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// ManagedSeedSetScale serves managedseedsets/scale, for kubectl scale and autoscalers.
func ManagedSeedSetScale(stores Stores) (rest.Storage, error) {
	store, err := stores.store(seedmanagementv1alpha1.Resource("managedseedsets"))
	return &scaleREST{store}, err
}

type scaleREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher                  = &scaleREST{}
	_ rest.GroupVersionKindProvider = &scaleREST{}
)

// New implements rest.Storage.
func (r *scaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage; the store belongs to the main resource.
func (r *scaleREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// ConvertToTable implements rest.TableConvertor.
func (r *scaleREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(seedmanagementv1alpha1.Resource("managedseedsets/scale")).ConvertToTable(ctx,
		object, options)
}

// Get implements rest.Getter.
func (r *scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	set, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(set)
}

// Update implements rest.Updater: it writes the number of replicas, and nothing else.
func (r *scaleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	validate := func(ctx context.Context, object, old runtime.Object) error {
		if updateValidation == nil {
			return nil
		}
		scale, err := scaleOf(object)
		if err != nil {
			return err
		}
		before, err := scaleOf(old)
		if err != nil {
			return err
		}
		return updateValidation(ctx, scale, before)
	}
	set, _, err := r.store.Update(ctx, name, scaledInfo{info}, createValidation, validate, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleOf(set)
	return scale, false, err
}

// scaledInfo turns an update of a Scale into one of the ManagedSeedSet.
type scaledInfo struct{ rest.UpdatedObjectInfo }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i scaledInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	set, ok := old.DeepCopyObject().(*seedmanagementv1alpha1.ManagedSeedSet)
	if !ok {
		return nil, fmt.Errorf("a %T is not a ManagedSeedSet", old)
	}
	before, err := scaleOf(set)
	if err != nil {
		return nil, err
	}
	updated, err := i.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := updated.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a Scale", updated))
	}
	if scale.UID != "" && scale.UID != set.UID {
		return nil, apierrors.NewConflict(seedmanagementv1alpha1.Resource("managedseedsets/scale"), set.Name,
			fmt.Errorf("its UID is %s, not %s: it was created anew", set.UID, scale.UID))
	}
	set.Spec.Replicas = &scale.Spec.Replicas
	set.ResourceVersion = scale.ResourceVersion
	return set, nil
}

func scaleOf(object runtime.Object) (*autoscalingv1.Scale, error) {
	set, ok := object.(*seedmanagementv1alpha1.ManagedSeedSet)
	if !ok {
		return nil, fmt.Errorf("a %T is not a ManagedSeedSet", object)
	}
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, apierrors.NewBadRequest("spec.selector: " + err.Error())
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion,
			CreationTimestamp: set.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: ptr.Deref(set.Spec.Replicas, 0)},
		Status: autoscalingv1.ScaleStatus{Replicas: set.Status.Replicas, Selector: selector.String()},
	}, nil
}
