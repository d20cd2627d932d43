package extensions

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func registering(resources ...gardencorev1beta1.ControllerResource) gardencorev1beta1.ControllerRegistration {
	return gardencorev1beta1.ControllerRegistration{
		Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: resources},
	}
}

func TestExtensionsGoInTheirTurn(t *testing.T) {
	in := plantest.Inputs()
	in.Registrations = append(in.Registrations, registering(
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "early"},
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "late",
			ReconcileTimeout: &metav1.Duration{Duration: time.Minute},
			Lifecycle: &gardencorev1beta1.ControllerResourceLifecycle{
				Delete: new(gardencorev1beta1.AfterKubeAPIServer),
			}},
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "dropped"},
	))
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "early"}, {Type: "late"}, {Type: "dropped"}}
	known := scheme.Builder{GroupVersion: extensionsv1alpha1.SchemeGroupVersion}
	known.Register(&extensionsv1alpha1.Extension{}, &extensionsv1alpha1.ExtensionList{})
	s, err := known.Build()
	if err == nil {
		err = clientgoscheme.AddToScheme(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := plantest.Plan(t, in)
	e := &Objects{Shoot: p.Identity, Wanted: p.Extensions, Seed: fake.NewClientBuilder().WithScheme(s).Build()}
	for _, wanted := range e.Wanted {
		if err := e.deploy(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	left := func() map[string]time.Duration {
		list := &extensionsv1alpha1.ExtensionList{}
		if err := e.Seed.List(t.Context(), list, client.InNamespace(e.Shoot.Namespace)); err != nil {
			t.Fatal(err)
		}
		names := map[string]time.Duration{}
		for i := range list.Items {
			names[list.Items[i].Name] = timingOf(&list.Items[i]).Timeout
		}
		return names
	}
	in.Shoot.Spec.Extensions = in.Shoot.Spec.Extensions[:2]
	e.Wanted = plantest.Plan(t, in).Extensions
	if err := e.remove(t.Context(), e.unwanted); err != nil || len(left()) != 2 {
		t.Errorf("after one is dropped from the shoot there are %v, %v", left(), err)
	}
	early := func(object *extensionsv1alpha1.Extension) bool {
		return deleteLifecycle(object) == gardencorev1beta1.BeforeKubeAPIServer
	}
	if err := e.remove(t.Context(), early); err != nil || len(left()) != 1 || left()["late"] != time.Minute {
		t.Errorf("after the first turn there are %v, %v", left(), err)
	}
}
