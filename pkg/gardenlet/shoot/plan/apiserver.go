package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

// APIServer are the settings of kube-apiserver.
type APIServer struct {
	// Values of the component.
	kubeapiserver.Values
	// Digest identifies the files of the garden that the settings come from; empty if there are none.
	Digest string
}

// planAPIServer decides about kube-apiserver.
func (p *Plan) planAPIServer(in *Inputs) error {
	values := &p.APIServer.Values
	for _, a := range p.Addresses {
		values.ExternalHostnames = append(values.ExternalHostnames, strings.TrimPrefix(a.URL, "https://"))
	}
	values.PublishedHostname = p.Hostname()
	values.ServiceAccounts.Issuer = "https://" + p.Hostname()
	values.AggregatorRouting = true
	values.IsWorkerless = p.Workerless
	if !p.Workerless {
		values.AdvertiseAddress = advertiseAddress
	}
	user := ptr.Deref(in.Shoot.Spec.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServerConfig{})
	takeServiceAccounts(values, user.ServiceAccountConfig)
	takeLimits(values, &user)
	takeWatchCaches(values, user.WatchCacheSizes)
	takeSwitches(values, &user)
	if err := takeEncryption(values, user.EncryptionConfig); err != nil {
		return err
	}
	if encrypted := &values.Encryption.Resources; seedauthorizer.IsFleet(in.Shoot) &&
		!slices.Contains(*encrypted, gardencorev1beta1.ResourceWorks) {
		*encrypted = append(*encrypted, gardencorev1beta1.ResourceWorks)
	}
	return p.takeFiles(in, &user)
}

// takeServiceAccounts takes over whose tokens count, and for how long.
func takeServiceAccounts(values *kubeapiserver.Values, user *gardencorev1beta1.ServiceAccountConfig) {
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
func takeLimits(values *kubeapiserver.Values, user *gardencorev1beta1.KubeAPIServerConfig) {
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
func takeWatchCaches(values *kubeapiserver.Values, user *gardencorev1beta1.WatchCacheSizes) {
	if user == nil {
		return
	}
	values.DefaultWatchCacheSize = user.Default
	for _, resource := range user.Resources {
		name := schema.GroupResource{Group: ptr.Deref(resource.APIGroup, ""), Resource: resource.Resource}.String()
		values.WatchCacheSizes = append(values.WatchCacheSizes,
			kubeapiserver.WatchCacheSize{Resource: name, Size: resource.CacheSize})
	}
}

// takeSwitches takes over what is on or off.
func takeSwitches(values *kubeapiserver.Values, user *gardencorev1beta1.KubeAPIServerConfig) {
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

// takeEncryption decides what is encrypted in etcd, and how.
func takeEncryption(values *kubeapiserver.Values, user *gardencorev1beta1.EncryptionConfig) error {
	values.Encryption = kubeapiserver.EncryptionValues{Provider: kubeapiserver.AESCBC, Resources: []string{"secrets"}}
	if user == nil {
		return nil
	}
	for _, resource := range user.Resources {
		if !slices.Contains(values.Encryption.Resources, resource) {
			values.Encryption.Resources = append(values.Encryption.Resources, resource)
		}
	}
	switch t := ptr.Deref(user.Provider.Type, gardencorev1beta1.EncryptionProviderTypeAESCBC); t {
	case gardencorev1beta1.EncryptionProviderTypeAESCBC:
		values.Encryption.Provider = kubeapiserver.AESCBC
	case gardencorev1beta1.EncryptionProviderTypeAESGCM:
		values.Encryption.Provider = kubeapiserver.AESGCM
	case gardencorev1beta1.EncryptionProviderTypeSecretbox:
		values.Encryption.Provider = kubeapiserver.Secretbox
	default:
		return fmt.Errorf("spec.kubernetes.kubeAPIServer.encryptionConfig.provider.type %q is not known; use "+
			"aescbc, aesgcm or secretbox", t)
	}
	return nil
}

// takeFiles takes over what ConfigMaps and Secrets of the garden say.
func (p *Plan) takeFiles(in *Inputs, user *gardencorev1beta1.KubeAPIServerConfig) error {
	values := &p.APIServer.Values
	own := values.ServiceAccounts
	rules := apiserverconfig.Rules{
		Issuers: append([]string{own.Issuer}, own.AcceptedIssuers...), InsecureKubeconfigs: in.InsecureKubeconfigs,
		KubernetesVersion: in.Shoot.Spec.Kubernetes.Version,
	}
	config, errs, err := apiserverconfig.Parse(&in.Files, user, rules, APIServerPath)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	p.APIServer.Digest = config.Digest
	values.AuditPolicy, values.Authentication = config.AuditPolicy, config.Authentication
	values.Authorizers, values.AuthorizerKubeconfigs = config.Authorizers, config.AuthorizerKubeconfigs
	for _, plugin := range user.AdmissionPlugins {
		settings := kubeapiserver.AdmissionConfig{Name: plugin.Name, Kubeconfig: config.PluginKubeconfigs[plugin.Name]}
		if plugin.Config != nil {
			settings.Config = plugin.Config.Raw
		}
		if len(settings.Config)+len(settings.Kubeconfig) > 0 && !ptr.Deref(plugin.Disabled, false) {
			values.AdmissionConfigs = append(values.AdmissionConfigs, settings)
		}
	}
	return nil
}

// completeAPIServer adds to the settings of kube-apiserver what other parts of the plan have decided.
func (p *Plan) completeAPIServer() {
	values := &p.APIServer.Values
	values.Version, values.Image, values.Replicas = p.KubernetesVersion, p.Images["kube-apiserver"], 1
	values.ServiceNetworks, values.TrafficDistribution = p.Networks.Services, p.Seed.TrafficDistribution
	values.Encryption.From = p.Rotation.Encryption.From
	values.KeepOldServiceAccountKey, values.KeepInternalKubeconfig = p.Rotation.KeepOldServiceAccountKey,
		p.Rotation.ReplacesAuthorities
	values.EgressHost, values.EgressImage = egresscomponent.Host, p.Images["vpn"]
	if !p.Workerless {
		values.VPN = &kubeapiserver.VPNValues{}
	}
}
