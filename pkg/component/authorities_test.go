package component

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

func TestCertificateAuthorities(t *testing.T) {
	for workerless, want := range map[bool][]string{
		false: {"ca", "ca-client", "ca-etcd", "ca-front-proxy", "ca-kubelet", "ca-metrics-server", "ca-vpn"},
		true:  {"ca", "ca-client", "ca-etcd", "ca-front-proxy"},
	} {
		manager, err := secrets.New(t.Context(), fake.NewClientBuilder().Build(), "ns", secrets.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := GenerateCertificateAuthorities(t.Context(), manager, workerless); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"ca", "ca-client", "ca-etcd", "ca-front-proxy", "ca-kubelet", "ca-metrics-server", "ca-vpn",
		} {
			if _, err := CABundle(manager, name); (err == nil) != slices.Contains(want, name) {
				t.Errorf("workerless %t: bundle of %s: %v", workerless, name, err)
			}
		}
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
