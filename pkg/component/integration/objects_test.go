package integration

import (
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/component/shootsystem"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func newFlagSet(options *etcd.Options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("etcd-steward", pflag.ContinueOnError)
	options.AddFlags(flags)
	return flags
}

// systemObjects are all objects that a shoot starts with, and, to let a real server check them too, the policies of its
// namespace in the seed.
func (cp *controlPlane) systemObjects(t *testing.T, values shootsystem.Values) []client.Object {
	t.Helper()
	private, public, err := vpnseedserver.ShootKeys(t.Context(), cp.secrets)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := component.CABundle(cp.secrets, component.CACluster)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kubeproxy.Objects(kubeproxy.Values{
		Image: "kube-proxy", PodNetworks: []string{"10.3.0.0/16"},
		Server:   "https://api.member1.demo.local.trellis.garden",
		CABundle: bundle.Data[secrets.DataKeyCertificateBundle],
	})
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, shootsystem.Objects(values)...)
	objects = append(objects, coredns.Objects(coredns.Values{Image: "coredns", ClusterIP: "10.4.0.10"})...)
	objects = append(objects, metricsserver.Objects(metricsserver.Values{
		Image: "metrics-server", CABundle: bundle.Data[secrets.DataKeyCertificateBundle],
	})...)
	objects = append(objects, vpnshoot.Objects(vpnshoot.Values{
		Image: "vpn", Endpoint: "gw:51820", PrivateKey: private, SeedPublicKey: public,
	})...)
	objects = append(objects, apiserverproxy.Objects(apiserverproxy.Values{
		Image: "vpn", Gateway: "gw:8443", Authority: "api",
	})...)
	return append(objects, networkpolicies.Objects(networkpolicies.Shoot, "default",
		networkpolicies.Values{
			Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
		})...)
}
