package v1beta1

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxNonMutatingInflight = 5000
	maxMutatingInflight    = 2500
	maxEventTTL            = 24 * time.Hour
	minTokenExpiration     = 720 * time.Hour
	maxTokenExpiration     = 2160 * time.Hour
)

var (
	encryptionTypes = []EncryptionProviderType{
		EncryptionProviderTypeAESCBC, EncryptionProviderTypeAESGCM, EncryptionProviderTypeSecretbox,
	}
	tlsVersions = []string{"VersionTLS12", "VersionTLS13"}
)

// requiredAPIs are API versions without which no cluster works.
var requiredAPIs = sets.New(
	"api/all", "api/ga", "v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1",
	"apiregistration.k8s.io/v1", "apps/v1",
	"authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1", "coordination.k8s.io/v1",
	"discovery.k8s.io/v1",
	"networking.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1",
)

func validateKubeAPIServer(config *KubeAPIServerConfig, version string, path *field.Path) field.ErrorList {
	errs := validateFeatureGates(config.FeatureGates, version, path.Child("featureGates"))
	if requests := config.Requests; requests != nil {
		at := path.Child("requests")
		errs = append(errs, validateOptionalBetween(requests.MaxNonMutatingInflight, 0, maxNonMutatingInflight,
			at.Child("maxNonMutatingInflight"))...)
		errs = append(errs, validateOptionalBetween(requests.MaxMutatingInflight, 0, maxMutatingInflight,
			at.Child("maxMutatingInflight"))...)
	}
	errs = append(errs, validateDuration(config.EventTTL, 0, maxEventTTL, path.Child("eventTTL"))...)
	if logging := config.Logging; logging != nil {
		errs = append(errs, validateOptionalAtLeast(logging.Verbosity, 0, path.Child("logging", "verbosity"))...)
		errs = append(errs, validateOptionalAtLeast(logging.HTTPAccessVerbosity, 0,
			path.Child("logging", "httpAccessVerbosity"))...)
	}
	errs = append(errs, validateOptionalAtLeast(config.DefaultNotReadyTolerationSeconds, 0,
		path.Child("defaultNotReadyTolerationSeconds"))...)
	errs = append(errs, validateOptionalAtLeast(config.DefaultUnreachableTolerationSeconds, 0,
		path.Child("defaultUnreachableTolerationSeconds"))...)
	errs = append(errs, validateOptionalSupported(config.TLSMinVersion, tlsVersions, path.Child("tlsMinVersion"))...)
	errs = append(errs, validateNames(config.APIAudiences, path.Child("apiAudiences"),
		"name an audience of tokens, such as kubernetes")...)
	errs = append(errs, validateAdmissionPlugins(config.AdmissionPlugins, version, path.Child("admissionPlugins"))...)
	errs = append(errs, validateRuntimeConfig(config.RuntimeConfig, path.Child("runtimeConfig"))...)
	errs = append(errs, validateControlPlaneAutoscaling(config.Autoscaling, path.Child("autoscaling"))...)
	errs = append(errs, validateServiceAccountConfig(config.ServiceAccountConfig,
		path.Child("serviceAccountConfig"))...)
	errs = append(errs, validateEncryption(config.EncryptionConfig, path.Child("encryptionConfig"))...)
	errs = append(errs, validateWatchCacheSizes(config.WatchCacheSizes, path.Child("watchCacheSizes"))...)
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		errs = append(errs, validateRequired(audit.AuditPolicy.ConfigMapRef.Name,
			path.Child("auditConfig", "auditPolicy", "configMapRef", "name"),
			"name the ConfigMap with the audit policy")...)
	}
	return append(errs, validateStructured(config, path)...)
}

func validateStructured(config *KubeAPIServerConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if authentication := config.StructuredAuthentication; authentication != nil {
		errs = append(errs, validateRequired(authentication.ConfigMapName,
			path.Child("structuredAuthentication", "configMapName"),
			"name the ConfigMap with the AuthenticationConfiguration")...)
	}
	authorization := config.StructuredAuthorization
	if authorization == nil {
		return errs
	}
	at := path.Child("structuredAuthorization")
	errs = append(errs, validateUnique(authorization.Kubeconfigs,
		func(k AuthorizerKubeconfigReference) string { return k.AuthorizerName },
		func(i int) *field.Path { return at.Child("kubeconfigs").Index(i).Child("authorizerName") })...)
	errs = append(errs, validateRequired(authorization.ConfigMapName, at.Child("configMapName"),
		"name the ConfigMap with the AuthorizationConfiguration")...)
	for i, kubeconfig := range authorization.Kubeconfigs {
		one := at.Child("kubeconfigs").Index(i)
		errs = append(errs, validateRequired(kubeconfig.AuthorizerName, one.Child("authorizerName"),
			"name the authorizer in the configuration")...)
		errs = append(errs, validateRequired(kubeconfig.SecretName, one.Child("secretName"),
			"name the Secret with the kubeconfig")...)
	}
	return errs
}

