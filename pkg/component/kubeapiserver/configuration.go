package kubeapiserver

import (
	"fmt"
	"path"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/egress"
)

// configurationFiles renders the files that are not secret.
func configurationFiles(v Values) (map[string][]byte, error) {
	files := map[string]any{fileAuthentication: authentication(v)}
	if hasEgressSelector(v) {
		files[fileEgressSelector] = egressSelector(v)
	}
	if hasAuthorizationFile(v) {
		files[fileAuthorization] = authorization(v)
	}
	if len(v.AdmissionConfigs) > 0 {
		config, err := admission(v.AdmissionConfigs)
		if err != nil {
			return nil, err
		}
		files[fileAdmission] = config
	}
	data := map[string][]byte{fileAuditPolicy: v.AuditPolicy}
	if len(v.AuditPolicy) == 0 {
		files[fileAuditPolicy] = DefaultAuditPolicy()
	}
	for name, content := range files {
		encoded, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		data[name] = encoded
	}
	return data, nil
}

// healthChecks are the paths that kubelet asks without credentials.
var healthChecks = []string{"/livez", "/readyz", "/healthz"}

// authentication is the user's, if there is one. Anonymous requests reach the health checks, whatever the user says,
// and what the user lets them reach.
func authentication(v Values) *apiserverv1.AuthenticationConfiguration {
	config := &apiserverv1.AuthenticationConfiguration{TypeMeta: typeMeta("AuthenticationConfiguration")}
	if v.Authentication != nil {
		config = v.Authentication.DeepCopy()
	}
	if v.EgressHost != "" {
		leaveThroughEgress(config.JWT)
	}
	wanted := config.Anonymous
	config.Anonymous = &apiserverv1.AnonymousAuthConfig{Enabled: true}
	if v.AllowAnonymous || wanted != nil && wanted.Enabled && len(wanted.Conditions) == 0 {
		return config
	}
	for _, path := range healthChecks {
		config.Anonymous.Conditions = append(config.Anonymous.Conditions,
			apiserverv1.AnonymousAuthCondition{Path: path})
	}
	if wanted == nil {
		return config
	}
	for _, condition := range wanted.Conditions {
		if !slices.Contains(config.Anonymous.Conditions, condition) {
			config.Anonymous.Conditions = append(config.Anonymous.Conditions, condition)
		}
	}
	return config
}

// leaveThroughEgress has the keys of issuers asked for through the proxy. Versions of Kubernetes that cannot have no
// issuers (apiserverconfig.Rules).
func leaveThroughEgress(authenticators []apiserverv1.JWTAuthenticator) {
	for i := range authenticators {
		if issuer := &authenticators[i].Issuer; issuer.EgressSelectorType == "" {
			issuer.EgressSelectorType = apiserverv1.EgressSelectorControlPlane
		}
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: kind}
}

// Webhook decisions are remembered for as long as it may take to notice a change. Refusals are not: what a client is
// refused now may be its own in a moment.
const (
	authorizedTTL        = 5 * time.Second
	authorizationTimeout = 3 * time.Second
)

// Authorization lets RBAC decide, where there are nodes the Node authorizer before it, and asks a webhook about what
// they do not allow.
func Authorization(webhook AuthorizationWebhook, kubeconfigFile string,
	node bool) *apiserverv1.AuthorizationConfiguration {
	config := baseAuthorization(node)
	asked := &apiserverv1.WebhookConfiguration{
		AuthorizedTTL: metav1.Duration{Duration: authorizedTTL}, CacheUnauthorizedRequests: new(false),
		Timeout:                    metav1.Duration{Duration: authorizationTimeout},
		SubjectAccessReviewVersion: "v1", MatchConditionSubjectAccessReviewVersion: "v1",
		FailurePolicy:  apiserverv1.FailurePolicyNoOpinion,
		ConnectionInfo: connection(kubeconfigFile),
	}
	for _, expression := range webhook.MatchConditions {
		asked.MatchConditions = append(asked.MatchConditions, apiserverv1.WebhookMatchCondition{Expression: expression})
	}
	config.Authorizers = append(config.Authorizers,
		apiserverv1.AuthorizerConfiguration{Type: string(apiserverv1.TypeWebhook), Name: webhook.Name, Webhook: asked})
	return config
}

