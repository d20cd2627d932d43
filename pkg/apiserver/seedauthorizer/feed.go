package seedauthorizer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Storage is where the objects of one kind are listed and watched: a store of this process.
type Storage interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error)
}

// feed brings the edges that the objects of one kind state into the graph, as the store of a reflector. Objects are not
// kept.
type feed struct {
	graph  *Graph
	kind   Kind
	edges  func(obj any) ([]Edge, error)
	synced atomic.Bool
}

var _ toolscache.ReflectorStore = &feed{}

// statedBy adapts the edges of a type.
func statedBy[T any](edges func(T) []Edge) func(any) ([]Edge, error) {
	return func(obj any) ([]Edge, error) {
		typed, ok := obj.(T)
		if !ok {
			var wanted T
			return nil, fmt.Errorf("got a %T, want a %T", obj, wanted)
		}
		return edges(typed), nil
	}
}

// sources are the kinds of garden-apiserver whose objects state edges.
var sources = map[schema.GroupResource]struct {
	kind  Kind
	edges func(any) ([]Edge, error)
}{
	core("shoots"):   {kindShoot, statedBy(shootEdges)},
	core("seeds"):    {kindSeed, statedBy(seedEdges)},
	core("projects"): {kindProject, statedBy(projectEdges)},
	core("namespacedcloudprofiles"): {
		kindNamespacedCloudProfile, statedBy(namespacedCloudProfileEdges),
	},
	core("secretbindings"): {kindSecretBinding, statedBy(secretBindingEdges)},
	core("backupbuckets"):  {kindBackupBucket, statedBy(backupBucketEdges)},
	core("backupentries"):  {kindBackupEntry, statedBy(backupEntryEdges)},
	core("controllerinstallations"): {
		kindControllerInstallation, statedBy(controllerInstallationEdges),
	},
	core("internalsecrets"): {
		kindInternalSecret, statedBy(consentEdges[*gardencorev1beta1.InternalSecret](kindInternalSecret,
			"InternalSecret")),
	},
	security("workloadidentities"): {
		kindWorkloadIdentity, statedBy(consentEdges[*securityv1alpha1.WorkloadIdentity](kindWorkloadIdentity,
			"WorkloadIdentity")),
	},
	security("credentialsbindings"):                 {kindCredentialsBinding, statedBy(credentialsBindingEdges)},
	operationsv1alpha1.Resource("bastions"):         {kindBastion, statedBy(bastionEdges)},
	seedmanagementv1alpha1.Resource("managedseeds"): {kindManagedSeed, statedBy(managedSeedEdges)},
	seedmanagementv1alpha1.Resource("gardenlets"):   {kindGardenlet, statedBy(gardenletEdges)},
}

// Feeds keep a graph up to date.
type Feeds struct {
	graph *Graph
	own   []running
	// others come from the garden's kube-apiserver.
	others []running
}

type running struct {
	feed   *feed
	source toolscache.ListerWatcher
}

// NewFeeds returns feeds from the stores of this process, which must hold every kind that matters, and from the
// garden's kube-apiserver, which holds the certificate signing requests, and the Secrets and ConfigMaps that let seeds
// read them.
func NewFeeds(graph *Graph, storage func(schema.GroupResource) (Storage, bool),
	garden kubernetes.Interface) (*Feeds, error) {
	feeds := &Feeds{graph: graph}
	for resource, source := range sources {
		store, found := storage(resource)
		if !found {
			return nil, fmt.Errorf("%s are not stored here, so it is not known what of them belongs to which seed",
				resource)
		}
		feeds.own = append(feeds.own, running{
			&feed{graph: graph, kind: source.kind, edges: source.edges}, fromStorage(store),
		})
	}
	for kind, source := range map[Kind]running{
		kindCertificateSigningRequest: {&feed{edges: statedBy(certificateSigningRequestEdges)}, requestsOf(garden)},
		kindSecret: {
			&feed{edges: statedBy(consentEdges[*corev1.Secret](kindSecret, "Secret"))}, secretsOf(garden),
		},
		kindConfigMap: {
			&feed{edges: statedBy(consentEdges[*corev1.ConfigMap](kindConfigMap, "ConfigMap"))}, configMapsOf(garden),
		},
	} {
		source.feed.graph, source.feed.kind = graph, kind
		feeds.others = append(feeds.others, source)
	}
	return feeds, nil
}