// validateRuntimeConfig accepts what kube-apiserver's --runtime-config takes, as long as the cluster keeps what it
// needs.
func validateRuntimeConfig(config map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(config) {
		switch parts := strings.SplitN(key, "/", 4); {
		case !config[key] && requiredAPIs.Has(key):
			errs = append(errs, field.Forbidden(path.Key(key), "cannot be turned off: clusters rely on it"))
		case key == "v1" || len(parts) == 2 && parts[0] != "" && parts[1] != "" ||
			len(parts) == 3 && parts[1] != "" && parts[2] != "":
		default:
			errs = append(errs, field.Invalid(path.Key(key), config[key],
				"must be named as a group and version, such as batch/v1, or api/beta"))
		}
	}
	return errs
}

func validateServiceAccountConfig(config *ServiceAccountConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if config.Issuer != nil {
		errs = append(errs, validateIssuer(*config.Issuer, path.Child("issuer"))...)
	}
	for i, issuer := range config.AcceptedIssuers {
		errs = append(errs, validateIssuer(issuer, path.Child("acceptedIssuers").Index(i))...)
	}
	errs = append(errs, validateUniqueStrings(config.AcceptedIssuers, path.Child("acceptedIssuers"))...)
	if i := slices.Index(config.AcceptedIssuers, deref(config.Issuer)); i >= 0 && config.Issuer != nil {
		errs = append(errs, field.Invalid(path.Child("acceptedIssuers").Index(i), config.AcceptedIssuers[i],
			"is the issuer already; leave it out"))
	}
	return append(errs, validateDuration(config.MaxTokenExpiration, minTokenExpiration, maxTokenExpiration,
		path.Child("maxTokenExpiration"))...)
}

func validateIssuer(issuer string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(issuer)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" ||
		parsed.Fragment != "" {
		return field.ErrorList{field.Invalid(path, issuer, "must be an https URL without user, query and fragment")}
	}
	return nil
}

func validateEncryption(config *EncryptionConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	resources := path.Child("resources")
	errs := validateUniqueStrings(config.Resources, resources)
	for i, resource := range config.Resources {
		switch {
		case resource == "secrets" || resource == "secrets.":
			errs = append(errs, field.Forbidden(resources.Index(i), "secrets are always encrypted; leave them out"))
		case strings.Contains(resource, "*"):
			errs = append(errs, field.Invalid(resources.Index(i), resource,
				"must name one resource, such as configmaps; wildcards are not possible"))
		case resource == "" || resource != strings.ToLower(resource):
			errs = append(errs, field.Invalid(resources.Index(i), resource,
				"must be a resource in lower case, such as configmaps"))
		}
	}
	return append(errs, validateOptionalSupported(config.Provider.Type, encryptionTypes,
		path.Child("provider", "type"))...)
}

// validateRotationOfGCM: a key for AES-GCM must not encrypt too much.
func validateRotationOfGCM(spec *ShootSpec, path *field.Path) field.ErrorList {
	cipher := deref(deref(deref(spec.Kubernetes.KubeAPIServer).EncryptionConfig).Provider.Type)
	period :=
		deref(deref(deref(deref(deref(spec.Maintenance).AutoRotation).Credentials).ETCDEncryptionKey).RotationPeriod)
	if cipher != EncryptionProviderTypeAESGCM || period.Duration > 0 {
		return nil
	}
	return field.ErrorList{
		field.Required(path.Child("maintenance", "autoRotation", "credentials", "etcdEncryptionKey", "rotationPeriod"),
			"keys for aesgcm have to be rotated; give a period such as 672h"),
	}
}

// validateEncryptionUpdate refuses to change what is encrypted while the previous change, or a rotation of the key, is
// under way.
func validateEncryptionUpdate(shoot, old *Shoot, path *field.Path) field.ErrorList {
	after, before := encryptedResources(shoot), encryptedResources(old)
	if after.Equal(before) {
		return nil
	}
	phase := deref(rotationOf(old).ETCDEncryptionKey).Phase
	applied := deref(old.Status.Credentials).EncryptionAtRest
	switch {
	case sleeps(old):
		return field.ErrorList{field.Forbidden(path, "cannot be changed while the cluster sleeps; wake it up first")}
	case phase != "" && phase != RotationCompleted:
		return field.ErrorList{
			field.Forbidden(path, fmt.Sprintf("cannot be changed while the rotation of the encryption key is %s; "+
				"complete it first", phase)),
		}
	case applied != nil && !named(applied.Resources...).Equal(named(before.UnsortedList()...)):
		return field.ErrorList{field.Forbidden(path, "cannot be changed until the previous change has been applied")}
	}
	return nil
}

// named leaves out of encrypted resources what is encrypted without being named.
func named(resources ...string) sets.Set[string] {
	return sets.New(resources...).Delete("secrets", ResourceWorks)
}

func encryptedResources(shoot *Shoot) sets.Set[string] {
	return sets.New(deref(deref(shoot.Spec.Kubernetes.KubeAPIServer).EncryptionConfig).Resources...)
}

func validateWatchCacheSizes(sizes *WatchCacheSizes, path *field.Path) field.ErrorList {
	if sizes == nil {
		return nil
	}
	errs := validateOptionalAtLeast(sizes.Default, 0, path.Child("default"))
	for i, resource := range sizes.Resources {
		at := path.Child("resources").Index(i)
		errs = append(errs, validateRequired(resource.Resource, at.Child("resource"), "name the resource")...)
		errs = append(errs, validateAtLeast(resource.CacheSize, 0, at.Child("size"))...)
	}
	return errs
}
