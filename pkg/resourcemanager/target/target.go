// Package target holds the clients of the clusters that resource-manager works on: the seed itself and the shoots whose
// control planes run in it. A shoot is reached through the Secret `gardener-internal` of its namespace; its client is
// built once, shared by all controllers, and forgotten when that Secret changes or goes away.
package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-garden/trellis/pkg/answers"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

const (
	// SecretName is the Secret in a shoot's namespace with the kubeconfig (key SecretKey) of its API server.
	SecretName = gardencorev1beta1.SecretNameGardenerInternal
	// SecretKey is the key of the kubeconfig in that Secret.
	SecretKey = "kubeconfig"

	// requestTimeout bounds every single request to a target; watches are not bound by it.
	requestTimeout = 15 * time.Second
	// probeTimeout bounds the question whether an API server answers.
	probeTimeout = 3 * time.Second
	// readyFor is how long a positive answer is believed, notReadyFor a negative one.
	readyFor    = 20 * time.Second
	notReadyFor = 200 * time.Millisecond
	// doubtAfter is how long a target may be away before its Secret is read again.
	doubtAfter = 30 * time.Second
	// asleepFor is when to come back to a hibernated shoot. Its waking up changes the Secret, and that is watched.
	asleepFor = 10 * time.Minute
)

// ErrNoTarget says that a namespace has no Secret that leads to a shoot: the shoot is gone or not there yet.
var ErrNoTarget = errors.New("namespace has no Secret " + SecretName)

// ErrNotReady says that a target's API server does not answer at the moment.
var ErrNotReady = errors.New("API server of the target does not answer yet")

// Target is one cluster. Its clients read from the API server, never from a cache.
type Target struct {
	// Client speaks all kinds through a lazy REST mapper.
	Client client.Client
	// Kubernetes is the typed client for subresources and watches.
	Kubernetes kubernetes.Interface

	// version is the resource version of the Secret that the target was built from.
	version string
	// asleep says that the shoot is hibernated: there is nothing to ask.
	asleep bool
	// ctx ends when the target is forgotten.
	ctx    context.Context
	forget context.CancelFunc
	// transport is closed with the target.
	transport http.RoundTripper

	probe     func(ctx context.Context) error
	mu        sync.Mutex
	checked   time.Time
	lastError error
	downSince time.Time
	doubted   time.Time
}

// Context ends when the target is forgotten.
func (t *Target) Context() context.Context { return t.ctx }

// Ready returns nil when the API server answers /readyz, else an error that wraps ErrNotReady. Answers are shared: many
// callers cause at most one request in a short time.
func (t *Target) Ready(ctx context.Context) error {
	if t.asleep {
		return fmt.Errorf("%w: the shoot is hibernated", ErrNotReady)
	}
	if t.probe == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	believe := readyFor
	if t.lastError != nil {
		believe = notReadyFor
	}
	if !t.checked.IsZero() && time.Since(t.checked) < believe {
		return t.lastError
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := t.probe(ctx)
	t.record(err, time.Now())
	return t.lastError
}

// record remembers the answer of a probe.
func (t *Target) record(err error, now time.Time) {
	t.checked = now
	if err == nil {
		t.lastError, t.downSince = nil, time.Time{}
		return
	}
	t.lastError = fmt.Errorf("%w: %w", ErrNotReady, err)
	if t.downSince.IsZero() {
		t.downSince = now
	}
	utilnet.CloseIdleConnectionsFor(t.transport)
}

// doubtful says, at most once in doubtAfter, that the API server has been away for so long that the Secret is worth a
// look: the event of its deletion may have been missed.
func (t *Target) doubtful(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.downSince.IsZero() || now.Sub(t.downSince) < doubtAfter || now.Sub(t.doubted) < doubtAfter {
		return false
	}
	t.doubted = now
	return true
}

// RetryAfter says when to ask again after Ready failed: often at first, when the API server is probably starting,
// rarely when it has been away for long.
func (t *Target) RetryAfter() time.Duration {
	if t.asleep {
		return asleepFor
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch down := time.Since(t.downSince); {
	case down < time.Minute:
		return notReadyFor
	case down < 10*time.Minute:
		return 2 * time.Second
	default:
		return 10 * time.Second
	}
}

// Suspect makes the next call of Ready ask the API server again; call it after a request failed on the connection.
func (t *Target) Suspect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked = time.Time{}
}

// close ends everything that runs for the target.
func (t *Target) close() {
	t.forget()
	utilnet.CloseIdleConnectionsFor(t.transport)
}

// Registry hands out targets.
type Registry struct {
	seed   *Target
	reader client.Reader
	// seedAs returns a client of the seed for somebody else.
	seedAs func(transport.ImpersonationConfig) (client.Client, error)

	mu      sync.Mutex
	targets map[string]*Target
}

// NewRegistry returns a registry whose seed target uses config, and which reads the shoots' Secrets with reader (which
// should not be a cache of Secrets).
func NewRegistry(config *rest.Config, reader client.Reader) (*Registry, error) {
	seed, err := New(config)
	if err != nil {
		return nil, fmt.Errorf("client of the seed: %w", err)
	}
	seed.probe = nil
	return &Registry{seed: seed, reader: reader, seedAs: seed.impersonate(config), targets: map[string]*Target{}}, nil
}

// impersonate returns what makes clients that act for others, through the connections and the knowledge of kinds that t
// has.
func (t *Target) impersonate(config *rest.Config) func(transport.ImpersonationConfig) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return func(who transport.ImpersonationConfig) (client.Client, error) {
		return client.New(config, client.Options{
			HTTPClient: &http.Client{Transport: transport.NewImpersonatingRoundTripper(who, t.transport)},
			Scheme:     t.Client.Scheme(), Mapper: t.Client.RESTMapper(),
		})
	}
}

