package network

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/managedresources"
)

func TestParseConfig(t *testing.T) {
	for raw, test := range map[string]struct {
		want Backend
		err  string
	}{
		``:                      {BackendVXLAN, ""},
		`{}`:                    {BackendVXLAN, ""},
		`{"backend":"vxlan"}`:   {BackendVXLAN, ""},
		`{"backend":"host-gw"}`: {BackendHostGW, ""},
		`{"backend":"wireguard"}`: {
			"", `spec.networking.providerConfig.backend: "wireguard" is not supported; use vxlan or host-gw`,
		},
		`{"backend":1}`: {"", "spec.networking.providerConfig: "},
		`x`:             {"", "spec.networking.providerConfig: "},
	} {
		config, err := ParseConfig([]byte(raw))
		if (err == nil) != (test.err == "") || config.Backend != test.want ||
			(err != nil && !strings.HasPrefix(err.Error(), test.err)) {
			t.Errorf("%s: got %+v, %v", raw, config, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"backend":"host-gw"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := ParseConfig(raw)
		if err == nil && config.Backend != BackendVXLAN && config.Backend != BackendHostGW {
			t.Errorf("%s is taken for %s", raw, config.Backend)
		}
	})
}

func advertising(addresses ...gardencorev1beta1.ShootAdvertisedAddress) *cluster.Cluster {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one"}}
	shoot.Status.AdvertisedAddresses = addresses
	return &cluster.Cluster{Shoot: shoot}
}

// Nodes reach the API server before services work; where there is a choice, by the name that everybody resolves.
func TestAPIServerHost(t *testing.T) {
	external := gardencorev1beta1.ShootAdvertisedAddress{Name: "external", URL: "https://api.one.example"}
	internal := gardencorev1beta1.ShootAdvertisedAddress{Name: "internal", URL: "https://api.one.internal.example:443"}
	other := gardencorev1beta1.ShootAdvertisedAddress{Name: "service-account-issuer", URL: "https://issuer.example"}
	for name, test := range map[string]struct {
		addresses []gardencorev1beta1.ShootAdvertisedAddress
		want, err string
	}{
		"both":          {[]gardencorev1beta1.ShootAdvertisedAddress{other, internal, external}, "api.one.example", ""},
		"internal only": {[]gardencorev1beta1.ShootAdvertisedAddress{other, internal}, "api.one.internal.example", ""},
		"none": {
			[]gardencorev1beta1.ShootAdvertisedAddress{other}, "",
			"Shoot garden-demo/one advertises no address of its API server yet",
		},
		"broken": {
			[]gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://%"}}, "",
			"status.advertisedAddresses of Shoot garden-demo/one",
		},
	} {
		got, err := apiServerHost(advertising(test.addresses...).Shoot)
		if got != test.want || (err == nil) != (test.err == "") ||
			(err != nil && !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestNetworkOfAShoot(t *testing.T) {
	scheme, err := command.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	images, err := imagevector.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	a := &Actuator{Client: c, Images: images}
	network := &extensionsv1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one"},
		Spec:       extensionsv1alpha1.NetworkSpec{PodCIDR: "100.96.0.0/11"},
	}
	shoot := advertising(gardencorev1beta1.ShootAdvertisedAddress{Name: "external", URL: "https://api.one.example"})
	for range 2 {
		if err := a.Reconcile(t.Context(), logr.Discard(), network, shoot); err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{
		Namespace: "shoot--demo--one", Name: "managedresource-" + resourceName,
	}, secret); err != nil {
		t.Fatal(err)
	}
	objects, err := managedresources.Decode(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"api.one.example", "100.96.0.0/11", `"kind":"DaemonSet"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is missing", part)
		}
	}
	network.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"backend":"udp"}`)}
	err = a.Reconcile(t.Context(), logr.Discard(), network, shoot)
	if !slices.Equal(extension.Codes(err), []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}) {
		t.Errorf("got %v", err)
	}
	// The objects are still in the shoot: its nodes need them to the end.
	var again *extension.RequeueAfter
	if err := a.Delete(t.Context(), logr.Discard(), network, shoot); !errors.As(err, &again) {
		t.Errorf("got %v", err)
	}
	if err := a.Delete(t.Context(), logr.Discard(), network, shoot); err != nil {
		t.Errorf("got %v", err)
	}
}
