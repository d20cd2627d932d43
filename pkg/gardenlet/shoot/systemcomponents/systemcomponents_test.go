package systemcomponents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// What a shoot had before its specification changed goes, with the Secret that it was applied from; the rest stays.
func TestSystemComponentsThatAreNotWantedGo(t *testing.T) {
	s := &System{Plan: plantest.New(t, func(in *plan.Inputs) {
		in.Shoot.Spec.Kubernetes.KubeProxy = &gardencorev1beta1.KubeProxyConfig{Enabled: new(false)}
	})}
	var present []client.Object
	for _, name := range []string{"shoot-core-kube-proxy", "shoot-core-coredns"} {
		present = append(present, &resourcesv1alpha1.ManagedResource{ObjectMeta: s.Plan.Meta(name)},
			&corev1.Secret{ObjectMeta: s.Plan.Meta("managedresource-" + name)})
	}
	s.Seed = fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(present...).Build()
	if err := s.removeSystemComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, object := range present {
		err := s.Seed.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if wanted := i >= 2; wanted && err != nil || !wanted && !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v, wanted: %v", object, object.GetName(), err, wanted)
		}
	}
}

func TestSystemPools(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Value: "system", Effect: corev1.TaintEffectNoSchedule}
	p := plantest.New(t, func(in *plan.Inputs) {
		in.Shoot.Spec.Provider.Workers[0].Taints = []corev1.Taint{taint}
		other := *in.Shoot.Spec.Provider.Workers[0].DeepCopy()
		other.Name, other.SystemComponents = "other", &gardencorev1beta1.WorkerSystemComponents{Allow: false}
		other.Taints = []corev1.Taint{{Key: "user", Effect: corev1.TaintEffectNoExecute}}
		in.Shoot.Spec.Provider.Workers = append(in.Shoot.Spec.Provider.Workers, other)
	})
	want := []corev1.Toleration{
		{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "system", Effect: corev1.TaintEffectNoSchedule},
	}
	if difference := cmp.Diff(want, p.SystemPoolTolerations); difference != "" {
		t.Error(difference)
	}
	found := false
	values := components.ValuesOf[coredns.Values](p.Values, components.CoreDNS)
	for _, object := range onSystemPools(coredns.Objects(values), p.SystemPoolTolerations) {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			found = true
			pod := deployment.Spec.Template.Spec
			if pod.NodeSelector[gardencorev1beta1.LabelWorkerPoolSystemComponents] != "true" ||
				pod.Tolerations[len(pod.Tolerations)-1] != want[0] {
				t.Errorf("node selector %v, tolerations %v", pod.NodeSelector, pod.Tolerations)
			}
		}
	}
	if !found {
		t.Error("no Deployment")
	}
}

func TestDaemonSetsAreNotConfined(t *testing.T) {
	objects, err := kubeproxy.Objects(kubeproxy.Values{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range onSystemPools(objects, nil) {
		if set, ok := object.(*appsv1.DaemonSet); ok && set.Spec.Template.Spec.NodeSelector != nil {
			t.Errorf("DaemonSet %s is confined to %v", client.ObjectKeyFromObject(set),
				set.Spec.Template.Spec.NodeSelector)
		}
	}
}
