package component

import (
	"maps"
	"slices"
	"testing"

	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

func TestCertificateAuthorities(t *testing.T) {
	manager, err := secrets.New(t.Context(), fake.NewClientBuilder().Build(), "ns", secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A control plane that runs would get another authority if its common name were another one.
	wanted := map[string]string{
		"ca": "kubernetes", "ca-client": "kubernetes-client", "ca-etcd": "etcd", "ca-front-proxy": "front-proxy",
		"ca-kubelet": "kubelet", "ca-metrics-server": "metrics-server", "ca-vpn": "vpn", "ca-etcd-peer": "etcd-peer",
	}
	names := slices.Collect(maps.Keys(wanted))
	if err := GenerateCertificateAuthorities(t.Context(), manager, names); err != nil {
		t.Fatal(err)
	}
	for name, want := range wanted {
		bundle, err := CABundleData(manager, name)
		if err != nil {
			t.Fatal(err)
		}
		certificates, err := certutil.ParseCertsPEM(bundle)
		if err != nil || certificates[0].Subject.CommonName != want {
			t.Errorf("%s is called %q, want %q (%v)", name, certificates[0].Subject.CommonName, want, err)
		}
	}
	if _, err := CABundle(manager, "ca-other"); err == nil {
		t.Error("there is an authority that nobody asked for")
	}
}

func TestSortedFlagsAndSwitches(t *testing.T) {
	if got := SortedFlags(map[string]string{"b": "2", "a": ""}); !slices.Equal(got, []string{"--a=", "--b=2"}) {
		t.Errorf("got %v", got)
	}
	if got := Switches(map[string]bool{"B": true, "A": false}); got != "A=false,B=true" {
		t.Errorf("got %v", got)
	}
}

func TestUniqueNamesFollowContent(t *testing.T) {
	a, b := UniqueConfigMap("c", "c", map[string]string{"k": "1"}),
		UniqueConfigMap("c", "c", map[string]string{"k": "2"})
	if a.Name == b.Name || a.Name != UniqueConfigMap("c", "c", map[string]string{"k": "1"}).Name {
		t.Errorf("names are %s and %s", a.Name, b.Name)
	}
}
