package kubeapiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
)

// Decide makes the values of a cluster's kube-apiserver, but for what the user's files say, which WithFiles adds, and
// for what is being rotated.
func Decide(f component.Facts) Values {
	user := ptr.Deref(f.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServerConfig{})
	values := Values{
		Version: f.KubernetesVersion, Image: f.Images[Name], IsWorkerless: f.IsWorkerless,
		Replicas: f.Availability.Replicas(component.Pair), Availability: f.Availability, PriorityClass: f.PriorityClass,
		TrafficDistribution: f.TrafficDistribution, ServiceNetworks: f.ServiceNetworks,
		AdvertiseAddress: f.AdvertiseAddress, ExternalHostnames: f.Hostnames, PublishedHostname: f.Hostname,
		EgressHost: egresscomponent.Host, EgressImage: f.Images["vpn"], AggregatorRouting: true,
		ServiceAccounts: ServiceAccountValues{Issuer: "https://" + f.Hostname},
		ETCDRestore:     f.RestoreETCD.ID,
		Encryption:      encryptionOf(user.EncryptionConfig, f.EncryptedResources),
	}
	if !f.IsWorkerless {
		values.VPN = &VPNValues{}
		if f.Availability.IsHigh() {
			values.VPN.Paths = vpnseedserver.Proxies(f.Availability)
		}
	}
	takeServiceAccounts(&values, user.ServiceAccountConfig)
	takeLimits(&values, &user)
	takeWatchCaches(&values, user.WatchCacheSizes)
	takeSwitches(&values, &user)
	return values
}

// takeServiceAccounts takes over whose tokens count, and for how long.
func takeServiceAccounts(values *Values, user *gardencorev1beta1.ServiceAccountConfig) {
	if user == nil {
		return
	}
	accounts := &values.ServiceAccounts
	accounts.Issuer = ptr.Deref(user.Issuer, accounts.Issuer)
	accounts.AcceptedIssuers = user.AcceptedIssuers
	accounts.ExtendTokenExpiration = ptr.Deref(user.ExtendTokenExpiration, false)
	if user.MaxTokenExpiration != nil {
		accounts.MaxTokenExpiration = user.MaxTokenExpiration.Duration
	}
}

// takeLimits takes over numbers: how much, how long, how many.
func takeLimits(values *Values, user *gardencorev1beta1.KubeAPIServerConfig) {
	if requests := user.Requests; requests != nil {
		values.MaxRequestsInflight = int(ptr.Deref(requests.MaxNonMutatingInflight, 0))
		values.MaxMutatingRequestsInflight = int(ptr.Deref(requests.MaxMutatingInflight, 0))
	}
	if user.EventTTL != nil {
		values.EventTTL = user.EventTTL.Duration
	}
	if logging := user.Logging; logging != nil {
		values.Verbosity, values.HTTPAccessVerbosity = ptr.Deref(logging.Verbosity, 0),
			ptr.Deref(logging.HTTPAccessVerbosity, 0)
	}
	values.NotReadyTolerationSeconds, values.UnreachableTolerationSeconds = user.DefaultNotReadyTolerationSeconds,
		user.DefaultUnreachableTolerationSeconds
	if user.Autoscaling != nil {
		values.MinAllowed = user.Autoscaling.MinAllowed
	}
}

// takeWatchCaches takes over how much is kept to be watched.
func takeWatchCaches(values *Values, user *gardencorev1beta1.WatchCacheSizes) {
	if user == nil {
		return
	}
	values.DefaultWatchCacheSize = user.Default
	for _, resource := range user.Resources {
		name := schema.GroupResource{Group: ptr.Deref(resource.APIGroup, ""), Resource: resource.Resource}.String()
		values.WatchCacheSizes = append(values.WatchCacheSizes,
			WatchCacheSize{Resource: name, Size: resource.CacheSize})
	}
}

// takeSwitches takes over what is on or off.
func takeSwitches(values *Values, user *gardencorev1beta1.KubeAPIServerConfig) {
	values.FeatureGates, values.RuntimeConfig = user.FeatureGates, user.RuntimeConfig
	values.APIAudiences = user.APIAudiences
	values.TLSMinVersion = ptr.Deref(user.TLSMinVersion, "")
	values.AllowAnonymous = ptr.Deref(user.EnableAnonymousAuthentication, false)
	for _, plugin := range user.AdmissionPlugins {
		if ptr.Deref(plugin.Disabled, false) {
			values.DisabledAdmissionPlugins = append(values.DisabledAdmissionPlugins, plugin.Name)
		} else {
			values.EnabledAdmissionPlugins = append(values.EnabledAdmissionPlugins, plugin.Name)
		}
	}
}

// encryptionOf decides what is encrypted in etcd, and how: what the user says, and other resources.
func encryptionOf(user *gardencorev1beta1.EncryptionConfig, others []string) EncryptionValues {
	values := EncryptionValues{Provider: AESCBC, Resources: []string{"secrets"}}
	if user != nil {
		values.Provider = EncryptionProvider(ptr.Deref(user.Provider.Type,
			gardencorev1beta1.EncryptionProviderTypeAESCBC))
		others = slices.Concat(user.Resources, others)
	}
	for _, resource := range others {
		if !slices.Contains(values.Resources, resource) {
			values.Resources = append(values.Resources, resource)
		}
	}
	return values
}

// WithFiles adds what the files say that the user's settings refer to.
func (v Values) WithFiles(user *gardencorev1beta1.KubeAPIServerConfig, files apiserverconfig.Config) Values {
	v.AuditPolicy, v.Authentication = files.AuditPolicy, files.Authentication
	v.Authorizers, v.AuthorizerKubeconfigs = files.Authorizers, files.AuthorizerKubeconfigs
	for _, plugin := range user.AdmissionPlugins {
		settings := AdmissionConfig{Name: plugin.Name, Kubeconfig: files.PluginKubeconfigs[plugin.Name]}
		if plugin.Config != nil {
			settings.Config = plugin.Config.Raw
		}
		if len(settings.Config)+len(settings.Kubeconfig) > 0 && !ptr.Deref(plugin.Disabled, false) {
			v.AdmissionConfigs = append(v.AdmissionConfigs, settings)
		}
	}
	return v
}
