package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// chartRegistry holds charts; it returns the references under which the tests ask for them.
type chartRegistry struct{ host string }

func startChartRegistry(t *testing.T) chartRegistry {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return chartRegistry{strings.TrimPrefix(server.URL, "http://")}
}

// push stores a chart of this repository.
func (r chartRegistry) push(t *testing.T, fsys fs.FS, chart, tag string) (reference string) {
	t.Helper()
	archive, err := helm.Pack(fsys, chart)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Append(empty.Image,
		mutate.Addendum{Layer: static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")})
	if err != nil {
		t.Fatal(err)
	}
	reference = r.host + "/charts/" + chart + ":" + tag
	parsed, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	return reference
}

// testSelfDeployment has the gardenlet of the seed deploy itself: the process is this one, what it deploys are objects
// only.
func testSelfDeployment(t *testing.T) {
	charted := startChartRegistry(t)
	good := charted.push(t, charts.FS, "gardenlet", "v1")
	object := load(t, filepath.Join("..", "..", "..", "landscape", "local", "examples",
		"gardenlet.yaml"))[0].(*seedmanagementv1alpha1.Gardenlet)
	object.Name = "local"
	object.Spec.Deployment.Helm.OCIRepository.Ref = &good
	object.Spec.Deployment.PodLabels = map[string]string{"stage": "one"}
	create(t, object)
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })

	awaitDeployment(t, object, gardencorev1beta1.ConditionFalse, "was installed as release garden/gardenlet before")
	installGardenlet(t)
	awaitDeployment(t, object, gardencorev1beta1.ConditionTrue, "")
	checkSelfDeployment(t, "ghcr.io/trellis-garden/gardenlet:latest", "one")

	change := func(change func(*seedmanagementv1alpha1.GardenletSpec)) {
		t.Helper()
		eventually(t, func() error {
			if err := get(object); err != nil {
				return err
			}
			change(&object.Spec)
			return c.Update(context.Background(), object)
		})
	}
	change(func(s *seedmanagementv1alpha1.GardenletSpec) {
		s.Deployment.PodLabels["stage"] = "two"
		s.Deployment.Image.Tag = new("v2")
	})
	awaitDeployment(t, object, gardencorev1beta1.ConditionTrue, "")
	checkSelfDeployment(t, "ghcr.io/trellis-garden/gardenlet:v2", "two")

	for _, mistake := range []struct{ reference, message string }{
		{charted.push(t, charts.FS, "gateway", "v1"), `holds the chart "gateway"`},
		{charted.host + "/charts/gardenlet:none", "MANIFEST_UNKNOWN"},
	} {
		change(func(s *seedmanagementv1alpha1.GardenletSpec) {
			s.Deployment.PodLabels["stage"] = "three"
			s.Deployment.Helm.OCIRepository.Ref = &mistake.reference
		})
		awaitDeployment(t, object, gardencorev1beta1.ConditionFalse, mistake.message)
		checkSelfDeployment(t, "ghcr.io/trellis-garden/gardenlet:v2", "two")
	}
	change(func(s *seedmanagementv1alpha1.GardenletSpec) { s.Deployment.Helm.OCIRepository.Ref = &good })
	awaitDeployment(t, object, gardencorev1beta1.ConditionTrue, "")
	checkSelfDeployment(t, "ghcr.io/trellis-garden/gardenlet:v2", "three")
	checkGardenletRights(t, object)
}

// installGardenlet is the first installation, which is the operator's.
func installGardenlet(t *testing.T) {
	t.Helper()
	installer, err := helm.NewClient(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := helm.LoadFS(charts.FS, "gardenlet")
	if err != nil {
		t.Fatal(err)
	}
	release := helm.Release{
		Namespace: "garden", Name: "gardenlet", Chart: chart,
		Values: map[string]any{"image": "registry.example/gardenlet:v0"},
	}
	if _, err := installer.Install(context.Background(), release); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installer.Uninstall(context.Background(), release.Namespace, release.Name); err != nil {
			t.Error(err)
		}
	})
}

// awaitDeployment waits for what gardenlet says about the present generation.
func awaitDeployment(t *testing.T, object *seedmanagementv1alpha1.Gardenlet, status gardencorev1beta1.ConditionStatus,
	message string) {
	t.Helper()
	wanted := object.Generation
	eventually(t, func() error {
		if err := get(object); err != nil {
			return err
		}
		found := conditions.Get(object.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)
		if found == nil || object.Status.ObservedGeneration < wanted || found.Status != status ||
			!strings.Contains(found.Message, message) {
			return fmt.Errorf("generation %d: status is %+v, want %s with %q", wanted, object.Status, status, message)
		}
		return nil
	})
}

// checkSelfDeployment checks what gardenlet has deployed.
func checkSelfDeployment(t *testing.T, image, stage string) {
	t.Helper()
	deployment, configMap := &appsv1.Deployment{}, &corev1.ConfigMap{}
	deployment.Namespace, deployment.Name, configMap.Namespace, configMap.Name = "garden", "gardenlet", "garden",
		"gardenlet-config"
	if err := errors.Join(get(deployment), get(configMap)); err != nil {
		t.Fatal(err)
	}
	template := deployment.Spec.Template
	if template.Spec.Containers[0].Image != image || template.Labels["stage"] != stage ||
		template.Spec.ServiceAccountName != "gardenlet" {
		t.Errorf("deployment has image %s, labels %v, account %s; want %s, stage %s", template.Spec.Containers[0].Image,
			template.Labels, template.Spec.ServiceAccountName, image, stage)
	}
	parsed, err := config.Parse([]byte(configMap.Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if parsed.SeedConfig.Name != "local" || parsed.SeedConfig.Labels["stage"] != "example" ||
		parsed.Gateway.Address != "172.18.0.2" || parsed.GardenClientConnection.Kubeconfig == "" {
		t.Errorf("configuration is %s", configMap.Data["config.yaml"])
	}
}

// checkGardenletRights tries what gardenlets may do with Gardenlets besides what they have done above.
func checkGardenletRights(t *testing.T, object *seedmanagementv1alpha1.Gardenlet) {
	t.Helper()
	for seed, reads := range map[string]bool{"local": true, "other": false} {
		access, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.SeedUserNamePrefix+seed,
			gardencorev1beta1.SeedsGroup)
		if err != nil {
			t.Fatal(err)
		}
		garden, err := client.New(access, client.Options{Scheme: scheme(t)})
		if err != nil {
			t.Fatal(err)
		}
		found := &seedmanagementv1alpha1.Gardenlet{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name},
		}
		if err := garden.Get(context.Background(), client.ObjectKeyFromObject(found), found); (err == nil) != reads ||
			err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("seed %s reads the Gardenlet of seed local: %v", seed, err)
		}
		before := object.DeepCopy()
		changed := object.DeepCopy()
		changed.Labels = map[string]string{"changed": "by-" + seed}
		if err := garden.Patch(context.Background(), changed, client.MergeFrom(before)); !apierrors.IsForbidden(err) {
			t.Errorf("seed %s changes the Gardenlet of seed local beside its status: %v", seed, err)
		}
	}
}
