package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/managers"
)

const (
	// inactivity is how long a look at the shoot may take, or fail, before the process counts as dead.
	inactivity = 15 * time.Minute
	component  = "cluster-autoscaler"
)

// Run scales the shoot until ctx is done. seed is the cluster with the shoot's control plane.
func Run(ctx context.Context, log logr.Logger, seed *rest.Config, options Options) error {
	limits, err := options.limits()
	if err != nil {
		return err
	}
	p := &process{
		log: log, seed: seed, options: options, limits: limits, registry: prometheus.NewRegistry(),
		alive: &heartbeat{},
	}
	serve(ctx, log, options.Address, p.registry, p.alive)
	if !options.LeaderElection {
		return p.scale(ctx)
	}
	lock, err := lockOf(seed, options.Namespace)
	if err != nil {
		return err
	}
	return lead(ctx, lock, p.scale)
}

// process is what all of it has in common.
type process struct {
	log      logr.Logger
	seed     *rest.Config
	options  Options
	limits   []nodegroup.Limits
	registry *prometheus.Registry
	alive    *heartbeat
}

// scale scales the shoot until ctx is done.
func (p *process) scale(ctx context.Context) error {
	p.alive.beat()
	config, err := clientcmd.BuildConfigFromFlags("", p.options.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig of the shoot: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	clientset, err := kubernetes.NewForConfig(answers.FromShoot(config))
	if err != nil {
		return err
	}
	machines, err := startMachines(ctx, p.log, p.seed, p.options, p.limits)
	if err != nil {
		return err
	}
	watched := newShoot(clientset)
	if err := watched.start(ctx); err != nil {
		return err
	}
	autoscaler, err := newAutoscaler(p.log, p.options, machines, clientset, recorder(ctx, clientset),
		newMetrics(p.registry))
	if err != nil {
		return err
	}
	autoscaler.look = func() (*Snapshot, error) { return watched.snapshot(time.Now()) }
	autoscaler.takeBack(ctx)
	autoscaler.loop(ctx, p.alive)
	return nil
}

func newAutoscaler(log logr.Logger, options Options, groups Groups, clientset kubernetes.Interface,
	events record.EventRecorder, metrics *metrics) (*Autoscaler, error) {
	drainer := &drainer{
		client: clientset, longestGrace: time.Duration(options.MaxGracefulTerminationSeconds) * time.Second,
		interval: time.Second,
	}
	choose, err := expanderChain(options.Expanders)
	if err != nil {
		return nil, err
	}
	return &Autoscaler{
		options: options, groups: groups, drain: drainer.drain, untaint: drainer.untaint, events: events, log: log,
		now:    time.Now,
		choose: choose, backoff: newBackoff(&options), since: unneededSince{}, metrics: metrics,
		underway: map[string]Removal{},
	}, nil
}

// startMachines watches the machines of the shoot in the seed.
func startMachines(ctx context.Context, log logr.Logger, seed *rest.Config, options Options,
	limits []nodegroup.Limits) (*nodegroup.Machines, error) {
	types := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(types); err != nil {
		return nil, err
	}
	watched, err := cluster.New(seed, func(o *cluster.Options) {
		o.Scheme = types
		o.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{options.Namespace: {}}}
	})
	if err != nil {
		return nil, fmt.Errorf("client of the seed: %w", err)
	}
	go func() {
		if err := watched.Start(ctx); err != nil {
			log.Error(err, "Watching machines of the seed ended")
		}
	}()
	if err := managers.Begin(ctx, "0", func(ctx context.Context) error {
		return readMachines(ctx, watched.GetCache())
	}); err != nil {
		return nil, err
	}
	return &nodegroup.Machines{
		Client: watched.GetClient(), Namespace: options.Namespace, Limits: limits, Defaults: options.Groups,
		Now: time.Now,
	}, nil
}

// readMachines returns when all kinds have been read once.
func readMachines(ctx context.Context, machines cache.Cache) error {
	for _, object := range []client.Object{
		&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.Machine{}, &machinev1alpha1.MachineClass{},
	} {
		if _, err := machines.GetInformer(ctx, object); err != nil {
			return fmt.Errorf("reading machines of the seed: %w", err)
		}
	}
	return nil
}

func recorder(ctx context.Context, clientset kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	return broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: component})
}

// loop looks at the shoot at every interval.
func (a *Autoscaler) loop(ctx context.Context, alive *heartbeat) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if err := a.RunOnce(ctx); err != nil {
			a.log.Error(err, "Looking at the shoot failed")
		} else {
			alive.beat()
		}
	}, a.options.ScanInterval)
}

// heartbeat is when the shoot was last looked at without an error; zero while the process stands by.
type heartbeat struct{ last atomic.Int64 }

func (h *heartbeat) beat() { h.last.Store(time.Now().UnixNano()) }

func (h *heartbeat) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	last := h.last.Load()
	if since := time.Since(time.Unix(0, last)); last != 0 && since > inactivity {
		http.Error(w, fmt.Sprintf("the shoot was last looked at %s ago; see the log", since.Round(time.Second)),
			http.StatusInternalServerError)
	}
}

// serve offers health and metrics until ctx is done.
func serve(ctx context.Context, log logr.Logger, address string, registry *prometheus.Registry, alive http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/healthz", alive)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Error(err, "Serving health and metrics failed", "address", address)
		}
	}()
}
