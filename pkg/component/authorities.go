package component

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

// The certificate authorities of a control plane.
const (
	// CACluster signs kube-apiserver's certificate; it is what clients of the cluster trust.
	CACluster = "ca"
	// CAClient signs client certificates that kube-apiserver accepts.
	CAClient = "ca-client"
	// CAETCD signs both sides of the connections to etcd.
	CAETCD = "ca-etcd"
	// CAFrontProxy signs kube-apiserver's certificate towards aggregated API servers.
	CAFrontProxy = "ca-front-proxy"
	// CAKubelet signs kubelets' serving certificates and kube-apiserver's client certificate towards them.
	CAKubelet = "ca-kubelet"
	// CAMetricsServer signs metrics-server's certificate.
	CAMetricsServer = "ca-metrics-server"
	// CAEgress signs both sides of the connections between kube-apiservers and the egress proxy of their seed. It lies
	// in the namespace garden.
	CAEgress = "ca-egress"
	// CAVPN signs both sides of the connection between kube-apiserver and vpn-seed-server.
	CAVPN = "ca-vpn"
)

// CertificateAuthorities returns the configurations of the authorities that a control plane needs; one without workers
// has no kubelets, nothing that measures them, and no VPN.
func CertificateAuthorities(workerless bool) []secrets.CertificateConfig {
	list := []secrets.CertificateConfig{
		{Name: CACluster, CommonName: "kubernetes", CertType: secrets.CACert},
		{Name: CAClient, CommonName: "kubernetes-client", CertType: secrets.CACert},
		{Name: CAETCD, CommonName: "etcd", CertType: secrets.CACert},
		{Name: CAFrontProxy, CommonName: "front-proxy", CertType: secrets.CACert},
	}
	if workerless {
		return list
	}
	return append(list,
		secrets.CertificateConfig{Name: CAKubelet, CommonName: "kubelet", CertType: secrets.CACert},
		secrets.CertificateConfig{Name: CAMetricsServer, CommonName: "metrics-server", CertType: secrets.CACert},
		secrets.CertificateConfig{Name: CAVPN, CommonName: "vpn", CertType: secrets.CACert},
	)
}

// GenerateCertificateAuthorities makes the authorities. Every part of a control plane relies on them.
func GenerateCertificateAuthorities(ctx context.Context, manager secrets.Manager, workerless bool,
	options ...secrets.Option) error {
	for _, config := range CertificateAuthorities(workerless) {
		if _, err := manager.Generate(ctx, config, options...); err != nil {
			return err
		}
	}
	return nil
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
