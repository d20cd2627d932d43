package deployment

import (
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// render returns the objects of gardenlet's chart, by file.
func render(t *testing.T, deployment *seedmanagementv1alpha1.GardenletDeployment) map[string]string {
	t.Helper()
	chart, err := helm.LoadFS(charts.FS, Name)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"seedConfig": map[string]any{}}
	values, err := Values(Options{
		Deployment: deployment, Image: imagevector.Image{Repository: "registry.example/gardenlet", Tag: "v1"},
		Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: Name, Namespace: Namespace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func deploymentOf(t *testing.T, rendered map[string]string) *appsv1.Deployment {
	t.Helper()
	object := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(rendered["gardenlet/templates/deployment.yaml"]), object); err != nil {
		t.Fatalf("%v in\n%s", err, rendered["gardenlet/templates/deployment.yaml"])
	}
	return object
}

// TestEveryFieldHasItsEffect changes one field at a time.
func TestEveryFieldHasItsEffect(t *testing.T) {
	volume := corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	mount := corev1.VolumeMount{Name: "more", MountPath: "/more"}
	variable := corev1.EnvVar{Name: "COLOUR", Value: "blue"}
	toleration := corev1.Toleration{Key: "seed", Operator: corev1.TolerationOpExists}
	resources := corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	for name, test := range map[string]struct {
		change func(*seedmanagementv1alpha1.GardenletDeployment)
		effect func(*appsv1.Deployment) (got, want any)
	}{
		"replicaCount": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.ReplicaCount = new(int32(3)) },
			func(d *appsv1.Deployment) (any, any) { return d.Spec.Replicas, new(int32(3)) },
		},
		"replicaCount elects": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.ReplicaCount = new(int32(2)) },
			func(d *appsv1.Deployment) (any, any) {
				arguments := d.Spec.Template.Spec.Containers[0].Args
				return arguments[len(arguments)-2], "--leader-elect"
			},
		},
		"revisionHistoryLimit": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.RevisionHistoryLimit = new(int32(7)) },
			func(d *appsv1.Deployment) (any, any) { return d.Spec.RevisionHistoryLimit, new(int32(7)) },
		},
		"serviceAccountName": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.ServiceAccountName = new("other") },
			func(d *appsv1.Deployment) (any, any) { return d.Spec.Template.Spec.ServiceAccountName, "other" },
		},
		"image.tag": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Image = &seedmanagementv1alpha1.Image{Tag: new("v2")}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Image, "registry.example/gardenlet:v2"
			},
		},
		"image.repository": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Image = &seedmanagementv1alpha1.Image{Repository: new("other.example/g")}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Image, "other.example/g:v1"
			},
		},
		"image.ref": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Image = &seedmanagementv1alpha1.Image{Ref: new("other.example/g@sha256:1")}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Image, "other.example/g@sha256:1"
			},
		},
		"image.pullPolicy": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Image = &seedmanagementv1alpha1.Image{PullPolicy: new(corev1.PullAlways)}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].ImagePullPolicy, corev1.PullAlways
			},
		},
		"resources": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.Resources = &resources },
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Resources.Limits, resources.Limits
			},
		},
		"resources above the chart's limit": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Resources = &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")},
				}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Resources.Limits,
					corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")}
			},
		},
		"env has the limit of the garbage collector": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.Env = []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "1GiB"}}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].Env[2:], []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "1GiB"}}
			},
		},
		"podLabels": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.PodLabels = map[string]string{"stage": "one"} },
			func(d *appsv1.Deployment) (any, any) { return d.Spec.Template.Labels["stage"], "one" },
		},
		"podAnnotations": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.PodAnnotations = map[string]string{"stage": "one"}
			},
			func(d *appsv1.Deployment) (any, any) { return d.Spec.Template.Annotations["stage"], "one" },
		},
		"additionalVolumes": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.AdditionalVolumes = []corev1.Volume{volume} },
			func(d *appsv1.Deployment) (any, any) { return d.Spec.Template.Spec.Volumes[2], volume },
		},
		"additionalVolumeMounts": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) {
				d.AdditionalVolumeMounts = []corev1.VolumeMount{mount}
			},
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].VolumeMounts[2], mount
			},
		},
		"env": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.Env = []corev1.EnvVar{variable} },
			func(d *appsv1.Deployment) (any, any) {
				all := d.Spec.Template.Spec.Containers[0].Env
				return all[len(all)-1], variable
			},
		},
		"tolerations": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.Tolerations = []corev1.Toleration{toleration} },
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Tolerations, []corev1.Toleration{toleration}
			},
		},
		"enableHealthProbes": {
			func(d *seedmanagementv1alpha1.GardenletDeployment) { d.EnableHealthProbes = new(false) },
			func(d *appsv1.Deployment) (any, any) {
				return d.Spec.Template.Spec.Containers[0].LivenessProbe, (*corev1.Probe)(nil)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &seedmanagementv1alpha1.GardenletDeployment{}
			test.change(deployment)
			if got, want := test.effect(deploymentOf(t, render(t, deployment))); !apiequality.Semantic.DeepEqual(got,
				want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestWithoutDeploymentTheChartDecides(t *testing.T) {
	object := deploymentOf(t, render(t, nil))
	container := object.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example/gardenlet:v1" || *object.Spec.Replicas != 1 ||
		container.LivenessProbe == nil {
		t.Errorf("deployment is %+v", object.Spec)
	}
	if limit := resource.MustParse(mostMemory); container.Resources.Limits.Memory().Cmp(limit) != 0 {
		t.Errorf("the chart's limit of memory is %s, not the %s that requests are held against",
			container.Resources.Limits.Memory(), mostMemory)
	}
}
