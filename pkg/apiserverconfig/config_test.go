package apiserverconfig

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	auditPolicy    = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	authentication = `
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://accounts.example.com", audiences: [a]}
  claimMappings: {username: {claim: sub, prefix: ""}}
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
`
	kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://webhook.example.com"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
)

// garden is a source with one object per reference.
type garden map[string]string

func (g garden) source() Source {
	missing := func(resource, name string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
	}
	return Source{
		ConfigMap: func(_ context.Context, name string) (*corev1.ConfigMap, error) {
			content, found := g[name]
			if !found {
				return nil, missing("configmaps", name)
			}
			return &corev1.ConfigMap{Data: map[string]string{KeyPolicy: content, KeyConfig: content}}, nil
		},
		Secret: func(_ context.Context, name string) (*corev1.Secret, error) {
			content, found := g[name]
			if !found {
				return nil, missing("secrets", name)
			}
			return &corev1.Secret{Data: map[string][]byte{KeyKubeconfig: []byte(content)}}, nil
		},
	}
}

func everything() (garden, *gardencorev1beta1.KubeAPIServerConfig) {
	return garden{
			"audit": auditPolicy, "authentication": authentication, "authorization": authorization, "opa": kubeconfig,
			"images": kubeconfig,
		},
		&gardencorev1beta1.KubeAPIServerConfig{
			AuditConfig: &gardencorev1beta1.AuditConfig{
				AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
			},
			StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
			StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
				ConfigMapName: "authorization",
				Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
					{AuthorizerName: "opa", SecretName: "opa"},
				},
			},
			AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{
				{Name: "PodSecurity"}, {Name: "ImagePolicyWebhook", KubeconfigSecretName: new("images")},
			},
		}
}

func TestLoad(t *testing.T) {
	type settings = gardencorev1beta1.KubeAPIServerConfig
	replace := func(name, old, new string) func(garden, *settings) {
		return func(g garden, _ *settings) { g[name] = strings.Replace(g[name], old, new, 1) }
	}
	for _, test := range []struct {
		name        string
		change      func(garden, *settings)
		field, want string
	}{
		{"everything", func(garden, *settings) {}, "", ""},
		{
			"no ConfigMap", func(g garden, _ *settings) { delete(g, "audit") },
			"auditConfig.auditPolicy.configMapRef.name", "Not found",
		},
		{
			"no Secret", func(g garden, _ *settings) { delete(g, "images") },
			"admissionPlugins[1].kubeconfigSecretName", "Not found",
		},
		{
			"nothing in the ConfigMap", func(g garden, _ *settings) { g["authorization"] = "" },
			"structuredAuthorization.configMapName", `no key "config.yaml"`,
		},

		{
			"policy without rules", replace("audit", "rules: [{level: Metadata}]", "rules: []"),
			"auditConfig.auditPolicy.configMapRef.name", "0 rules",
		},
		{
			"policy with a slip", replace("audit", "level: Metadata", "level: Metadata, verb: [get]"),
			"auditConfig.auditPolicy.configMapRef.name", "verb",
		},
		{
			"policy of no level", replace("audit", "Metadata", "Everything"),
			"auditConfig.auditPolicy.configMapRef.name", "Everything",
		},
		{
			"no policy", replace("audit", "kind: Policy", "kind: Event"), "auditConfig.auditPolicy.configMapRef.name",
			"Policy",
		},
		{
			"no YAML", func(g garden, _ *settings) { g["audit"] = "a: [" }, "auditConfig.auditPolicy.configMapRef.name",
			"audit.k8s.io/v1",
		},

		{
			"issuer without TLS", replace("authentication", "https:", "http:"),
			"structuredAuthentication.configMapName", "https",
		},
		{
			"issuer of the cluster", replace("authentication", "accounts.example.com", "own.example.com"),
			"structuredAuthentication.configMapName", "must not overlap",
		},
		{
			"expression that does not compile",
			replace("authentication", `claim: sub, prefix: ""`, "expression: claims."),
			"structuredAuthentication.configMapName", "Syntax error",
		},
		{
			"another kind of configuration", func(g garden, _ *settings) { g["authentication"] = authorization },
			"structuredAuthentication.configMapName", "must be an AuthenticationConfiguration",
		},
		{"anonymous twice", func(g garden, c *settings) {
			g["authentication"] += "anonymous: {enabled: true}\n"
			c.EnableAnonymousAuthentication = new(true)
		}, "structuredAuthentication.configMapName", "use one of them"},

		{
			"authorizer that every cluster has", replace("authorization", "type: Webhook", "type: RBAC"),
			"structuredAuthorization.configMapName", `"Webhook"`,
		},
		{"name that is taken", func(g garden, c *settings) {
			g["authorization"] = strings.Replace(authorization, "opa", "rbac", 1)
			c.StructuredAuthorization.Kubeconfigs[0].AuthorizerName = "rbac"
		}, "structuredAuthorization.configMapName", "every cluster has"},
		{
			"authorizer without kubeconfig", replace("authorization", "opa", "other"),
			"structuredAuthorization.configMapName", `add a kubeconfig for authorizer "other"`,
		},
		{
			"file of a kubeconfig", replace("authorization", "timeout: 3s",
				"timeout: 3s\n    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/passwd}"),
			"structuredAuthorization.configMapName", "leave it out",
		},
		{
			"authorizer in the cluster", replace("authorization", "timeout: 3s",
				"timeout: 3s\n    connectionInfo: {type: InClusterConfig}"), "structuredAuthorization.configMapName",
			"InClusterConfig",
		},
		{
			"authorizer without time-out", replace("authorization", "timeout: 3s", "timeout: 300s"),
			"structuredAuthorization.configMapName", "timeout",
		},

		{
			"program", replace("opa", "token: t",
				"exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"),
			"structuredAuthorization.kubeconfigs[0].secretName", "would run a program",
		},
		{
			"file of a token", replace("opa", "token: t", "tokenFile: /t"),
			"structuredAuthorization.kubeconfigs[0].secretName", "tokenFile",
		},
		{
			"file of a certificate", replace("images", "token: t", "client-certificate: /c, client-key-data: eA=="),
			"admissionPlugins[1].kubeconfigSecretName", "client-certificate",
		},
		{
			"file of an authority", replace("images", "webhook.example.com\"",
				"webhook.example.com\", certificate-authority: /c"), "admissionPlugins[1].kubeconfigSecretName",
			"certificate-authority",
		},
		{
			"webhook without TLS", replace("images", "https:", "http:"), "admissionPlugins[1].kubeconfigSecretName",
			"https URL",
		},
		{
			"no context", replace("images", "current-context: x", ""), "admissionPlugins[1].kubeconfigSecretName",
			"context",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, config := everything()
			test.change(g, config)
			_, errs, err := Load(t.Context(), g.source(), config,
				Rules{Issuers: []string{"https://own.example.com"}, KubernetesVersion: "1.34.0"},
				field.NewPath("kubeAPIServer"))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" && len(errs) == 0 {
				return
			}
			if len(errs) == 0 || errs[0].Field != "kubeAPIServer."+test.field ||
				!strings.Contains(errs.ToAggregate().Error(), test.want) {
				t.Errorf("errors = %v, want %q at %s", errs, test.want, test.field)
			}
		})
	}
}

