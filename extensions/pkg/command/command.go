// Package command makes the process of an extension: flags, logging, manager, heartbeat.
package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// EnvGardenKubeconfig names the file with the kubeconfig for the garden, for extensions that asked for access to it.
const EnvGardenKubeconfig = "GARDEN_KUBECONFIG"

// heartbeatPeriod is how often an extension tells gardenlet that it is alive.
const heartbeatPeriod = 30 * time.Second

// Options are the flags that every extension has.
type Options struct {
	// Namespace is where the extension runs. Default: that of the pod.
	Namespace string
	// LeaderElection allows more than one replica. Default off.
	LeaderElection bool
	// MetricsAddress is where metrics are served; "0" turns them off.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served; "0" turns them off.
	HealthAddress string
	// Heartbeat renews a Lease in the extension's namespace.
	Heartbeat bool
	// Verbosity of the log, 0 to 5.
	Verbosity int
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Namespace: os.Getenv("POD_NAMESPACE"), MetricsAddress: "0", HealthAddress: ":8081"}
}

// AddFlags registers the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace,
		"namespace that the extension runs in (default: environment variable POD_NAMESPACE)")
	flags.BoolVar(&o.LeaderElection, "leader-election", o.LeaderElection,
		"elect a leader; needed with more than one replica")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress,
		"address for metrics, e.g. :8080; 0 serves none")
	flags.StringVar(&o.HealthAddress, "health-bind-address", o.HealthAddress,
		"address for /healthz and /readyz; 0 serves none")
	flags.BoolVar(&o.Heartbeat, "heartbeat", o.Heartbeat,
		"renew the Lease "+extensionsv1alpha1.HeartbeatLeaseName+" in the extension's namespace")
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "verbosity of the log")
	AddKubeconfig(flags)
}

// AddKubeconfig adds the flag --kubeconfig of ctrl.GetConfig.
func AddKubeconfig(flags *pflag.FlagSet) { flags.AddGoFlag(flag.CommandLine.Lookup("kubeconfig")) }

// Setup adds controllers to a manager.
type Setup func(ctx context.Context, mgr manager.Manager) error

// Scheme knows the kinds that extensions work with, and those that add adds.
func Scheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	adders := append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	}, add...)
	for _, addTo := range adders {
		if err := addTo(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// Run starts a manager for the seed with the controllers of setup, until the context ends.
func (o *Options) Run(ctx context.Context, name string, scheme *runtime.Scheme, setup Setup) error {
	log := NewLogger(o.Verbosity).WithName(name)
	ctrl.SetLogger(log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return kubeconfig.Explain("the seed", err)
	}
	config.QPS, config.Burst = 100, 200
	mgr, err := ctrl.NewManager(config, managers.Patient(o.managerOptions(name, scheme, log)))
	if err != nil {
		return fmt.Errorf("connecting to the seed: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	if o.Heartbeat {
		if err := mgr.Add(&heartbeat{
			client: mgr.GetClient(), namespace: o.Namespace, holder: name, log: log,
		}); err != nil {
			return err
		}
	}
	if err := setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *Options) managerOptions(name string, scheme *runtime.Scheme, log logr.Logger) manager.Options {
	options := manager.Options{
		Scheme:                  scheme,
		Logger:                  log,
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.HealthAddress,
		LeaderElection:          o.LeaderElection,
		LeaderElectionID:        name,
		LeaderElectionNamespace: o.Namespace,
		// Operations in flight get time to store what they have done.
		GracefulShutdownTimeout: new(25 * time.Second),
	}
	// Secrets and the like are read rarely and few at a time: caching all of the seed's would cost more than it saves.
	options.Client.Cache = &client.CacheOptions{DisableFor: Uncached()}
	return options
}

// Inside are the options of a manager within a process that has health, metrics and leases of its own, or needs none.
func Inside(scheme *runtime.Scheme, log logr.Logger) manager.Options {
	return managers.Patient(manager.Options{
		Scheme:                 scheme,
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
}

// NewLogger returns the log of a process.
func NewLogger(verbosity int) logr.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity)))
}

// New returns a command that runs controllers with the common flags.
func New(use, short string, scheme *runtime.Scheme, setup Setup) *cobra.Command {
	options := NewOptions()
	command := &cobra.Command{
		Use:          use,
		Short:        short,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return options.Run(cmd.Context(), use, scheme, setup)
		},
	}
	options.AddFlags(command.Flags())
	return command
}

// GardenConfig gives access to the garden; nil when this extension was given none.
func GardenConfig() (*rest.Config, error) {
	path := os.Getenv(EnvGardenKubeconfig)
	if path == "" {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the garden's kubeconfig %s (%s): %w", path, EnvGardenKubeconfig, err)
	}
	return config, nil
}

// heartbeat renews the Lease. It is a clock, no controller: there is no object whose changes it follows.
type heartbeat struct {
	client            client.Client
	namespace, holder string
	log               logr.Logger
}

// Start implements manager.Runnable.
func (h *heartbeat) Start(ctx context.Context) error {
	ticker := time.NewTicker(heartbeatPeriod)
	defer ticker.Stop()
	for {
		if err := h.renew(ctx); err != nil {
			h.log.Error(err, "renew the heartbeat")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (h *heartbeat) renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: extensionsv1alpha1.HeartbeatLeaseName},
	}
	_, err := controllerutil.CreateOrPatch(ctx, h.client, lease, func() error {
		now := metav1.NowMicro()
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity:       new(h.holder),
			LeaseDurationSeconds: new(int32(heartbeatPeriod.Seconds())),
			RenewTime:            &now,
		}
		return nil
	})
	return err
}
