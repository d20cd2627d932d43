package plantest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// Files of a garden's user.
const (
	auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  resources: [{resources: [configmaps]}]
- level: None
`
	authentication = `
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://accounts.example.com", audiences: [kubernetes]}
  claimMappings: {username: {claim: sub, prefix: "oidc:"}}
`
	authorization = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: opa
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    matchConditions: [{expression: "request.user.startsWith('oidc:')"}]
`
	WebhookKubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: webhook, cluster: {server: "https://webhook.example.com"}}]
users: [{name: webhook, user: {token: secret}}]
contexts: [{name: webhook, context: {cluster: webhook, user: webhook}}]
current-context: webhook
`
)

// AllSettings are those of the control plane that a user can make.
func AllSettings(in *plan.Inputs) {
	atLeast := func(memory string) *gardencorev1beta1.ControlPlaneAutoscaling {
		return &gardencorev1beta1.ControlPlaneAutoscaling{
			MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		}
	}
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	kubernetes := &in.Shoot.Spec.Kubernetes
	kubernetes.ETCD = &gardencorev1beta1.ETCD{
		Main:   &gardencorev1beta1.ETCDConfig{Autoscaling: atLeast("400Mi")},
		Events: &gardencorev1beta1.ETCDConfig{Autoscaling: atLeast("100Mi")},
	}
	kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
		KubernetesConfig: gardencorev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"AllAlpha": false}},
		AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{
			{
				Name: "PodNodeSelector", Config: &runtime.RawExtension{
					Raw: []byte(`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"a=b"}}`),
				},
			},
			{Name: "ValidatingAdmissionWebhook", KubeconfigSecretName: new("webhook")},
			{Name: "LimitRanger", Disabled: new(true)},
		},
		APIAudiences: []string{"kubernetes", "vault"},
		AuditConfig: &gardencorev1beta1.AuditConfig{
			AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
		},
		RuntimeConfig: map[string]bool{"api/beta": true},
		ServiceAccountConfig: &gardencorev1beta1.ServiceAccountConfig{
			Issuer: new("https://issuer.example.com"), AcceptedIssuers: []string{"https://old.example.com"},
			ExtendTokenExpiration: new(true), MaxTokenExpiration: hours(720),
		},
		WatchCacheSizes: &gardencorev1beta1.WatchCacheSizes{Default: new(int32(100)),
			Resources: []gardencorev1beta1.ResourceWatchCacheSize{
				{Resource: "secrets", CacheSize: 0}, {APIGroup: new("apps"), Resource: "deployments", CacheSize: 50},
			}},
		Requests: &gardencorev1beta1.APIServerRequests{
			MaxNonMutatingInflight: new(int32(40)), MaxMutatingInflight: new(int32(20)),
		},
		EnableAnonymousAuthentication: new(true),
		EventTTL:                      hours(2),
		Logging: &gardencorev1beta1.APIServerLogging{
			Verbosity: new(int32(4)), HTTPAccessVerbosity: new(int32(3)),
		},
		DefaultNotReadyTolerationSeconds:    new(int64(60)),
		DefaultUnreachableTolerationSeconds: new(int64(90)),
		EncryptionConfig: &gardencorev1beta1.EncryptionConfig{
			Resources: []string{"configmaps"},
			Provider:  gardencorev1beta1.EncryptionProvider{Type: new(gardencorev1beta1.EncryptionProviderTypeAESGCM)},
		},
		StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
		StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
			ConfigMapName: "authorization",
			Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
				{AuthorizerName: "opa", SecretName: "opa"},
			},
		},
		Autoscaling:   atLeast("1Gi"),
		TLSMinVersion: new("VersionTLS13"),
	}
	in.Files = apiserverconfig.Files{
		AuditPolicy: []byte(auditPolicy), Authentication: []byte(authentication), Authorization: []byte(authorization),
		AuthorizerKubeconfigs: map[string][]byte{"opa": []byte(WebhookKubeconfig)},
		PluginKubeconfigs:     map[string][]byte{"ValidatingAdmissionWebhook": []byte(WebhookKubeconfig)},
	}
}
