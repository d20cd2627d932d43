// Package kubeapiserver deploys the kube-apiserver of a control plane with its Service and all of its certificates, and
// makes the kubeconfigs by which the seed's processes reach it.
package kubeapiserver

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/encryption"
)

const (
	// Name of Deployment and Service.
	Name = "kube-apiserver"
	// ServicePort is the port of the Service.
	ServicePort int32 = 443
	// Port is where the process listens; together with the advertise address it is the endpoint of the
	// Service "kubernetes" in the cluster.
	Port int32 = 6443
	// publishedPort is where the gateway serves the API server's names.
	publishedPort = "443"
	// InternalKubeconfigSecret is the fixed name of the Secret with an administrator's kubeconfig for the seed's
	// processes, under the key "kubeconfig".
	InternalKubeconfigSecret = gardencorev1beta1.SecretNameGardenerInternal
	// GenericTokenKubeconfigName is the configuration name of the kubeconfig that reads its token from
	// component.ShootTokenFile; the Secret's name has a checksum behind it.
	GenericTokenKubeconfigName = "generic-token-kubeconfig"
	// ownAudience is carried by tokens that resource-manager requests for the seed's processes.
	ownAudience = "gardener"
	// ServiceAccountKeyName is the configuration name of the key that signs service account tokens.
	ServiceAccountKeyName = "service-account-key"
)

// EncryptionProvider is how objects are encrypted in etcd.
type EncryptionProvider = encryption.Provider

// The encryption providers.
const (
	// Secretbox is XSalsa20-Poly1305, the default.
	Secretbox = encryption.Secretbox
	// AESCBC is AES in CBC mode.
	AESCBC = encryption.AESCBC
	// AESGCM is AES in GCM mode; its keys have to be rotated.
	AESGCM = encryption.AESGCM
)

