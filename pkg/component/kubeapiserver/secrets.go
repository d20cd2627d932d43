package kubeapiserver

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	frontProxyUser = "front-proxy-client"
	// folderVPNClient and folderEgressClient hold certificates for the proxies.
	folderVPNClient    = "vpn-client"
	folderEgressClient = "egress-client"
	// EncryptionKeyName is the configuration name of the key for encryption at rest.
	EncryptionKeyName = "kube-apiserver-etcd-encryption-key"
	// KubeletClientUser is the user that kube-apiserver is for kubelets.
	KubeletClientUser = "system:kube-apiserver:kubelet"
)

// mountedSecrets are the names of the Secrets in the pod, by the folder they appear in.
type mountedSecrets struct {
	// pki are certificates, keys and bundles; config are configuration files.
	pki    map[string]component.SecretFiles
	config map[string]component.SecretFiles
}

// generateSecrets makes everything that the pod mounts.
func generateSecrets(ctx context.Context, manager secrets.Manager, namespace string, v Values) (mountedSecrets, error) {
	mounted := mountedSecrets{pki: map[string]component.SecretFiles{}, config: map[string]component.SecretFiles{}}
	for _, name := range authorities(v) {
		bundle, err := component.CABundle(manager, name)
		if err != nil {
			return mounted, err
		}
		mounted.pki[name] = files(bundle, secrets.DataKeyCertificateBundle)
	}
	configs, err := certificates(namespace, v)
	if err != nil {
		return mounted, err
	}
	for folder, config := range configs {
		secret, err := manager.Generate(ctx, config)
		if err != nil {
			return mounted, err
		}
		mounted.pki[folder] = files(secret, secrets.DataKeyCertificate, secrets.DataKeyPrivateKey)
	}
	if err := generateServiceAccountKey(ctx, manager, v, mounted); err != nil {
		return mounted, err
	}
	return mounted, generateConfiguration(ctx, manager, v, mounted)
}

func files(secret *corev1.Secret, keys ...string) component.SecretFiles {
	result := component.SecretFiles{Secret: secret.Name, Files: map[string]string{}}
	for _, key := range keys {
		result.Files[key] = key
	}
	return result
}

// Authorities are those that every kube-apiserver needs, with its etcds.
func Authorities() []string {
	return []string{
		component.CACluster, component.CAClient, component.CAETCD, component.CAETCDPeer, component.CAFrontProxy,
	}
}

// authorities are those whose bundles the process reads.
func authorities(v Values) []string {
	list := []string{component.CAClient, component.CAETCD, component.CAFrontProxy}
	if !v.IsWorkerless {
		list = append(list, component.CAKubelet)
	}
	if v.VPN != nil {
		list = append(list, component.CAVPN)
	}
	return list
}

// certificates returns the certificates of the process by the folder they are mounted in.
func certificates(namespace string, v Values) (map[string]secrets.CertificateConfig, error) {
	server, err := serverCertificate(namespace, v)
	if err != nil {
		return nil, err
	}
	configs := map[string]secrets.CertificateConfig{
		"server":      server,
		"etcd-client": etcdcomponent.ClientCertificate(),
		"front-proxy-client": {
			// Aggregated API servers learn of a new authority from a ConfigMap, when they look the next time.
			Name: "kube-aggregator", CommonName: frontProxyUser, CertType: secrets.ClientCert,
			SigningCA: component.CAFrontProxy, SignedByOldCA: true,
		},
	}
	if !v.IsWorkerless {
		configs["kubelet-client"] = secrets.CertificateConfig{
			// Kubelets learn of a new authority through this API server.
			Name: "kube-apiserver-kubelet", CommonName: KubeletClientUser, CertType: secrets.ClientCert,
			SigningCA: component.CAKubelet, SignedByOldCA: true,
		}
	}
	if v.VPN != nil {
		configs[folderVPNClient] = secrets.CertificateConfig{
			Name: "kube-apiserver-http-proxy-client", CommonName: Name, CertType: secrets.ClientCert,
			SigningCA: component.CAVPN,
		}
	}
	if v.EgressHost != "" {
		configs[folderEgressClient] = secrets.CertificateConfig{
			Name: "kube-apiserver-egress-client", CommonName: namespace, CertType: secrets.ClientCert,
			SigningCA: component.CAEgress,
		}
	}
	return configs, nil
}

