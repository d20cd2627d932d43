package shoot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func registering(resources ...gardencorev1beta1.ControllerResource) gardencorev1beta1.ControllerRegistration {
	return gardencorev1beta1.ControllerRegistration{Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: resources}}
}

func TestAutomaticExtensions(t *testing.T) {
	in := inputs()
	in.Registrations = append(in.Registrations, registering(gardencorev1beta1.ControllerResource{
		Kind: "Extension", Type: "audit", AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeShoot},
	}))
	if p := plan(t, in); len(p.Extensions) != 1 || p.Extensions[0].Type != "audit" {
		t.Errorf("extensions are %v", p.Extensions)
	}
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "audit", Disabled: ptr.To(true)}}
	if p := plan(t, in); len(p.Extensions) != 0 {
		t.Errorf("extensions are %v although it is disabled", p.Extensions)
	}
}

func TestExtensionsAreTreatedAsRegistered(t *testing.T) {
	in := inputs()
	in.Registrations = append(in.Registrations, registering(
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "plain"},
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "special", ReconcileTimeout: &metav1.Duration{Duration: time.Minute},
			Lifecycle: &gardencorev1beta1.ControllerResourceLifecycle{
				Reconcile: ptr.To(gardencorev1beta1.AfterWorker), Delete: ptr.To(gardencorev1beta1.AfterKubeAPIServer),
			}},
	))
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "special"}, {Type: "plain"}}
	got := plan(t, in).Extensions
	want := []ExtensionPlan{
		{Type: "plain", Lifecycle: gardencorev1beta1.AfterKubeAPIServer, DeleteLifecycle: gardencorev1beta1.BeforeKubeAPIServer, Timeout: 3 * time.Minute},
		{Type: "special", Lifecycle: gardencorev1beta1.AfterWorker, DeleteLifecycle: gardencorev1beta1.AfterKubeAPIServer, Timeout: time.Minute},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v", got)
	}
}

func TestExtensionsGoInTheirTurn(t *testing.T) {
	in := inputs()
	in.Registrations = append(in.Registrations, registering(
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "early"},
		gardencorev1beta1.ControllerResource{Kind: "Extension", Type: "late", ReconcileTimeout: &metav1.Duration{Duration: time.Minute},
			Lifecycle: &gardencorev1beta1.ControllerResourceLifecycle{Delete: ptr.To(gardencorev1beta1.AfterKubeAPIServer)}},
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
	o := &Operation{Plan: plan(t, in), Seed: fake.NewClientBuilder().WithScheme(s).Build()}
	for _, wanted := range o.Plan.Extensions {
		if err := o.deployExtension(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	left := func() map[string]time.Duration {
		list := &extensionsv1alpha1.ExtensionList{}
		if err := o.Seed.List(t.Context(), list, client.InNamespace(o.Plan.Namespace)); err != nil {
			t.Fatal(err)
		}
		names := map[string]time.Duration{}
		for i := range list.Items {
			names[list.Items[i].Name] = timingOf(&list.Items[i]).Timeout
		}
		return names
	}
	in.Shoot.Spec.Extensions = in.Shoot.Spec.Extensions[:2]
	o.Plan = plan(t, in)
	if err := o.removeExtensions(t.Context(), o.unwanted); err != nil || len(left()) != 2 {
		t.Errorf("after one is dropped from the shoot there are %v, %v", left(), err)
	}
	early := func(e *extensionsv1alpha1.Extension) bool {
		return deleteLifecycle(e) == gardencorev1beta1.BeforeKubeAPIServer
	}
	if err := o.removeExtensions(t.Context(), early); err != nil || len(left()) != 1 || left()["late"] != time.Minute {
		t.Errorf("after the first turn there are %v, %v", left(), err)
	}
}
