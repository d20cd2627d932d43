package selfdeployment

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bootstrap"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/gardenletconfig"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// checksumAnnotation on gardenlet's Deployment says from what it was installed.
const checksumAnnotation = gardencorev1beta1.AnnotationInstalledChecksum

// deploymentKey is gardenlet's Deployment, and its release.
var deploymentKey = client.ObjectKey{Namespace: deployment.Namespace, Name: deployment.Name}

// plan is what is to be installed.
type plan struct {
	release  helm.Release
	checksum string
}

func mistake(format string, args ...any) error {
	return &ocichart.MistakeError{Err: fmt.Errorf(format, args...)}
}

// plan finds out what a Gardenlet asks for, and refuses what would end gardenlet for good.
func (r *Reconciler) plan(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet,
	present *appsv1.Deployment) (plan, error) {
	configuration, err := configurationOf(gardenlet, r.Config)
	if err != nil {
		return plan{}, err
	}
	if err := r.keepsAccess(ctx, configuration); err != nil {
		return plan{}, err
	}
	source := ocichart.Source{Garden: r.Garden, Pull: r.Charts.Pull}
	archive, err := source.Archive(ctx, &gardenlet.Spec.Deployment.Helm.OCIRepository)
	if err != nil {
		return plan{}, fmt.Errorf("spec.deployment.helm: %w", err)
	}
	loaded, err := chartOf(archive)
	if err != nil {
		return plan{}, err
	}
	values, err := valuesOf(gardenlet, loaded, configuration, present.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return plan{}, err
	}
	checksum, err := checksumOf(archive, values)
	if err != nil {
		return plan{}, err
	}
	release := helm.Release{
		Namespace: deploymentKey.Namespace, Name: deploymentKey.Name, Chart: loaded, Values: values,
		Change: noting(checksum),
	}
	return plan{release: release, checksum: checksum}, nil
}

// configurationOf is the configuration of a Gardenlet. How the garden and the seed's gateway are reached stays as it is
// where the object does not say it: gardenlet has its access already.
func configurationOf(gardenlet *seedmanagementv1alpha1.Gardenlet,
	running *config.Configuration) (map[string]any, error) {
	said, err := gardenletconfig.ConfigOf(gardenlet.Spec.Config)
	if err != nil {
		return nil, mistake("spec.config: %w", err)
	}
	kept, err := gardenletconfig.Fields(map[string]any{
		"gardenClientConnection": running.GardenClientConnection, "gateway": running.Gateway,
	})
	if err != nil {
		return nil, err
	}
	own := map[string]any{
		"apiVersion": seedmanagementv1alpha1.GardenletConfigurationAPIVersion,
		"kind":       seedmanagementv1alpha1.GardenletConfigurationKind,
		"seedConfig": map[string]any{"metadata": map[string]any{"name": gardenlet.Name}},
	}
	return gardenletconfig.Merge(gardenletconfig.Merge(kept, said), own), nil
}

// keepsAccess refuses configurations that gardenlet does not accept, and those with which it would not reach the garden
// any more.
func (r *Reconciler) keepsAccess(ctx context.Context, configuration map[string]any) error {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	parsed, err := config.Parse(raw)
	if err != nil {
		return mistake("spec.config: %w", err)
	}
	connection := parsed.GardenClientConnection
	if connection.Kubeconfig != "" {
		return nil
	}
	usable, err := bootstrap.HasAccess(ctx, r.Seed, connection, parsed.SeedConfig.Name)
	if err != nil {
		return fmt.Errorf("in the seed: %w", err)
	}
	if !usable {
		ref := connection.KubeconfigSecret
		return mistake("spec.config.gardenClientConnection.kubeconfigSecret: Secret %s/%s in the seed has no "+
			"kubeconfig with a valid certificate "+
			"for this seed: gardenlet would lose its access to the garden; leave the field out", ref.Namespace,
			ref.Name)
	}
	return nil
}

// chartOf loads a chart. Another chart than gardenlet's in the release would take gardenlet away.
func chartOf(archive []byte) (*chart.Chart, error) {
	loaded, err := helm.LoadArchive(archive)
	if err != nil {
		return nil, mistake("spec.deployment.helm.ociRepository: %w", err)
	}
	if loaded.Name() != deployment.Name {
		return nil, mistake("spec.deployment.helm.ociRepository: holds the chart %q, want that of %s", loaded.Name(),
			deployment.Name)
	}
	return loaded, nil
}

// valuesOf returns the chart's values. The image is the chart's where the object does not say it: a version of the
// chart brings a version of gardenlet.
func valuesOf(gardenlet *seedmanagementv1alpha1.Gardenlet, loaded *chart.Chart, configuration map[string]any,
	serviceAccount string) (map[string]any, error) {
	reference, _ := loaded.Values["image"].(string)
	image, err := imagevector.ParseImage(reference)
	if err != nil {
		return nil, mistake("spec.deployment.helm.ociRepository: values.yaml of the chart: image: %w", err)
	}
	spec := gardenlet.Spec.Deployment
	common := spec.GardenletDeployment.DeepCopy()
	common.ServiceAccountName = &serviceAccount
	return deployment.Values(deployment.Options{
		Deployment: common, Image: image, Config: configuration,
		ImageVectorOverwrite: ptr.Deref(spec.ImageVectorOverwrite, ""),
	})
}

func checksumOf(archive []byte, values map[string]any) (string, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(archive)
	sum.Write(raw)
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// noting writes down, at gardenlet's Deployment, from what it was installed. Its pods do not change by that.
func noting(checksum string) func(*unstructured.Unstructured) error {
	return func(object *unstructured.Unstructured) error {
		if object.GetKind() != "Deployment" || object.GetName() != deploymentKey.Name {
			return nil
		}
		return unstructured.SetNestedField(object.Object, checksum, "metadata", "annotations", checksumAnnotation)
	}
}
