package kubeapiserver

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// configurationFiles renders the files that are not secret.
func configurationFiles(v Values) (map[string][]byte, error) {
	files := map[string]any{fileAuthentication: authentication()}
	if v.VPN != nil {
		files[fileEgressSelector] = egressSelector(*v.VPN)
	}
	if v.AuthorizationWebhook != nil {
		files[fileAuthorization] = Authorization(*v.AuthorizationWebhook, authorizationKubeconfig, !v.IsWorkerless)
	}
	data := make(map[string][]byte, len(files))
	for name, content := range files {
		encoded, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		data[name] = encoded
	}
	return data, nil
}

// authentication lets anonymous requests reach the health checks, which kubelet sends, and nothing else.
func authentication() *apiserverv1.AuthenticationConfiguration {
	config := &apiserverv1.AuthenticationConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthenticationConfiguration"},
		Anonymous: &apiserverv1.AnonymousAuthConfig{Enabled: true},
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		config.Anonymous.Conditions = append(config.Anonymous.Conditions, apiserverv1.AnonymousAuthCondition{Path: path})
	}
	return config
}

// Webhook decisions are remembered for as long as it may take to notice a change. Refusals are not: what a client is refused now
// may be its own in a moment.
const (
	authorizedTTL        = 5 * time.Second
	authorizationTimeout = 3 * time.Second
)

// Authorization lets RBAC decide, where there are nodes the Node authorizer before it, and asks a webhook about what they do not
// allow.
func Authorization(webhook AuthorizationWebhook, kubeconfigFile string, node bool) *apiserverv1.AuthorizationConfiguration {
	config := &apiserverv1.AuthorizationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthorizationConfiguration"},
	}
	if node {
		config.Authorizers = append(config.Authorizers, apiserverv1.AuthorizerConfiguration{Type: "Node", Name: "node"})
	}
	asked := &apiserverv1.WebhookConfiguration{
		AuthorizedTTL: metav1.Duration{Duration: authorizedTTL}, CacheUnauthorizedRequests: ptr.To(false), Timeout: metav1.Duration{Duration: authorizationTimeout},
		SubjectAccessReviewVersion: "v1", MatchConditionSubjectAccessReviewVersion: "v1", FailurePolicy: apiserverv1.FailurePolicyNoOpinion,
		ConnectionInfo: apiserverv1.WebhookConnectionInfo{Type: apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &kubeconfigFile},
	}
	for _, expression := range webhook.MatchConditions {
		asked.MatchConditions = append(asked.MatchConditions, apiserverv1.WebhookMatchCondition{Expression: expression})
	}
	config.Authorizers = append(config.Authorizers,
		apiserverv1.AuthorizerConfiguration{Type: "RBAC", Name: "rbac"},
		apiserverv1.AuthorizerConfiguration{Type: string(apiserverv1.TypeWebhook), Name: webhook.Name, Webhook: asked},
	)
	return config
}

// egressSelector sends what goes to the cluster's networks through the VPN, everything else directly.
func egressSelector(vpn VPNValues) *apiserverv1beta1.EgressSelectorConfiguration {
	direct := apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}
	return &apiserverv1beta1.EgressSelectorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.k8s.io/v1beta1", Kind: "EgressSelectorConfiguration"},
		EgressSelections: []apiserverv1beta1.EgressSelection{
			{Name: "cluster", Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport: &apiserverv1beta1.Transport{TCP: &apiserverv1beta1.TCPTransport{
					URL: fmt.Sprintf("https://%s:%d", vpn.ProxyHost, vpn.ProxyPort),
					TLSConfig: &apiserverv1beta1.TLSConfig{
						CABundle:   pkiMount + "/ca-vpn/bundle.crt",
						ClientCert: pkiMount + "/vpn-client/tls.crt",
						ClientKey:  pkiMount + "/vpn-client/tls.key",
					},
				}},
			}},
			{Name: "controlplane", Connection: direct},
			{Name: "etcd", Connection: direct},
		},
	}
}
