package shoot

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// Every component is told apart by its name, and made by one of its functions.
func TestComponentsAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, c := range slices.Concat(controlPlaneComponents, systemComponents) {
		if names[c.name] {
			t.Errorf("two components are called %s", c.name)
		}
		names[c.name] = true
		inShoot := slices.ContainsFunc(systemComponents, func(s shootComponent) bool { return s.name == c.name })
		if inShoot != (c.objects != nil) || inShoot && c.build != nil || c.companion && c.build == nil {
			t.Errorf("%s is not made by what makes components of its list", c.name)
		}
	}
}

// What a shoot had before its specification changed goes, with the Secret that it was applied from; the rest stays.
func TestSystemComponentsThatAreNotWantedGo(t *testing.T) {
	o := operation(t, func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeProxy = &gardencorev1beta1.KubeProxyConfig{Enabled: ptr.To(false)}
	})
	var present []client.Object
	for _, name := range []string{"shoot-core-kube-proxy", "shoot-core-coredns"} {
		present = append(present, &resourcesv1alpha1.ManagedResource{ObjectMeta: o.meta(name)}, &corev1.Secret{ObjectMeta: o.meta(secretPrefix + name)})
	}
	o.Seed = fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(present...).Build()
	if err := o.removeSystemComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, object := range present {
		err := o.Seed.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if wanted := i >= 2; wanted && err != nil || !wanted && !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v, wanted: %v", object, object.GetName(), err, wanted)
		}
	}
}

// One line in a list brings a component into the plan with its image, into the flow, and among what must be healthy.
func TestAComponentIsOneLine(t *testing.T) {
	nothing := func(*Operation, context.Context) ([]client.Object, error) { return nil, nil }
	controlPlane, system := controlPlaneComponents, systemComponents
	t.Cleanup(func() { controlPlaneComponents, systemComponents = controlPlane, system })
	controlPlaneComponents = append(slices.Clip(controlPlane), shootComponent{
		name: "pretended", images: []string{"pretended"}, leftOut: isWorkerless, companion: true, build: (*Operation).kubeScheduler,
	})
	systemComponents = append(slices.Clip(system), shootComponent{name: "shoot-core-pretended", objects: nothing})
	for name, test := range map[string]struct {
		change func(*Inputs)
		inFlow string
		isPart bool
	}{
		"workers":    {func(*Inputs) {}, "Waiting until pretended is ready <- ", true},
		"workerless": {workerless, "Waiting until pretended is ready (skipped) <- ", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := operation(t, test.change)
			if o.Plan.Images["pretended"] == "" || o.Plan.Has("pretended") != test.isPart || !o.Plan.Has("shoot-core-pretended") {
				t.Errorf("planned: %q, images %q", o.Plan.Components, o.Plan.Images)
			}
			graph, err := o.ReconcileFlow()
			if err != nil {
				t.Fatal(err)
			}
			if flow := graph.String(); !strings.Contains(flow, test.inFlow) || !strings.Contains(flow, "Deploying shoot-core-pretended <- ") {
				t.Errorf("the flow is\n%s", flow)
			}
			missing := workloadProblem(others(controlPlane, &o.Inputs.Shoot.Spec), etcds(), &o.Inputs.Shoot.Spec)
			if strings.Contains(missing.message, "Deployment pretended is missing") != test.isPart {
				t.Errorf("without its Deployment the control plane has the problem %+v", missing)
			}
		})
	}
}

// others are healthy Deployments of a list's components, etcds the StatefulSets.
func others(list []shootComponent, shoot *gardencorev1beta1.ShootSpec) []appsv1.Deployment {
	var deployments []appsv1.Deployment
	for _, name := range componentsOf(list, shoot) {
		deployments = append(deployments, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0)},
		})
	}
	return deployments
}

func etcds() []appsv1.StatefulSet {
	var sets []appsv1.StatefulSet
	for _, c := range controlPlaneComponents {
		if c.etcd {
			sets = append(sets, appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0)}})
		}
	}
	return sets
}