// Seed returns the seed with all rights.
func (r *Registry) Seed() *Target { return r.seed }

// SeedAccount is the service account of a namespace whose rights its ManagedResources of class seed have. It need not
// exist.
const SeedAccount = "managed-resources"

// SeedFor returns the seed with the rights of the SeedAccount of a namespace.
func (r *Registry) SeedFor(namespace string) (*Target, error) {
	const group = "system:serviceaccounts"
	c, err := r.seedAs(transport.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + SeedAccount,
		Groups:   []string{group, group + ":" + namespace, "system:authenticated"},
	})
	if err != nil {
		return nil, fmt.Errorf("client of the seed for namespace %s: %w", namespace, err)
	}
	return &Target{Client: c, ctx: r.seed.ctx, forget: func() {}, transport: r.seed.transport}, nil
}

// Shoot returns the target of the shoot whose control plane runs in the namespace; ErrNoTarget when there is none.
func (r *Registry) Shoot(ctx context.Context, namespace string) (*Target, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cached, ok := r.targets[namespace]
	if ok && !cached.doubtful(time.Now()) {
		return cached, nil
	}

	secret := &corev1.Secret{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		r.drop(namespace)
		return nil, ErrNoTarget
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, SecretName, err)
	}
	if ok && cached.version == secret.ResourceVersion {
		return cached, nil
	}
	r.drop(namespace)

	config, err := kubeconfig.Contained(secret.Data[SecretKey])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig in key %q of Secret %s/%s: %w", SecretKey, namespace, SecretName, err)
	}
	t, err := New(answers.FromShoot(config))
	if err != nil {
		return nil, fmt.Errorf("client from Secret %s/%s: %w", namespace, SecretName, err)
	}
	t.version = secret.ResourceVersion
	t.asleep = secret.Annotations[resourcesv1alpha1.Asleep] == "true"
	r.targets[namespace] = t
	return t, nil
}

// Refresh forgets the target of a namespace unless it was built from the given version of the Secret.
func (r *Registry) Refresh(namespace, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.targets[namespace]; ok && t.version != resourceVersion {
		r.drop(namespace)
	}
}

// Forget drops the target of a namespace and stops what depends on it; the next Shoot call builds it anew.
func (r *Registry) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(namespace)
}

// drop is Forget with the lock held.
func (r *Registry) drop(namespace string) {
	if t, ok := r.targets[namespace]; ok {
		t.close()
		delete(r.targets, namespace)
	}
}

// New builds the clients of one cluster. They share a transport of their own (client-go's would live as long as the
// process) and are not throttled: the server's priority and fairness decides.
func New(config *rest.Config) (*Target, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Timeout = 0

	transport, err := transportFor(config)
	if err != nil {
		return nil, err
	}
	httpClient := &http.Client{Transport: transport, Timeout: 0}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	return &Target{
		Client:     c,
		Kubernetes: clientset,
		ctx:        ctx,
		forget:     cancel,
		transport:  transport,
		probe: func(ctx context.Context) error {
			_, err := clientset.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err
		},
	}, nil
}

// transportFor returns a transport that speaks HTTP/2, is authenticated as config says, and gives up on a request
// without an answer after requestTimeout.
func transportFor(config *rest.Config) (http.RoundTripper, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: requestTimeout,
		MaxIdleConnsPerHost:   2,
		IdleConnTimeout:       90 * time.Second,
	})
	return rest.HTTPWrappersForConfig(config, base)
}

// NewStaticRegistry returns a registry whose seed target is the given client, whoever it is for, and which reads the
// shoots' Secrets with it; for tests.
func NewStaticRegistry(seed client.Client) *Registry {
	ctx, cancel := context.WithCancel(context.Background())
	return &Registry{
		seed:    &Target{Client: seed, ctx: ctx, forget: cancel, transport: http.DefaultTransport},
		reader:  seed,
		seedAs:  func(transport.ImpersonationConfig) (client.Client, error) { return seed, nil },
		targets: map[string]*Target{},
	}
}
