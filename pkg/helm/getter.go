package helm

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clientGetter gives Helm its clients from a rest.Config, where kubectl would read kubeconfig files. Discovery is
// cached until an operation of Helm begins, or custom resource definitions were applied.
type clientGetter struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
	namespace string
}

func newClientGetter(config *rest.Config) (*clientGetter, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 100
	}
	// Helm's objects may be of kinds that do not speak protobuf.
	config.ContentConfig = rest.ContentConfig{}
	config.WarningHandler = rest.NoWarnings{}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(discoveryClient)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &clientGetter{
		config:    config,
		discovery: discoveryWithMapper{CachedDiscoveryInterface: cached, mapper: mapper},
		mapper:    mapper,
	}, nil
}

// discoveryWithMapper lets the mapper forget together with the discovery that it was made from. Helm invalidates
// discovery at the beginning of an operation, and reads it anew at once: a mapper that was not told would then take
// what it made before for the newest there is, and not know kinds that came since.
type discoveryWithMapper struct {
	discovery.CachedDiscoveryInterface
	mapper meta.ResettableRESTMapper
}

// Invalidate implements discovery.CachedDiscoveryInterface.
func (d discoveryWithMapper) Invalidate() { d.mapper.Reset() }

func (g *clientGetter) inNamespace(namespace string) *clientGetter {
	other := *g
	other.namespace = namespace
	return &other
}

// forget drops cached discovery, after custom resource definitions were applied.
func (g *clientGetter) forget() { g.mapper.Reset() }

func (g *clientGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *clientGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *clientGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader is only asked for the namespace.
func (g *clientGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}
