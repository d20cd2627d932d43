package component

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

// The certificate authorities that several parts of a control plane need. One that is a part's own is named in its
// package.
const (
	// CACluster signs kube-apiserver's certificate; it is what clients of the cluster trust.
	CACluster = "ca"
	// CAClient signs client certificates that kube-apiserver accepts.
	CAClient = "ca-client"
	// CAETCD signs both sides of the connections to etcd.
	CAETCD = "ca-etcd"
	// CAETCDPeer signs both sides of the connections between the members of an etcd. Whoever has a certificate of it
	// can change all data, so that it is another one than that of etcd's clients.
	CAETCDPeer = "ca-etcd-peer"
	// CAFrontProxy signs kube-apiserver's certificate towards aggregated API servers.
	CAFrontProxy = "ca-front-proxy"
	// CAKubelet signs kubelets' serving certificates and kube-apiserver's client certificate towards them.
	CAKubelet = "ca-kubelet"
	// CAEgress signs both sides of the connections between kube-apiservers and the egress proxy of their seed. It lies
	// in the namespace garden.
	CAEgress = "ca-egress"
	// CAVPN signs both sides of the connection between kube-apiserver and vpn-seed-server.
	CAVPN = "ca-vpn"
)

// GenerateCertificateAuthorities makes the authorities of some names, on which the parts of a control plane rely.
func GenerateCertificateAuthorities(ctx context.Context, manager secrets.Manager, names []string,
	options ...secrets.Option) error {
	for _, name := range names {
		config := secrets.CertificateConfig{Name: name, CommonName: commonName(name), CertType: secrets.CACert}
		if _, err := manager.Generate(ctx, config, options...); err != nil {
			return err
		}
	}
	return nil
}

// commonName is what an authority of this name is called in its certificate.
func commonName(name string) string {
	switch name {
	case CACluster:
		return "kubernetes"
	case CAClient:
		return "kubernetes-client"
	}
	return strings.TrimPrefix(name, "ca-")
}

// CABundle returns the Secret with the certificates to trust of an authority.
func CABundle(manager secrets.Manager, name string) (*corev1.Secret, error) {
	secret, found := manager.Get(name, secrets.Bundle)
	if !found {
		return nil, fmt.Errorf("the certificate authority %q has not been generated; generate the authorities "+
			"before the parts that use them", name)
	}
	return secret, nil
}

// CABundleData returns the certificates to trust of an authority, in PEM.
func CABundleData(manager secrets.Manager, name string) ([]byte, error) {
	secret, err := CABundle(manager, name)
	if err != nil {
		return nil, err
	}
	return secret.Data[secrets.DataKeyCertificateBundle], nil
}
