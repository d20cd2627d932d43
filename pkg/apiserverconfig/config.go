package apiserverconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Config is what the files say, in the form in which kube-apiserver takes it.
type Config struct {
	// AuditPolicy in YAML or JSON; empty for the default one.
	AuditPolicy []byte
	// Authentication is nil if the user has none.
	Authentication *apiserverv1.AuthenticationConfiguration
	// Authorizers are webhooks, without the place of their kubeconfigs.
	Authorizers []apiserverv1.AuthorizerConfiguration
	// AuthorizerKubeconfigs by the name of the authorizer, PluginKubeconfigs by that of the admission plugin.
	AuthorizerKubeconfigs, PluginKubeconfigs map[string][]byte
	// Digest identifies the contents of the files; empty if there are none.
	Digest string
}

// Rules are what files are held to beyond their form.
type Rules struct {
	// Issuers are those of the cluster's own tokens, which nobody else may issue.
	Issuers []string
	// InsecureKubeconfigs lets kubeconfigs of webhooks turn off the verification of certificates and name a proxy, but
	// not that of ImagePolicyWebhook.
	InsecureKubeconfigs bool
	// KubernetesVersion of the cluster. kube-apiserver asks issuers for their keys through the seed's egress proxy from
	// 1.34 on; before that it would ask them from the seed's own network, so such a cluster has none.
	KubernetesVersion string
}

// allowIssuers tells whether a cluster may have issuers of users' tokens.
func (r Rules) allowIssuers() error {
	if parsed, err := version.ParseGeneric(r.KubernetesVersion); err != nil ||
		parsed.LessThan(leastWithEgressOfIssuers) {
		return fmt.Errorf("jwt: issuers need Kubernetes %d.%d or newer, and this cluster has %q: update it first; "+
			"an older "+
			"kube-apiserver would ask them from the seed's own network",
			leastWithEgressOfIssuers.Major(), leastWithEgressOfIssuers.Minor(), r.KubernetesVersion)
	}
	return nil
}

// leastWithEgressOfIssuers is the first version of Kubernetes whose AuthenticationConfiguration has egressSelectorType.
var leastWithEgressOfIssuers = version.MustParseGeneric("1.34")

// Load reads and checks the files of a configuration. What is wrong with the files is told by field; the error is one
// of the source.
func Load(ctx context.Context, source Source, config *gardencorev1beta1.KubeAPIServerConfig, rules Rules,
	path *field.Path) (*Config, field.ErrorList, error) {
	files, errs, err := Read(ctx, source, config, path)
	if err != nil || len(errs) > 0 {
		return nil, errs, err
	}
	return Parse(files, config, rules, path)
}

// Parse checks files that have been read.
func Parse(files *Files, config *gardencorev1beta1.KubeAPIServerConfig, rules Rules,
	path *field.Path) (*Config, field.ErrorList, error) {
	digest, err := files.Digest()
	if err != nil {
		return nil, nil, err
	}
	result := &Config{
		AuditPolicy: files.AuditPolicy, AuthorizerKubeconfigs: files.AuthorizerKubeconfigs,
		PluginKubeconfigs: files.PluginKubeconfigs, Digest: digest,
	}
	var errs field.ErrorList
	report := func(at *field.Path, name string, err error) {
		if err != nil {
			errs = append(errs, field.Invalid(at, name, err.Error()))
		}
	}
	if name := auditConfigMap(orEmpty(config)); name != "" {
		report(auditPath(path), name, validateAuditPolicy(files.AuditPolicy))
	}
	if authentication := orEmpty(config).StructuredAuthentication; authentication != nil {
		var err error
		result.Authentication, err = parseAuthentication(files.Authentication, rules,
			config.EnableAnonymousAuthentication != nil)
		report(authenticationPath(path), authentication.ConfigMapName, err)
	}
	if authorization := orEmpty(config).StructuredAuthorization; authorization != nil {
		var err error
		result.Authorizers, err = parseAuthorization(files.Authorization,
			slices.Sorted(maps.Keys(files.AuthorizerKubeconfigs)))
		report(authorizationPath(path), authorization.ConfigMapName, err)
		for i, kubeconfig := range authorization.Kubeconfigs {
			report(authorizerPath(path, i), kubeconfig.SecretName,
				validateKubeconfig(files.AuthorizerKubeconfigs[kubeconfig.AuthorizerName], rules.permissions()))
		}
	}
	for i, plugin := range orEmpty(config).AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			report(pluginPath(path, i), *plugin.KubeconfigSecretName,
				validateKubeconfig(files.PluginKubeconfigs[plugin.Name], rules.permissionsOfPlugin(plugin.Name)))
		}
	}
	return result, errs, nil
}

func orEmpty(config *gardencorev1beta1.KubeAPIServerConfig) *gardencorev1beta1.KubeAPIServerConfig {
	if config == nil {
		return &gardencorev1beta1.KubeAPIServerConfig{}
	}
	return config
}

// inKey says which key of an object is wrong.
func inKey(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("key %q: %w", key, err)
}