func TestLoadedConfiguration(t *testing.T) {
	g, config := everything()
	loaded, errs, err := Load(t.Context(), g.source(), config, Rules{KubernetesVersion: "1.36.3"},
		field.NewPath("kubeAPIServer"))
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	if loaded.Authentication.APIVersion != "apiserver.config.k8s.io/v1" ||
		loaded.Authentication.JWT[0].Issuer.URL != "https://accounts.example.com" {
		t.Errorf("authentication = %+v", loaded.Authentication)
	}
	if len(loaded.Authorizers) != 1 || loaded.Authorizers[0].Webhook.AuthorizedTTL.Duration == 0 {
		t.Errorf("authorizers = %+v, want one with the defaults of Kubernetes", loaded.Authorizers)
	}
	if string(loaded.PluginKubeconfigs["ImagePolicyWebhook"]) != kubeconfig ||
		string(loaded.AuthorizerKubeconfigs["opa"]) != kubeconfig {
		t.Error("a kubeconfig is missing")
	}
}

func TestDigestFollowsTheContents(t *testing.T) {
	digest := func(change func(garden, *gardencorev1beta1.KubeAPIServerConfig)) string {
		g, config := everything()
		change(g, config)
		files, missing, err := Read(t.Context(), g.source(), config, nil)
		if err != nil || len(missing) > 0 {
			t.Fatal(err, missing)
		}
		digest, err := files.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first := digest(func(garden, *gardencorev1beta1.KubeAPIServerConfig) {})
	if first != digest(func(garden, *gardencorev1beta1.KubeAPIServerConfig) {}) {
		t.Error("the digest of the same contents differs")
	}
	if first == digest(func(g garden, _ *gardencorev1beta1.KubeAPIServerConfig) { g["audit"] += "# changed" }) {
		t.Error("the digest does not tell another policy")
	}
	if none := digest(func(_ garden, config *gardencorev1beta1.KubeAPIServerConfig) {
		*config = gardencorev1beta1.KubeAPIServerConfig{}
	}); none != "" {
		t.Errorf("the digest of nothing is %q", none)
	}
}

func TestReferred(t *testing.T) {
	_, all := everything()
	for name, test := range map[string]struct {
		config *gardencorev1beta1.KubeAPIServerConfig
		want   bool
	}{
		"nothing":    {nil, false},
		"plugins":    {&gardencorev1beta1.KubeAPIServerConfig{AdmissionPlugins: all.AdmissionPlugins[:1]}, false},
		"kubeconfig": {&gardencorev1beta1.KubeAPIServerConfig{AdmissionPlugins: all.AdmissionPlugins}, true},
		"audit":      {&gardencorev1beta1.KubeAPIServerConfig{AuditConfig: all.AuditConfig}, true},
		"identities": {
			&gardencorev1beta1.KubeAPIServerConfig{StructuredAuthentication: all.StructuredAuthentication}, true,
		},
		"authorizer": {
			&gardencorev1beta1.KubeAPIServerConfig{StructuredAuthorization: all.StructuredAuthorization}, true,
		},
	} {
		if got := Referred(test.config); got != test.want {
			t.Errorf("%s: refers %t, want %t", name, got, test.want)
		}
	}
}

func TestErrorsOfTheGardenAreNotTheUsers(t *testing.T) {
	_, config := everything()
	broken := errors.New("connection refused")
	source := Source{
		ConfigMap: func(context.Context, string) (*corev1.ConfigMap, error) { return nil, broken },
		Secret:    func(context.Context, string) (*corev1.Secret, error) { return nil, broken },
	}
	if _, errs, err := Load(t.Context(), source, config, Rules{}, nil); !errors.Is(err, broken) || len(errs) > 0 {
		t.Errorf("error %v, errors %v", err, errs)
	}
}
