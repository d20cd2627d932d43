package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/vpn/health"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// settle is how long changes are collected before the tables are built again.
const settle = 20 * time.Millisecond

// Watcher follows TLSRoutes, Services and Namespaces, and reports routes and servers of tunnels when they change. A
// missing TLSRoute CRD is waited for.
type Watcher struct {
	log logr.Logger
	// operator is the namespace that may have all hosts and keys.
	operator   string
	services   toolscache.SharedIndexInformer
	namespaces toolscache.SharedIndexInformer
	routes     toolscache.SharedIndexInformer
	changed    chan struct{}
	report     func(Routes, []transport.Server)

	once   sync.Once
	synced chan struct{}
	warned map[string]string
}

// NewWatcher makes a Watcher of the cluster that config points to, whose operator has a namespace. report is called
// from one goroutine.
func NewWatcher(log logr.Logger, config *rest.Config, operator string,
	report func(Routes, []transport.Server)) (*Watcher, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := gatewayv1.Install(scheme); err != nil {
		return nil, err
	}
	core, err := restClient(config, scheme, "/api", corev1.SchemeGroupVersion, runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	routes, err := restClient(config, scheme, "/apis", gatewayv1.SchemeGroupVersion, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	all := func(client rest.Interface, resource string) toolscache.ListerWatcher {
		return toolscache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	}
	w := &Watcher{
		log: log, operator: operator,
		services:   toolscache.NewSharedIndexInformer(all(core, "services"), &corev1.Service{}, 0, nil),
		namespaces: toolscache.NewSharedIndexInformer(all(core, "namespaces"), &corev1.Namespace{}, 0, nil),
		routes:     toolscache.NewSharedIndexInformer(all(routes, "tlsroutes"), &gatewayv1.TLSRoute{}, 0, nil),
		changed:    make(chan struct{}, 1), report: report, synced: make(chan struct{}), warned: map[string]string{},
	}
	return w, w.prepare()
}

func restClient(config *rest.Config, scheme *runtime.Scheme, apiPath string, version schema.GroupVersion,
	contentType string) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = apiPath
	config.GroupVersion = &version
	config.ContentType = contentType
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", version, err)
	}
	return client, nil
}

// prepare makes the informers tell of changes.
func (w *Watcher) prepare() error {
	for _, informer := range []toolscache.SharedIndexInformer{w.services, w.namespaces, w.routes} {
		if err := informer.SetTransform(strip); err != nil {
			return err
		}
		if err := informer.SetWatchErrorHandlerWithContext(w.watchFailed); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.touch() },
			UpdateFunc: func(any, any) { w.touch() },
			DeleteFunc: func(any) { w.touch() },
		}); err != nil {
			return err
		}
	}
	return nil
}

// strip drops what the tables do not need, to keep thousands of Services small.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		kept := &corev1.Service{
			ObjectMeta: stripMeta(o.ObjectMeta), Spec: corev1.ServiceSpec{ClusterIP: o.Spec.ClusterIP},
		}
		if value, ok := o.Labels[vpnv1alpha1.LabelTunnel]; ok {
			kept.Labels = map[string]string{vpnv1alpha1.LabelTunnel: value}
			kept.Annotations = map[string]string{
				vpnv1alpha1.AnnotationPublicKey: o.Annotations[vpnv1alpha1.AnnotationPublicKey],
			}
		}
		return kept, nil
	case *corev1.Namespace:
		kept := &corev1.Namespace{ObjectMeta: stripMeta(o.ObjectMeta)}
		for _, annotation := range []string{vpnv1alpha1.AnnotationHosts, vpnv1alpha1.AnnotationPublicKey} {
			if value, ok := o.Annotations[annotation]; ok {
				metav1.SetMetaDataAnnotation(&kept.ObjectMeta, annotation, value)
			}
		}
		return kept, nil
	case *gatewayv1.TLSRoute:
		return &gatewayv1.TLSRoute{ObjectMeta: stripMeta(o.ObjectMeta), Spec: o.Spec}, nil
	}
	return object, nil
}

func stripMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID,
		ResourceVersion: meta.ResourceVersion, CreationTimestamp: meta.CreationTimestamp,
	}
}

func (w *Watcher) watchFailed(_ context.Context, reflector *toolscache.Reflector, err error) {
	w.log.Info("Cannot watch, trying again", "objects", reflector.TypeDescription(), "reason", err.Error())
}

// Synced is closed once Services and Namespaces are known. TLSRoutes may come later, with their CRD.
func (w *Watcher) Synced() <-chan struct{} { return w.synced }

// RoutesSynced says whether the TLSRoutes are known.
func (w *Watcher) RoutesSynced() bool { return w.routes.HasSynced() }

// Metrics returns what is known of the state of the watch.
func (w *Watcher) Metrics() []prometheus.Collector {
	return []prometheus.Collector{health.Gauge("gateway_routes_synced", "1 when all TLSRoutes are known.", func() int {
		if w.RoutesSynced() {
			return 1
		}
		return 0
	})}
}

// Run watches until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { w.services.RunWithContext(ctx) })
	group.Go(func() { w.namespaces.RunWithContext(ctx) })
	group.Go(func() { w.routes.RunWithContext(ctx) })

	if !toolscache.WaitForCacheSync(ctx.Done(), w.services.HasSynced, w.namespaces.HasSynced) {
		return nil
	}
	w.touch()
	group.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), w.routes.HasSynced) {
			w.touch()
		}
	})
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
			w.rebuild()
		}
		if !wait(ctx, settle) {
			return nil
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (w *Watcher) touch() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *Watcher) rebuild() {
	complete := w.RoutesSynced()
	services := listOf[*corev1.Service](w.services)
	byKey := func(key types.NamespacedName) *corev1.Service {
		object, _, _ := w.services.GetStore().GetByKey(key.String())
		service, _ := object.(*corev1.Service)
		return service
	}
	grants := BuildGrants(w.operator, listOf[*corev1.Namespace](w.namespaces))
	routes, refused := BuildRoutes(listOf[*gatewayv1.TLSRoute](w.routes), grants, byKey)
	routes.complete = complete
	servers, failed := BuildServers(services, grants)
	w.warn(refused, failed)
	w.report(routes, servers)
	w.once.Do(func() { close(w.synced) })
}

// warn logs what cannot be used, TLSRoutes and Services of tunnels, once per reason.
func (w *Watcher) warn(routes, servers map[string]error) {
	warned := map[string]string{}
	for kind, failed := range map[string]map[string]error{"TLSRoute": routes, "Service of a tunnel": servers} {
		for name, err := range failed {
			key := kind + " " + name
			warned[key] = err.Error()
			if w.warned[key] != err.Error() {
				w.log.Info(kind+" cannot be used as it is", "name", name, "reason", err.Error())
			}
		}
	}
	w.warned = warned
}

func listOf[T any](informer toolscache.SharedIndexInformer) []T {
	objects := informer.GetStore().List()
	list := make([]T, 0, len(objects))
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			list = append(list, typed)
		}
	}
	return list
}
