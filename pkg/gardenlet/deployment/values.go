// Package deployment turns a GardenletDeployment into values of gardenlet's chart: for gardenlets of managed seeds, and
// for one that deploys itself.
package deployment

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const (
	// Namespace and Name of gardenlet's release in its seed.
	Namespace = gardencorev1beta1.GardenNamespace
	Name      = "gardenlet"
)

// Options are what a gardenlet is deployed with.
type Options struct {
	// Deployment is how; fields that are not set are left to the chart.
	Deployment *seedmanagementv1alpha1.GardenletDeployment
	// Image is what is taken where the deployment names no image, or only a part of one.
	Image imagevector.Image
	// Config is its GardenletConfiguration.
	Config map[string]any
	// BootstrapKubeconfig is its first access to the garden; none when it has its own.
	BootstrapKubeconfig []byte
	// ImageVectorOverwrite is an image vector, as YAML, whose entries replace the built-in ones.
	ImageVectorOverwrite string
}

// Values returns the values of gardenlet's chart.
func Values(options Options) (map[string]any, error) {
	deployment := ptr.Deref(options.Deployment, seedmanagementv1alpha1.GardenletDeployment{})
	image := ptr.Deref(deployment.Image, seedmanagementv1alpha1.Image{})
	values := map[string]any{
		"image": reference(image, options.Image), "config": options.Config,
		"bootstrapKubeconfig":  string(options.BootstrapKubeconfig),
		"imageVectorOverwrite": options.ImageVectorOverwrite,
	}
	for name, field := range map[string]any{
		"imagePullPolicy": image.PullPolicy, "replicaCount": deployment.ReplicaCount,
		"revisionHistoryLimit": deployment.RevisionHistoryLimit,
		"serviceAccountName":   deployment.ServiceAccountName, "resources": limited(deployment.Resources),
		"podLabels":      deployment.PodLabels,
		"podAnnotations": deployment.PodAnnotations, "additionalVolumes": deployment.AdditionalVolumes,
		"additionalVolumeMounts": deployment.AdditionalVolumeMounts, "env": deployment.Env,
		"tolerations":        deployment.Tolerations,
		"enableHealthProbes": deployment.EnableHealthProbes,
	} {
		value, err := plain(field)
		if err != nil {
			return nil, fmt.Errorf("deployment: %s: %w", name, err)
		}
		if value != nil {
			values[name] = value
		}
	}
	return values, nil
}

// mostMemory is the limit of the chart.
const mostMemory = "2Gi"

// limited gives who requests more memory than the chart's limit a limit of twice as much, as control planes have.
func limited(given *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if given == nil || !given.Limits.Memory().IsZero() {
		return given
	}
	result := given.DeepCopy()
	if result.Limits == nil {
		result.Limits = corev1.ResourceList{}
	}
	maps.Copy(result.Limits, component.LimitMemory(*given, mostMemory).Limits)
	return result
}

// reference is the image of the deployment; what it leaves out is taken from the other.
func reference(image seedmanagementv1alpha1.Image, own imagevector.Image) string {
	if image.Ref != nil {
		return *image.Ref
	}
	if image.Tag != nil {
		own.Tag, own.Digest = *image.Tag, ""
	}
	own.Repository = ptr.Deref(image.Repository, own.Repository)
	return own.String()
}

// plain converts a field to what charts work with; nil for one that is not set.
func plain(field any) (any, error) {
	raw, err := json.Marshal(field)
	if err != nil {
		return nil, err
	}
	var value any
	return value, utiljson.Unmarshal(raw, &value)
}
