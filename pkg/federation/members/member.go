package members

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-garden/trellis/pkg/answers"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/capacity"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// Member is the connection to one cluster. It watches the objects that the fleet manages there, kind by kind as they
// are asked for.
type Member struct {
	name        string
	fingerprint string
	dynamic     dynamic.Interface
	discovery   discovery.DiscoveryInterface
	mapper      meta.RESTMapper
	informers   dynamicinformer.DynamicSharedInformerFactory
	changed     Changed
	guard       *answers.Guard
	client      client.Client
	core        typedcorev1.CoreV1Interface
	follower    *capacity.Follower
	ctx         context.Context
	close       context.CancelFunc

	mu      sync.Mutex
	watched map[schema.GroupVersionResource]toolscache.SharedIndexInformer
}

func connect(ctx context.Context, name string, config *rest.Config, proxyHeader http.Header, fingerprint string,
	dial outside.Dial, changed Changed) (*Member, error) {
	guard := answers.NewGuard("the member", limits)
	httpClient, err := httpClient(config, proxyHeader, dial, guard)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discoveryFor(config, httpClient)
	if err != nil {
		return nil, err
	}
	coreClient, err := typedcorev1.NewForConfigAndClient(asProtobuf(config), httpClient)
	if err != nil {
		return nil, err
	}
	typedClient, err := client.New(config,
		client.Options{HTTPClient: httpClient, Mapper: mapper, Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, err
	}
	m := &Member{
		client: typedClient,
		name:   name, fingerprint: fingerprint, changed: changed, guard: guard, core: coreClient,
		follower: capacity.NewFollower(coreClient, capacity.DefaultLimits()),
		dynamic:  dynamicClient, discovery: discoveryClient, mapper: mapper,
		watched: map[schema.GroupVersionResource]toolscache.SharedIndexInformer{},
	}
	m.ctx, m.close = context.WithCancel(ctx)
	m.informers = dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, metav1.NamespaceAll,
		func(o *metav1.ListOptions) {
			o.LabelSelector = workv1alpha1.ManagedLabel + "=true"
		})
	go m.follower.Run(m.ctx)
	return m, nil
}

// asProtobuf is for the kinds of Kubernetes that are read in large numbers.
func asProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// discoveryFor bounds discovery by the time-out of single requests.
func discoveryFor(config *rest.Config, httpClient *http.Client) (discovery.DiscoveryInterface, error) {
	bounded := *httpClient
	bounded.Timeout = requestTimeout
	return discovery.NewDiscoveryClientForConfigAndClient(config, &bounded)
}

// Discovery tells which APIs the member serves.
func (m *Member) Discovery() discovery.DiscoveryInterface { return m.discovery }

// Client reads and writes Kubernetes' own kinds in the member.
func (m *Member) Client() client.Client { return m.client }

// Mapping finds the resource of a kind.
func (m *Member) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.name, err)
	}
	return mapping, nil
}

// Resource gives access to one resource in a namespace; the namespace is empty for cluster-wide ones.
func (m *Member) Resource(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return m.dynamic.Resource(mapping.Resource)
	}
	return m.dynamic.Resource(mapping.Resource).Namespace(namespace)
}

// RequestContext bounds one request to the member.
func RequestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// Managed gives the object from the watch if the fleet manages it there, and else asks the member: so nil means that
// there is no such object, managed or not.
func (m *Member) Managed(ctx context.Context, mapping *meta.RESTMapping,
	namespace, name string) (*unstructured.Unstructured, error) {
	found, err := m.fromWatch(mapping, namespace, name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return found.decode()
	}
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	object, err := m.Resource(mapping, namespace).Get(ctx, name, metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return object, nil
}

// fromWatch starts the watch of the resource if there is none yet.
func (m *Member) fromWatch(mapping *meta.RESTMapping, namespace, name string) (*kept, error) {
	informer, err := m.watch(mapping.Resource)
	if err != nil {
		return nil, fmt.Errorf("watching %s in member %s: %w", mapping.Resource.GroupResource(), m.name, err)
	}
	if !informer.HasSynced() {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}.String()
	if namespace == "" || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key = name
	}
	item, found, err := informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return nil, err
	}
	object, _ := item.(*kept)
	return object, nil
}

// watch fails rather than that changes in the member would not be reported, or whole objects kept.
func (m *Member) watch(resource schema.GroupVersionResource) (toolscache.SharedIndexInformer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if informer, running := m.watched[resource]; running {
		return informer, nil
	}
	informer := m.informers.ForResource(resource).Informer()
	if err := informer.SetTransform(keep); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    m.report,
		UpdateFunc: func(_, object any) { m.report(object) },
		DeleteFunc: m.report,
	})
	if err != nil {
		return nil, err
	}
	m.watched[resource] = informer
	go informer.RunWithContext(m.ctx)
	return informer, nil
}

func (m *Member) report(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if changed, ok := object.(client.Object); ok {
		m.changed(m.name, changed)
	}
}