// authorization are the authorizers of every cluster, then our webhook, then those of the user.
func authorization(v Values) *apiserverv1.AuthorizationConfiguration {
	config := baseAuthorization(!v.IsWorkerless)
	if v.AuthorizationWebhook != nil {
		config = Authorization(*v.AuthorizationWebhook, authorizationKubeconfig, !v.IsWorkerless)
	}
	for _, authorizer := range v.Authorizers {
		authorizer := authorizer.DeepCopy()
		authorizer.Webhook.ConnectionInfo = connection(path.Join(configMount, authorizersFolder, authorizer.Name))
		config.Authorizers = append(config.Authorizers, *authorizer)
	}
	return config
}

func baseAuthorization(node bool) *apiserverv1.AuthorizationConfiguration {
	config := &apiserverv1.AuthorizationConfiguration{TypeMeta: typeMeta("AuthorizationConfiguration")}
	if node {
		config.Authorizers = append(config.Authorizers, apiserverv1.AuthorizerConfiguration{Type: "Node", Name: "node"})
	}
	config.Authorizers = append(config.Authorizers, apiserverv1.AuthorizerConfiguration{Type: "RBAC", Name: "rbac"})
	return config
}

func connection(kubeconfigFile string) apiserverv1.WebhookConnectionInfo {
	return apiserverv1.WebhookConnectionInfo{
		Type: apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &kubeconfigFile,
	}
}

func hasEgressSelector(v Values) bool { return v.VPN != nil || v.EgressHost != "" }

// egressSelector sends what goes to the cluster's networks through the VPN. A cluster without workers has no such
// networks: its requests go to the seed's proxy, which knows what little there may be instead. What users name by URL
// goes through that proxy as well.
func egressSelector(v Values) *apiserverv1beta1.EgressSelectorConfiguration {
	direct := apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}
	cluster, controlPlane := direct, direct
	if v.EgressHost != "" {
		controlPlane = throughEgress(v, egress.OutsidePort)
	}
	switch {
	case hasPaths(v):
		cluster = throughPaths()
	case v.VPN != nil:
		cluster = httpConnect(v.VPN.ProxyHost, v.VPN.ProxyPort, pkiMount+"/ca-vpn/bundle.crt", folderVPNClient)
	case v.EgressHost != "":
		cluster = throughEgress(v, egress.ClusterPort)
	}
	return &apiserverv1beta1.EgressSelectorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.k8s.io/v1beta1", Kind: "EgressSelectorConfiguration"},
		EgressSelections: []apiserverv1beta1.EgressSelection{
			{Name: "cluster", Connection: cluster},
			{Name: "controlplane", Connection: controlPlane},
			{Name: "etcd", Connection: direct},
		},
	}
}

// throughEgress is a connection through a port of the seed's proxy.
func throughEgress(v Values, port int32) apiserverv1beta1.Connection {
	return httpConnect(v.EgressHost, port, configMount+"/files/"+fileEgressCA, folderEgressClient)
}

// httpConnect is a connection through a proxy that wants the certificate in a folder.
func httpConnect(host string, port int32, authority, folder string) apiserverv1beta1.Connection {
	return apiserverv1beta1.Connection{
		ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
		Transport: &apiserverv1beta1.Transport{TCP: &apiserverv1beta1.TCPTransport{
			URL: fmt.Sprintf("https://%s:%d", host, port),
			TLSConfig: &apiserverv1beta1.TLSConfig{
				CABundle:   authority,
				ClientCert: path.Join(pkiMount, folder, "tls.crt"),
				ClientKey:  path.Join(pkiMount, folder, "tls.key"),
			},
		}},
	}
}
