package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/demux"
)

// settle is how long changes are collected before the tables are built again.
const settle = 20 * time.Millisecond

// Watcher follows TLSRoutes and Services and reports routes and WireGuard servers when they change. A missing TLSRoute CRD is
// waited for.
type Watcher struct {
	log      logr.Logger
	services cache.SharedIndexInformer
	routes   cache.SharedIndexInformer
	changed  chan struct{}
	report   func(Routes, []demux.Server)

	once   sync.Once
	synced chan struct{}
	warned map[string]string
}

// NewWatcher makes a Watcher of the cluster that config points to. report is called from one goroutine.
func NewWatcher(log logr.Logger, config *rest.Config, report func(Routes, []demux.Server)) (*Watcher, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := gatewayv1.Install(scheme); err != nil {
		return nil, err
	}
	services, err := restClient(config, scheme, "/api", corev1.SchemeGroupVersion, runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	routes, err := restClient(config, scheme, "/apis", gatewayv1.SchemeGroupVersion, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return newWatcher(log,
		cache.NewListWatchFromClient(services, "services", metav1.NamespaceAll, fields.Everything()),
		cache.NewListWatchFromClient(routes, "tlsroutes", metav1.NamespaceAll, fields.Everything()),
		report)
}

func restClient(config *rest.Config, scheme *runtime.Scheme, apiPath string, version schema.GroupVersion, contentType string) (rest.Interface, error) {
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

func newWatcher(log logr.Logger, services, routes cache.ListerWatcher, report func(Routes, []demux.Server)) (*Watcher, error) {
	w := &Watcher{
		log:      log,
		services: cache.NewSharedIndexInformer(services, &corev1.Service{}, 0, nil),
		routes:   cache.NewSharedIndexInformer(routes, &gatewayv1.TLSRoute{}, 0, nil),
		changed:  make(chan struct{}, 1),
		report:   report,
		synced:   make(chan struct{}),
		warned:   map[string]string{},
	}
	for _, informer := range []cache.SharedIndexInformer{w.services, w.routes} {
		if err := informer.SetTransform(strip); err != nil {
			return nil, err
		}
		if err := informer.SetWatchErrorHandlerWithContext(w.watchFailed); err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.touch() },
			UpdateFunc: func(any, any) { w.touch() },
			DeleteFunc: func(any) { w.touch() },
		}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// strip drops what the tables do not need, to keep thousands of Services small.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		kept := &corev1.Service{ObjectMeta: stripMeta(o.ObjectMeta), Spec: corev1.ServiceSpec{ClusterIP: o.Spec.ClusterIP}}
		if value, ok := o.Labels[vpn.LabelWireGuard]; ok {
			kept.Labels = map[string]string{vpn.LabelWireGuard: value}
			kept.Annotations = map[string]string{vpn.AnnotationPublicKey: o.Annotations[vpn.AnnotationPublicKey]}
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

func (w *Watcher) watchFailed(_ context.Context, reflector *cache.Reflector, err error) {
	w.log.Info("Cannot watch, trying again", "objects", reflector.TypeDescription(), "reason", err.Error())
}

// Synced is closed once the Services are known. TLSRoutes may come later, with their CRD.
func (w *Watcher) Synced() <-chan struct{} { return w.synced }

// RoutesSynced says whether the TLSRoutes are known.
func (w *Watcher) RoutesSynced() bool { return w.routes.HasSynced() }

// Run watches until ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { w.services.RunWithContext(ctx) })
	group.Go(func() { w.routes.RunWithContext(ctx) })

	if !cache.WaitForCacheSync(ctx.Done(), w.services.HasSynced) {
		return nil
	}
	w.touch()
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
	services := listOf[*corev1.Service](w.services)
	byKey := func(key types.NamespacedName) *corev1.Service {
		object, _, _ := w.services.GetStore().GetByKey(key.String())
		service, _ := object.(*corev1.Service)
		return service
	}
	routes := BuildRoutes(listOf[*gatewayv1.TLSRoute](w.routes), byKey)
	servers, failed := BuildServers(services)
	w.warn(failed)
	w.report(routes, servers)
	w.once.Do(func() { close(w.synced) })
}

// warn logs a Service that cannot be used once per reason.
func (w *Watcher) warn(failed map[string]error) {
	warned := map[string]string{}
	for name, err := range failed {
		warned[name] = err.Error()
		if w.warned[name] != err.Error() {
			w.log.Info("WireGuard Service cannot be used", "service", name, "reason", err.Error())
		}
	}
	w.warned = warned
}

func listOf[T any](informer cache.SharedIndexInformer) []T {
	objects := informer.GetStore().List()
	list := make([]T, 0, len(objects))
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			list = append(list, typed)
		}
	}
	return list
}
