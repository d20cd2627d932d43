package seed

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func TestSeedHasItsOwnExtensions(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	registration := &gardencorev1beta1.ControllerRegistration{}
	registration.Name = "all"
	registration.Spec.Resources = []gardencorev1beta1.ControllerResource{
		{
			Kind: "Extension", Type: "automatic",
			AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeSeed},
		},
		{
			Kind: "Extension", Type: "declined",
			AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeSeed},
		},
		{
			Kind: "Extension", Type: "for-shoots",
			AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeShoot},
		},
		{Kind: "Extension", Type: "asked"},
	}
	seed := &gardencorev1beta1.Seed{}
	seed.Spec.Extensions = []gardencorev1beta1.Extension{
		{Type: "asked", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		{Type: "declined", Disabled: new(true)},
	}
	r := &Reconciler{
		Garden: fake.NewClientBuilder().WithScheme(scheme).WithObjects(registration).Build(),
		Seed:   fake.NewClientBuilder().WithScheme(scheme).Build(),
	}
	// One is written and waited for at a time; here nobody answers.
	if err := r.installExtensions(t.Context(), seed); err == nil || !strings.Contains(err.Error(), "extension asked") {
		t.Errorf("an extension that is not ready is not told: %v", err)
	}
	got := &extensionsv1alpha1.Extension{}
	if err := r.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "asked"}, got); err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(got.Spec.Class, "") != extensionsv1alpha1.ExtensionClassSeed ||
		string(got.Spec.ProviderConfig.Raw) != `{"a":1}` {
		t.Errorf("the Extension is %+v", got.Spec)
	}
	if wanted := extensionsOf(seed, []gardencorev1beta1.ControllerRegistration{*registration}); len(wanted) != 2 ||
		wanted["automatic"].Type == "" || wanted["asked"].Type == "" {
		t.Errorf("the seed is to have %v", wanted)
	}
	if err := r.removeExtensions(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); client.IgnoreNotFound(err) != nil ||
		err == nil {
		t.Errorf("an Extension that is not wanted stays: %v", err)
	}
}