// Values of a kube-apiserver.
type Values struct {
	// Version is the Kubernetes version, e.g. "1.36.3".
	Version string
	// Image of kube-apiserver.
	Image string
	// Replicas; 0 for a hibernated control plane.
	Replicas int32
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane.
	Availability component.Availability `json:",omitzero"`
	// TrafficDistribution of the Service; empty for the seed's default.
	TrafficDistribution string
	// ServiceNetworks are the CIDRs of services, at least one.
	ServiceNetworks []string
	// AdvertiseAddress is the address behind the Service "kubernetes" in the cluster; empty for the pod's own address,
	// which suits a cluster without nodes.
	AdvertiseAddress string
	// ExternalHostnames are the names that clients outside use; they are put into the certificate.
	ExternalHostnames []string
	// PublishedHostname is the name in URLs that the process tells of itself, as that of its issuer's keys; default the
	// first of ExternalHostnames.
	PublishedHostname string
	// VPN makes connections to nodes, pods and services of the cluster go through vpn-seed-server; nil without workers.
	VPN *VPNValues
	// EgressHost is the name of the seed's egress proxy; empty for none. The manager of the secrets has to know its
	// authority, ca-egress.
	EgressHost string
	// EgressImage is that of vpn; with an EgressHost it is needed for the admission plugin ImagePolicyWebhook, and with
	// several paths of the VPN.
	EgressImage string
	// ServiceAccounts say how tokens of service accounts are issued.
	ServiceAccounts ServiceAccountValues
	// APIAudiences are the audiences that tokens may carry; default "kubernetes". "gardener" is always one.
	APIAudiences []string
	// KeepOldServiceAccountKey has tokens accepted that the key of before a rotation signed.
	KeepOldServiceAccountKey bool
	// KeepInternalKubeconfig leaves the Secret InternalKubeconfigSecret as it is: while certificate authorities are
	// being replaced, clients must not use what the servers that run do not know.
	KeepInternalKubeconfig bool
	// Encryption at rest is always on.
	Encryption EncryptionValues
	// AuthorizationWebhook is asked after RBAC; nil for none.
	AuthorizationWebhook *AuthorizationWebhook
	// Authorizers are webhooks of users, asked at last, with their kubeconfigs by name.
	Authorizers           []apiserverv1.AuthorizerConfiguration
	AuthorizerKubeconfigs map[string][]byte
	// Authentication are further ways for clients to prove who they are; nil for none.
	Authentication *apiserverv1.AuthenticationConfiguration
	// AuthenticationConfigMap is the name of a ConfigMap whose key apiserverconfig.KeyConfig has an
	// AuthenticationConfiguration; empty for none. It takes the place of Authentication and AllowAnonymous, and the
	// process reads it again when it changes. The health checks have to be among what anonymous requests reach.
	AuthenticationConfigMap string `json:",omitempty"`
	// AllowAnonymous lets requests without credentials reach every path, as system:anonymous.
	AllowAnonymous bool
	// AuditPolicy says what is written to the standard output; empty for DefaultAuditPolicy.
	AuditPolicy []byte
	// AggregatorRouting sends requests for aggregated APIs to endpoints of their Services rather than to the Services'
	// addresses. Right for shoots; wrong for the virtual garden, whose Services are external names.
	AggregatorRouting bool
	// EnabledAdmissionPlugins and DisabledAdmissionPlugins change the default set.
	EnabledAdmissionPlugins  []string
	DisabledAdmissionPlugins []string
	// AdmissionConfigs are the settings of admission plugins.
	AdmissionConfigs []AdmissionConfig
	// IsWorkerless leaves out what only clusters with nodes need.
	IsWorkerless bool
	// HostAliases are names that the process shall resolve by itself.
	HostAliases []corev1.HostAlias
	// FeatureGates and RuntimeConfig are passed on.
	FeatureGates  map[string]bool
	RuntimeConfig map[string]bool
	// MaxRequestsInflight and MaxMutatingRequestsInflight bound concurrency, and with it memory; default 200 and 100.
	MaxRequestsInflight         int
	MaxMutatingRequestsInflight int
	// EventTTL is how long events are kept; default an hour.
	EventTTL time.Duration
	// Verbosity of the log, and that of the log of requests; 0 for the process's defaults.
	Verbosity, HTTPAccessVerbosity int32
	// WatchCacheSizes of resources, in events; DefaultWatchCacheSize of those that are not listed, nil to leave it to
	// the process.
	WatchCacheSizes       []WatchCacheSize
	DefaultWatchCacheSize *int32
	// NotReadyTolerationSeconds and UnreachableTolerationSeconds are how long pods stay on a node that is not ready or
	// cannot be reached; nil for the process's default, five minutes.
	NotReadyTolerationSeconds, UnreachableTolerationSeconds *int64
	// TLSMinVersion is the lowest version of TLS that is served; default "VersionTLS12".
	TLSMinVersion string
	// MinAllowed are the least requests of the container.
	MinAllowed corev1.ResourceList
	// ETCDRestore names the last restore of etcd that was asked for; empty if there never was one. Another one replaces
	// the pods, so that nothing of the caches of before is left.
	ETCDRestore string
	// ExtraArgs are flags without dashes; they replace flags of the same name.
	ExtraArgs map[string]string
}

// VPNValues tell where kube-apiserver finds the way into the cluster's networks.
type VPNValues struct {
	// ProxyHost and ProxyPort of the HTTP CONNECT proxy; default "vpn-seed-server" and 9443.
	ProxyHost string
	ProxyPort int32
	// Paths are host:port of several such proxies, among which a sidecar chooses one that leads there; ProxyHost and
	// ProxyPort are of no account then.
	Paths []string `json:",omitempty"`
}

// ServiceAccountValues say how tokens of service accounts are issued.
type ServiceAccountValues struct {
	// Issuer of tokens; default "https://kubernetes.default.svc.cluster.local".
	Issuer string
	// AcceptedIssuers are others whose tokens are valid if a key of this cluster signed them.
	AcceptedIssuers []string
	// ExtendTokenExpiration lets tokens of pods live for a year, for clients that do not read them anew.
	ExtendTokenExpiration bool
	// MaxTokenExpiration bounds how long tokens live; 0 for no bound.
	MaxTokenExpiration time.Duration
}

// AdmissionConfig are the settings of an admission plugin.
type AdmissionConfig struct {
	// Name of the plugin.
	Name string
	// Config in JSON; empty for none.
	Config []byte
	// Kubeconfig for the plugin's webhook; empty for none.
	Kubeconfig []byte
}

// WatchCacheSize is the size of the watch cache of one resource.
type WatchCacheSize struct {
	// Resource in the form "secrets" or "deployments.apps".
	Resource string
	// Size in events; 0 turns the cache off.
	Size int32
}

