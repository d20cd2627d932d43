package controllerinstallation

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// chartSource finds what a ControllerDeployment asks to be installed: charts lie in the object or in a registry, and
// values quote Secrets and ConfigMaps of the garden.
type chartSource struct {
	garden client.Client
	pull   func(context.Context, helm.Artifact) ([]byte, error)
}

// chartAndValues is what a ControllerDeployment asks to be installed.
type chartAndValues struct {
	// archive is the chart as gzipped tar.
	archive []byte
	// values are the operator's.
	values map[string]any
}

// find returns the chart and the operator's values. Mistakes of the operator come back as ocichart.MistakeError.
func (s chartSource) find(ctx context.Context,
	deployment *gardencorev1beta1.ControllerDeployment) (chartAndValues, error) {
	v1 := &gardencorev1.ControllerDeployment{}
	if err := gardencorev1.FromV1beta1(deployment, v1); err != nil {
		return chartAndValues{}, &ocichart.MistakeError{Err: err}
	}
	if v1.Helm == nil {
		return chartAndValues{}, &ocichart.MistakeError{
			Err: fmt.Errorf("type %q is not supported, only helm is", deployment.Type),
		}
	}
	values, err := s.values(ctx, v1)
	if err != nil {
		return chartAndValues{}, err
	}
	archive, err := s.archive(ctx, v1.Helm)
	return chartAndValues{archive: archive, values: values}, err
}

func (s chartSource) values(ctx context.Context,
	deployment *gardencorev1.ControllerDeployment) (map[string]any, error) {
	values, err := deployment.Helm.ValuesOf()
	if err != nil {
		return nil, &ocichart.MistakeError{Err: err}
	}
	resources := map[string]map[string]string{}
	for _, resource := range deployment.Resources {
		if resources[resource.Name], err = s.data(ctx, resource.ResourceRef.Kind,
			resource.ResourceRef.Name); err != nil {
			return nil, fmt.Errorf("resource %q: %w", resource.Name, err)
		}
	}
	values, err = gardencorev1.ResolveQuotations(values, resources)
	if err != nil {
		return nil, &ocichart.MistakeError{Err: err}
	}
	return values, nil
}

func (s chartSource) archive(ctx context.Context, chart *gardencorev1.HelmControllerDeployment) ([]byte, error) {
	if chart.OCIRepository == nil {
		if len(chart.RawChart) == 0 {
			return nil, &ocichart.MistakeError{
				Err: errors.New("holds neither a chart (a gzipped tar archive in base64) nor the ociRepository to " +
					"pull it from"),
			}
		}
		return chart.RawChart, nil
	}
	return ocichart.Source{Garden: s.garden, Pull: s.pull}.Archive(ctx, chart.OCIRepository)
}

// data returns what a Secret or ConfigMap in the garden's namespace holds.
func (s chartSource) data(ctx context.Context, kind, name string) (map[string]string, error) {
	data := map[string]string{}
	var err error
	switch key := (client.ObjectKey{Namespace: gardencorev1beta1.GardenNamespace, Name: name}); kind {
	case "ConfigMap":
		object := &corev1.ConfigMap{}
		err = s.garden.Get(ctx, key, object)
		maps.Copy(data, object.Data)
	default:
		object := &corev1.Secret{}
		err = s.garden.Get(ctx, key, object)
		for name, value := range object.Data {
			data[name] = string(value)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, &ocichart.MistakeError{
			Err: fmt.Errorf("%s %s/%s does not exist", kind, gardencorev1beta1.GardenNamespace, name),
		}
	}
	return data, err
}