// Run keeps the graph up to date until the context ends.
func (f *Feeds) Run(ctx context.Context) {
	for _, r := range slices.Concat(f.own, f.others) {
		go toolscache.NewReflectorWithOptions(r.source, nil, r.feed,
			toolscache.ReflectorOptions{
				Name: "seedauthorizer", TypeDescription: fmt.Sprintf("kind %d", r.feed.kind),
			}).RunWithContext(ctx)
	}
	<-ctx.Done()
}

// Synced tells whether the graph holds everything that garden-apiserver stores.
func (f *Feeds) Synced() bool {
	return !slices.ContainsFunc(f.own, func(r running) bool { return !r.feed.synced.Load() })
}

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error {
	object, edges, err := f.stated(obj)
	if err != nil {
		return err
	}
	f.graph.Set(object, edges)
	return nil
}

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.Add(obj) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error {
	object, _, err := f.stated(obj)
	if err != nil {
		return err
	}
	f.graph.Set(object, nil)
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(list []any, _ string) error {
	all := make(map[Vertex][]Edge, len(list))
	for _, obj := range list {
		object, edges, err := f.stated(obj)
		if err != nil {
			return err
		}
		all[object] = edges
	}
	f.graph.Replace(f.kind, all)
	f.synced.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }

func (f *feed) stated(obj any) (Vertex, []Edge, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return Vertex{}, nil, fmt.Errorf("a %T has no name", obj)
	}
	edges, err := f.edges(obj)
	return vertexOf(f.kind, object), edges, err
}

// listed makes a source that is listed first and then watched.
type listed struct{}

// IsWatchListSemanticsUnSupported keeps the reflector from asking for the list as a watch.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

func fromStorage(storage Storage) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			internal, err := internalOptions(options)
			if err != nil {
				return nil, err
			}
			return storage.List(ctx, internal)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			internal, err := internalOptions(options)
			if err != nil {
				return nil, err
			}
			events, err := storage.Watch(ctx, internal)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, unwrapped), nil
		},
	}, listed{})
}

func internalOptions(options metav1.ListOptions) (*metainternalversion.ListOptions, error) {
	internal := &metainternalversion.ListOptions{}
	return internal, metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, internal, nil)
}

// unwrapped takes objects out of what the watch cache shares between watchers.
func unwrapped(event watch.Event) (watch.Event, bool) {
	if shared, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = shared.GetObject()
	}
	return event, true
}

func requestsOf(garden kubernetes.Interface) toolscache.ListerWatcher {
	requests := garden.CertificatesV1().CertificateSigningRequests()
	return fromGarden(requests.List, requests.Watch, "")
}

// secretsOf and configMapsOf are those that let seeds read them; there are few.
func secretsOf(garden kubernetes.Interface) toolscache.ListerWatcher {
	secrets := garden.CoreV1().Secrets(metav1.NamespaceAll)
	return fromGarden(secrets.List, secrets.Watch, gardencorev1beta1.LabelSeedReadableBy)
}

func configMapsOf(garden kubernetes.Interface) toolscache.ListerWatcher {
	configMaps := garden.CoreV1().ConfigMaps(metav1.NamespaceAll)
	return fromGarden(configMaps.List, configMaps.Watch, gardencorev1beta1.LabelSeedReadableBy)
}

// fromGarden lists and watches what a label selector selects.
func fromGarden[T runtime.Object](
	list func(context.Context, metav1.ListOptions) (T, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
	selector string,
) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return follow(ctx, options)
		},
	}
}