func serverCertificate(namespace string, v Values) (secrets.CertificateConfig, error) {
	config := secrets.CertificateConfig{
		Name: Name, CommonName: Name, CertType: secrets.ServerCert, SigningCA: component.CACluster,
		DNSNames: append([]string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
			Name, Name + "." + namespace, InternalHost(namespace), InternalHost(namespace) + ".cluster.local",
		}, v.ExternalHostnames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, network := range v.ServiceNetworks {
		first, err := FirstServiceIP(network)
		if err != nil {
			return config, err
		}
		config.IPAddresses = append(config.IPAddresses, net.ParseIP(first))
	}
	if v.AdvertiseAddress != "" {
		config.IPAddresses = append(config.IPAddresses, net.ParseIP(v.AdvertiseAddress))
	}
	return config, nil
}

// FirstServiceIP returns the address of the Service "kubernetes": the first one of the services' network.
func FirstServiceIP(network string) (string, error) { return ServiceIP(network, 1) }

// ServiceIP returns the address at an offset in a network; clusters use 10 for their DNS.
func ServiceIP(network string, offset int) (string, error) {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return "", fmt.Errorf("service network: %w", err)
	}
	address := prefix.Masked().Addr()
	for range offset {
		address = address.Next()
	}
	if !prefix.Contains(address) {
		return "", fmt.Errorf("service network %s has no address number %d", network, offset)
	}
	return address.String(), nil
}

func generateServiceAccountKey(ctx context.Context, manager secrets.Manager, v Values, mounted mountedSecrets) error {
	var options []secrets.Option
	if v.KeepOldServiceAccountKey {
		options = append(options, secrets.KeepOld())
	}
	key, err := manager.Generate(ctx, secrets.KeyConfig{Name: ServiceAccountKeyName}, options...)
	if err != nil {
		return err
	}
	bundle, found := manager.Get(ServiceAccountKeyName, secrets.Bundle)
	if !found {
		return fmt.Errorf("secret %q has no bundle", ServiceAccountKeyName)
	}
	mounted.pki["service-account"] = files(key, secrets.DataKeyRSAPrivateKey)
	mounted.pki["service-account-bundle"] = files(bundle, secrets.DataKeyPublicKeyBundle)
	return nil
}

func generateConfiguration(ctx context.Context, manager secrets.Manager, v Values, mounted mountedSecrets) error {
	keys, err := encryption.GenerateKeys(ctx, manager, EncryptionKeyName, v.Encryption.Stage)
	if err != nil {
		return err
	}
	from, to := v.Encryption.schemes()
	encoded, err := yaml.Marshal(encryption.Configuration(from, to, v.Encryption.Stage, keys))
	if err != nil {
		return err
	}
	plain, err := configurationFiles(v)
	if err != nil {
		return err
	}
	if v.EgressHost != "" {
		authority, found := manager.Get(component.CAEgress)
		if !found {
			return fmt.Errorf("the certificate authority %q of the seed is not known to the manager of the secrets",
				component.CAEgress)
		}
		plain[fileEgressCA] = authority.Data[secrets.DataKeyCertificateCA]
	}
	kubeconfigs, err := admissionKubeconfigs(v)
	if err != nil {
		return err
	}
	configs := map[string]secrets.DataConfig{
		"encryption": {
			Name: "kube-apiserver-etcd-encryption-configuration", Data: map[string][]byte{fileEncryption: encoded},
		},
		"files":           {Name: "kube-apiserver-config", Data: plain},
		authorizersFolder: {Name: "kube-apiserver-authorizer-kubeconfigs", Data: v.AuthorizerKubeconfigs},
		admissionFolder:   {Name: "kube-apiserver-admission-kubeconfigs", Data: kubeconfigs},
	}
	for folder, config := range configs {
		if len(config.Data) == 0 {
			continue
		}
		secret, err := manager.Generate(ctx, config)
		if err != nil {
			return err
		}
		mounted.config[folder] = files(secret, slices.Collect(maps.Keys(config.Data))...)
	}
	if v.AuthorizationWebhook == nil {
		return nil
	}
	kubeconfig, err := manager.Generate(ctx, secrets.KubeconfigConfig{
		Name: "kube-apiserver-authorization-webhook", Server: v.AuthorizationWebhook.Server,
		User: v.AuthorizationWebhook.User,
	})
	if err != nil {
		return err
	}
	mounted.config[authorizationWebhookFolder] = files(kubeconfig, secrets.DataKeyKubeconfig)
	return nil
}
