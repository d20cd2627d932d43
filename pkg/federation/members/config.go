package members

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// RESTConfig reads how a member is reached: its endpoint from the Cluster, its credentials from the Secret that
// spec.secretRef names. A kubeconfig in the Secret gives both; an endpoint in the Cluster overrides it.
func RESTConfig(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*rest.Config, error) {
	config, err := credentials(secret)
	if err != nil {
		return nil, fmt.Errorf("credentials of member %s: %w", cluster.Name, err)
	}
	if cluster.Spec.APIEndpoint != "" {
		config.Host = cluster.Spec.APIEndpoint
	}
	if config.Host == "" {
		return nil, fmt.Errorf("member %s: spec.apiEndpoint is empty; set it to the URL of the cluster's API",
			cluster.Name)
	}
	if u, err := url.Parse(config.Host); err == nil && u.Scheme != "https" && strings.Contains(config.Host, "://") {
		return nil, fmt.Errorf("member %s: the address of its API is %q; it must begin with https://", cluster.Name,
			config.Host)
	}
	if cluster.Spec.InsecureSkipTLSVerification {
		config.Insecure, config.CAData = true, nil
	}
	if cluster.Spec.ProxyURL != "" {
		proxy, err := url.Parse(cluster.Spec.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("member %s: spec.proxyURL: %w", cluster.Name, err)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	config.UserAgent = "trellis-federation"
	return withLimits(config), nil
}

// ProxyHeader is sent to the proxy on the way to a member when it is asked to connect.
func ProxyHeader(cluster *clusterv1alpha1.Cluster) http.Header {
	header := http.Header{}
	for name, value := range cluster.Spec.ProxyHeader {
		for _, one := range strings.Split(value, ",") {
			header.Add(name, strings.TrimSpace(one))
		}
	}
	return header
}

func credentials(secret *corev1.Secret) (*rest.Config, error) {
	if data := secret.Data[clusterv1alpha1.SecretKubeconfig]; len(data) > 0 {
		config, err := kubeconfig.Contained(data)
		if err != nil {
			return nil, fmt.Errorf("secret %s/%s, key kubeconfig: %w", secret.Namespace, secret.Name, err)
		}
		return config, nil
	}
	config := &rest.Config{
		BearerToken: string(secret.Data[clusterv1alpha1.SecretToken]),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   secret.Data[clusterv1alpha1.SecretCABundle],
			CertData: secret.Data[clusterv1alpha1.SecretClientCert],
			KeyData:  secret.Data[clusterv1alpha1.SecretClientKey],
		},
	}
	if config.BearerToken == "" && len(config.CertData) == 0 {
		return nil, fmt.Errorf("secret %s/%s has neither a kubeconfig nor a token nor a client certificate "+
			"(tls.crt, tls.key)", secret.Namespace, secret.Name)
	}
	return config, nil
}

// fingerprintOf tells connections apart that differ in where they lead or who they are for.
func fingerprintOf(config *rest.Config, proxyURL string, proxyHeader http.Header) string {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(config.Host), []byte(config.BearerToken), []byte(config.Username), []byte(config.Password),
		config.CAData, config.CertData, config.KeyData,
		[]byte(fmt.Sprint(config.Insecure, config.ServerName, proxyURL, proxyHeader)),
	} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
