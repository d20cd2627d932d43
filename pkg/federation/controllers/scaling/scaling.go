// Package scaling reads and sets the number of replicas of objects in a fleet, through their subresource scale.
package scaling

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
)

// Scales gives access to the scales of a fleet's objects.
type Scales struct {
	client scale.ScalesGetter
	mapper meta.RESTMapper
}

// New gives the scales of the API that a configuration leads to.
func New(config *rest.Config, mapper meta.RESTMapper) (*Scales, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("scales of the fleet: %w", err)
	}
	client, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(discoveryClient))
	if err != nil {
		return nil, fmt.Errorf("scales of the fleet: %w", err)
	}
	return &Scales{client: client, mapper: mapper}, nil
}

// Get reads the scale of an object.
func (s *Scales) Get(ctx context.Context, namespace string,
	target autoscalingv2.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	resource, err := s.resource(target)
	if err != nil {
		return nil, err
	}
	current, err := s.client.Scales(namespace).Get(ctx, resource.GroupResource(), target.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the scale of %s %s/%s: %w", target.Kind, namespace, target.Name, err)
	}
	return current, nil
}

// Set changes the number of replicas.
func (s *Scales) Set(ctx context.Context, namespace string, target autoscalingv2.CrossVersionObjectReference,
	replicas int32) error {
	resource, err := s.resource(target)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := s.client.Scales(namespace).Patch(ctx, resource, target.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("scaling %s %s/%s to %d: %w", target.Kind, namespace, target.Name, replicas, err)
	}
	return nil
}

func (s *Scales) resource(target autoscalingv2.CrossVersionObjectReference) (schema.GroupVersionResource, error) {
	gvk := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("spec.scaleTargetRef: %w", err)
	}
	return mapping.Resource, nil
}
