package federation

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/egress/proxy"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
)

// fleetNamespace is that of the fleet's control plane in a seed.
const fleetNamespace = "shoot--demo--fleet"

// startEgress runs the proxy of a seed with the files that deployedFiles gives, and returns the egress selector that
// gardenlet gives a fleet's kube-apiserver, with paths of this machine.
func (s *apiServers) startEgress(files map[string][]byte) (selector string, err error) {
	for name, content := range files {
		if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
			return "", err
		}
	}
	cluster, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := proxy.New(proxy.Config{
		TLS: tlsfiles.Files{Cert: s.file("egress.crt"), Key: s.file("egress.key"), CA: s.file("egress-ca.crt")},
		Log: logr.Discard(), Dial: s.dialInSeed,
	})
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(running, cluster, outside) }()
	s.stops = append(s.stops, func() { cancel(); <-done })
	text := strings.NewReplacer(
		"/etc/kubernetes/config/files/egress-ca.crt", s.file("egress-ca.crt"),
		"/etc/kubernetes/pki/egress-client/tls.crt", s.file("egress-client.crt"),
		"/etc/kubernetes/pki/egress-client/tls.key",
		s.file("egress-client.key")+"\n          tlsServerName: "+egresscomponent.Host,
		egresscomponent.Host+":9443", cluster.Addr().String(),
		egresscomponent.Host+":9444", outside.Addr().String(),
	).Replace(string(files["egress-selector.yaml"]))
	return s.file("egress-selector.yaml"), os.WriteFile(s.file("egress-selector.yaml"), []byte(text), 0o600)
}

// dialInSeed knows the one name that a seed's DNS would.
func (s *apiServers) dialInSeed(ctx context.Context, network, address string) (net.Conn, error) {
	if address == vpnv1alpha1.ServedAPIs+"."+fleetNamespace+".svc:8443" {
		address, _ = s.servedAPIs.Load().(string)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// deployedFiles are those that the components put into Secrets of a seed.
func deployedFiles() (map[string][]byte, error) {
	c := fake.NewClientBuilder().Build()
	if err := egresscomponent.New(c, egresscomponent.Values{Image: "vpn:v1"}).Deploy(ctx); err != nil {
		return nil, err
	}
	authority, err := egresscomponent.Authority(ctx, c)
	if err != nil {
		return nil, err
	}
	manager, err := secrets.New(ctx, c, fleetNamespace,
		secrets.Options{Authorities: map[string]*corev1.Secret{component.CAEgress: authority}})
	if err != nil {
		return nil, err
	}
	if err := component.GenerateCertificateAuthorities(ctx, manager, kubeapiserver.Authorities()); err != nil {
		return nil, err
	}
	values := kubeapiserver.Values{
		Image: "kube-apiserver:v1", ServiceNetworks: []string{"10.0.0.0/24"}, IsWorkerless: true,
		EgressHost: egresscomponent.Host,
	}
	if err := kubeapiserver.New(c, fleetNamespace, manager, values).Deploy(ctx); err != nil {
		return nil, err
	}
	list := &corev1.SecretList{}
	if err := c.List(ctx, list, client.HasLabels{secrets.LabelManagedBy}); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, secret := range list.Items {
		switch secret.Labels[secrets.LabelName] {
		case "egress":
			files["egress.crt"], files["egress.key"] = secret.Data[secrets.DataKeyCertificate],
				secret.Data[secrets.DataKeyPrivateKey]
		case "kube-apiserver-egress-client":
			files["egress-client.crt"], files["egress-client.key"] = secret.Data[secrets.DataKeyCertificate],
				secret.Data[secrets.DataKeyPrivateKey]
		case "kube-apiserver-config":
			files["egress-ca.crt"], files["egress-selector.yaml"] = secret.Data["egress-ca.crt"],
				secret.Data["egress-selector.yaml"]
		}
	}
	if len(files) != 6 {
		return nil, errors.New("a seed has no certificates for the egress proxy")
	}
	return files, nil
}