// AuthorizationWebhook is who is asked about requests that RBAC does not allow. When it cannot be reached, they are
// refused.
type AuthorizationWebhook struct {
	// Name of the authorizer, for metrics and logs.
	Name string
	// Server is its URL; a certificate authority of the cluster ("ca") has signed its certificate.
	Server string
	// User is as whom kube-apiserver asks: the common name of a client certificate, signed by ca-client.
	User string
	// MatchConditions are CEL expressions over a SubjectAccessReview's specification; the webhook is asked if all are
	// true.
	MatchConditions []string
}

// EncryptionValues say what is encrypted in etcd, and how.
type EncryptionValues struct {
	// Provider defaults to Secretbox.
	Provider EncryptionProvider
	// Resources in the form "secrets" or "things.example.com"; default "secrets".
	Resources []string
	// From is what objects were encrypted like before a change that is under way; nil when there is none.
	From *encryption.Scheme
	// Stage of the change, or of the keys' rotation; empty when there is neither.
	Stage encryption.Stage
}

// Scheme is how objects are to be encrypted.
func (v EncryptionValues) Scheme() encryption.Scheme {
	return encryption.Scheme{Provider: v.Provider, Resources: v.Resources}
}

// schemes are those of before and after a change; the same without one.
func (v EncryptionValues) schemes() (from, to encryption.Scheme) {
	to = v.Scheme()
	if v.From == nil {
		return to, to
	}
	return *v.From, to
}

func (v Values) withDefaults() Values {
	v.ServiceAccounts.Issuer = cmp.Or(v.ServiceAccounts.Issuer, "https://kubernetes.default.svc.cluster.local")
	if len(v.ExternalHostnames) > 0 {
		v.PublishedHostname = cmp.Or(v.PublishedHostname, v.ExternalHostnames[0])
	}
	v.EventTTL = cmp.Or(v.EventTTL, time.Hour)
	v.TLSMinVersion = cmp.Or(v.TLSMinVersion, "VersionTLS12")
	if len(v.APIAudiences) == 0 {
		v.APIAudiences = []string{"kubernetes"}
	}
	if !slices.Contains(v.APIAudiences, ownAudience) {
		v.APIAudiences = append(slices.Clone(v.APIAudiences), ownAudience)
	}
	if v.Encryption.Provider == "" {
		v.Encryption.Provider = Secretbox
	}
	if len(v.Encryption.Resources) == 0 {
		v.Encryption.Resources = []string{"secrets"}
	}
	if v.MaxRequestsInflight == 0 {
		v.MaxRequestsInflight = 200
	}
	if v.MaxMutatingRequestsInflight == 0 {
		v.MaxMutatingRequestsInflight = 100
	}
	if v.VPN != nil {
		vpn := *v.VPN
		if vpn.ProxyHost == "" {
			vpn.ProxyHost = "vpn-seed-server"
		}
		if vpn.ProxyPort == 0 {
			vpn.ProxyPort = 9443
		}
		v.VPN = &vpn
	}
	return v
}

func (v Values) validate() error {
	if v.Image == "" {
		return errors.New("kube-apiserver: no image is given")
	}
	if hasSidecar(v) && v.EgressImage == "" {
		return errors.New("kube-apiserver: no image is given for the sidecar of admission plugin " + imagePolicyWebhook)
	}
	if hasPaths(v) && v.EgressImage == "" {
		return errors.New("kube-apiserver: no image is given for the sidecar that chooses among paths of the VPN")
	}
	if len(v.ServiceNetworks) == 0 {
		return errors.New("kube-apiserver: no service network is given")
	}
	for _, network := range v.ServiceNetworks {
		if _, err := netip.ParsePrefix(network); err != nil {
			return fmt.Errorf("kube-apiserver: service network: %w", err)
		}
	}
	if v.AdvertiseAddress != "" {
		if _, err := netip.ParseAddr(v.AdvertiseAddress); err != nil {
			return fmt.Errorf("kube-apiserver: advertise address: %w", err)
		}
	}
	return nil
}

// InternalHost is the name of the Service for clients in other namespaces of the seed.
func InternalHost(namespace string) string { return Name + "." + namespace + ".svc" }

// LocalServer is the URL of the API server for pods in its own namespace.
const LocalServer = "https://" + Name
