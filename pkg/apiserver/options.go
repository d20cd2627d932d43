package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
	gardenadmission "github.com/trellis-garden/trellis/pkg/apiserver/admission"
	"github.com/trellis-garden/trellis/pkg/apiserver/decoding"
)

const (
	// etcdPrefix is where all objects of this server lie in etcd. It shares the garden's etcd with kube-apiserver.
	etcdPrefix = "/registry-gardener"
	// defaultPort is where the server listens. It needs no privilege.
	defaultPort = 8443
)

// identityPattern is what gardenctl accepts as the identity of a garden.
var identityPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_-]*[a-zA-Z0-9])?$`)

// Options are the flags of garden-apiserver.
type Options struct {
	Recommended *genericoptions.RecommendedOptions
	// ClusterIdentity names the garden. It is published in ConfigMap kube-system/cluster-identity.
	ClusterIdentity string
	// AdminKubeconfigMaxExpiration and ViewerKubeconfigMaxExpiration cap the validity of issued kubeconfigs.
	AdminKubeconfigMaxExpiration  time.Duration
	ViewerKubeconfigMaxExpiration time.Duration
	// InsecureKubeconfigs lets kubeconfigs of shoots' webhooks name a proxy and turn off verification.
	InsecureKubeconfigs bool
	// Tokens says how tokens of workload identities are issued.
	Tokens tokenOptions
}

// NewOptions returns options with their defaults.
func NewOptions() *Options {
	recommended := genericoptions.NewRecommendedOptions(etcdPrefix, newStorageCodec())
	recommended.SecureServing.BindPort = defaultPort
	// kube-apiserver has already queued a request fairly before it passes it on.
	recommended.Features.EnablePriorityAndFairness = false
	recommended.Features.EnableProfiling = false
	recommended.EgressSelector, recommended.Traces = nil, nil
	gardenadmission.Register(recommended.Admission.Plugins)
	recommended.Admission.RecommendedPluginOrder = gardenadmission.Order
	recommended.Admission.DefaultOffPlugins = sets.New(gardenadmission.DefaultOff...)
	return &Options{
		Recommended:                   recommended,
		AdminKubeconfigMaxExpiration:  24 * time.Hour,
		ViewerKubeconfigMaxExpiration: 24 * time.Hour,
		Tokens:                        newTokenOptions(),
	}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Recommended.AddFlags(flags)
	flags.StringVar(&o.ClusterIdentity, "cluster-identity", o.ClusterIdentity,
		"Name of the garden, unique among the gardens its users know. Published in ConfigMap "+
			"kube-system/cluster-identity.")
	flags.DurationVar(&o.AdminKubeconfigMaxExpiration, "shoot-admin-kubeconfig-max-expiration",
		o.AdminKubeconfigMaxExpiration,
		"Longest validity of an issued admin kubeconfig; longer requests are cut to it.")
	flags.DurationVar(&o.ViewerKubeconfigMaxExpiration, "shoot-viewer-kubeconfig-max-expiration",
		o.ViewerKubeconfigMaxExpiration,
		"Longest validity of an issued viewer kubeconfig; longer requests are cut to it.")
	flags.BoolVar(&o.InsecureKubeconfigs, "allow-insecure-webhook-kubeconfigs", o.InsecureKubeconfigs,
		"Let the kubeconfigs of shoots' webhooks name a proxy and turn off the verification of certificates. "+
			"Gardenlets have a setting of their own.")
	o.Tokens.addFlags(flags)
}

// Validate checks the flags.
func (o *Options) Validate() error {
	errs := o.Recommended.Validate()
	if o.Recommended.CoreAPI.CoreAPIKubeconfigPath == "" {
		errs = append(errs, errors.New("--kubeconfig is missing: the garden's kube-apiserver"))
	}
	if !identityPattern.MatchString(o.ClusterIdentity) {
		errs =
			append(errs, fmt.Errorf("--cluster-identity %q: letters, digits, - and _ are allowed, and it must begin "+
				"and end with a letter or digit", o.ClusterIdentity))
	}
	return utilerrors.NewAggregate(append(errs, o.Tokens.validate()...))
}

// complete derives what was left open: all connections lead to the same kube-apiserver unless told otherwise.
func (o *Options) complete() {
	kubeconfig := o.Recommended.CoreAPI.CoreAPIKubeconfigPath
	if o.Recommended.Authentication.RemoteKubeConfigFile == "" {
		o.Recommended.Authentication.RemoteKubeConfigFile = kubeconfig
	}
	if o.Recommended.Authorization.RemoteKubeConfigFile == "" {
		o.Recommended.Authorization.RemoteKubeConfigFile = kubeconfig
	}
}

// Run serves until the context ends.
func (o *Options) Run(ctx context.Context) error {
	o.complete()
	if err := o.Validate(); err != nil {
		return err
	}
	if err := waitForKubeAPIServer(ctx, o.Recommended.Authentication.RemoteKubeConfigFile); err != nil {
		return err
	}
	server, err := o.newServer()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func (o *Options) newServer() (*Server, error) {
	dependencies := &gardenadmission.Dependencies{InsecureKubeconfigs: o.InsecureKubeconfigs}
	config, err := o.serverConfig(dependencies)
	if err != nil {
		return nil, err
	}
	reservations, err := reserveIn(config, o.Recommended.Etcd.StorageConfig)
	if err != nil {
		return nil, err
	}
	dependencies.Reservations = reservations
	client, err := kubernetes.NewForConfig(withoutLimit(config.ClientConfig))
	if err != nil {
		return nil, fmt.Errorf("client of the garden's kube-apiserver: %w", err)
	}
	tokens, err := o.Tokens.issuer()
	if err != nil {
		return nil, err
	}
	publication, err := publish(config, tokens)
	if err != nil {
		return nil, err
	}
	return newServer(config, client, dependencies, serverSettings{
		tokens:           tokens,
		publication:      publication,
		seeds:            authorizeSeeds(config),
		reservations:     reservations,
		clusterIdentity:  o.ClusterIdentity,
		adminExpiration:  o.AdminKubeconfigMaxExpiration,
		viewerExpiration: o.ViewerKubeconfigMaxExpiration,
	})
}

// withoutLimit leaves it to the garden's kube-apiserver, which is fair, who waits. The limit of a client is one for all
// users: a Shoot with many references would hold up everybody's writes.
func withoutLimit(config *rest.Config) *rest.Config {
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	return unlimited
}

func (o *Options) serverConfig(dependencies *gardenadmission.Dependencies) (*genericapiserver.RecommendedConfig,
	error) {
	if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	config := genericapiserver.NewRecommendedConfig(Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapinamer.NewDefinitionNamer(wireScheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = "Trellis"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = "Trellis"
	o.Recommended.ExtraAdmissionInitializers =
		func(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
			client, err := kubernetes.NewForConfig(withoutLimit(config.ClientConfig))
			if err != nil {
				return nil, fmt.Errorf("client for quotas: %w", err)
			}
			return []admission.PluginInitializer{gardenadmission.NewInitializer(dependencies), resourceQuotas{client}},
				nil
		}
	if err := o.Recommended.ApplyTo(config); err != nil {
		return nil, err
	}
	boundBodies(config)
	return config, nil
}

// boundBodies keeps requests from costing much by what is in their bodies.
func boundBodies(config *genericapiserver.RecommendedConfig) {
	filter := &decoding.Filter{Scheme: Scheme, Codecs: Codecs, MaxBytes: config.MaxRequestBodyBytes}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(filter.Wrap(handler), c)
	}
	config.JSONPatchMaxCopyBytes = decoding.MaxCopies
}
