// Package gardenlet is the agent of a seed, as the kubelet is of a node: it registers the seed with the garden,
// installs extensions in it, and reconciles the shoots whose control planes it hosts. All connections go out from the
// seed.
package gardenlet

import (
	"context"
	"fmt"
	"os"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	_ "github.com/trellis-garden/trellis/pkg/apis" // makes clients of the garden speak protobuf
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bootstrap"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/seed"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// leaderElectionID is the name of the Lease, in the seed, of the pod that works.
const leaderElectionID = "gardenlet-leader"

// Options of the process.
type Options struct {
	// Config is the configuration file.
	Config *config.Configuration
	// Seed is the access to the seed.
	Seed *rest.Config
	// HealthAddress serves /healthz and /readyz, MetricsAddress /metrics; "0" turns either off.
	HealthAddress, MetricsAddress string
	// LeaderElection lets one of several pods work while the others stand by.
	LeaderElection bool
	// ShootConfig returns administrative access to the shoot whose control plane lies in a namespace of the seed, where
	// a gardenlet is to be installed; default: over the network of the seed.
	ShootConfig func(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error)
	// AskEtcd asks the etcd-steward in a pod for its status; default: over the network of the seed.
	AskEtcd etcdcomponent.Ask
	// SkipNameValidation lets several run in one process; for tests.
	SkipNameValidation bool
}

// agent is what the controllers share.
type agent struct {
	opts   Options
	config *config.Configuration
	// seed reads from and writes to the seed's API server.
	seed client.WithWatch
	// garden is the access to the garden, reader a client of it without a cache.
	garden *rest.Config
	reader client.Client
	images imagevector.Vector
	helm   *helm.Client

	identity       gardencorev1beta1.Gardener
	gardenIdentity string
}

// Run starts everything and blocks until ctx ends, or the process has to start again with a new certificate (then the
// error is bootstrap.ErrRenewed).
func Run(ctx context.Context, opts Options) error {
	a, own, err := begin(ctx, opts)
	if err != nil {
		return err
	}
	mgr, err := a.newManager()
	if err != nil {
		return err
	}
	if err := a.addControllers(mgr, own); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// begin connects to the seed and the garden and registers the seed, however long these do not answer.
func begin(ctx context.Context, opts Options) (a *agent, own *ownSeed, err error) {
	err = managers.Begin(ctx, opts.HealthAddress, func(ctx context.Context) (err error) {
		if a, err = newAgent(ctx, opts); err == nil {
			own, err = a.register(ctx)
		}
		return err
	})
	return a, own, err
}

// newAgent connects to the seed, gets access to the garden and connects to it.
func newAgent(ctx context.Context, opts Options) (*agent, error) {
	a := &agent{opts: opts, config: opts.Config}
	if a.opts.ShootConfig == nil {
		a.opts.ShootConfig = access.AdminConfig
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	seedConfig := unthrottled(opts.Seed)
	if a.seed, err = client.NewWithWatch(seedConfig, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to the seed: %w", err)
	}
	if a.helm, err = helm.NewClient(seedConfig); err != nil {
		return nil, err
	}
	if a.images, err = imagevector.Load(); err != nil {
		return nil, err
	}
	garden, err := bootstrap.GardenConfig(ctx, a.seed, a.config.GardenClientConnection, a.config.SeedConfig.Name)
	if err != nil {
		return nil, err
	}
	a.garden = unthrottled(garden)
	if a.reader, err = client.New(a.garden, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to the garden at %s: %w", a.garden.Host, err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	a.identity = seed.NewIdentity(string(uuid.NewUUID()), hostname)
	a.gardenIdentity, err = gardenIdentity(ctx, a.reader)
	return a, err
}

// newScheme knows every kind that gardenlet works with, in the garden and in the seed.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme, gardencorev1beta1.AddToScheme,
		securityv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme,
		resourcesv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, gatewayv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// unthrottled leaves the limits to the server's priority and fairness.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// gardenIdentity reads the identity of the garden; an unnamed garden is called "garden".
func gardenIdentity(ctx context.Context, garden client.Client) (string, error) {
	configMap := &corev1.ConfigMap{}
	err := garden.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: gardencorev1beta1.ClusterIdentity},
		configMap)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		ctrl.Log.Info("The garden has no identity that gardenlet may read; calling it garden", "reason", err.Error())
		return "garden", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the identity of the garden: %w", err)
	}
	return configMap.Data[gardencorev1beta1.ClusterIdentity], nil
}

// newManager returns a manager whose cluster is the garden. Only what belongs to this seed is watched and cached;
// everything else is read from the API server when it is needed.
func (a *agent) newManager() (manager.Manager, error) {
	own := a.config.SeedConfig.Name
	mgr, err := manager.New(a.garden, managers.Patient(manager.Options{
		Scheme:                 a.reader.Scheme(),
		Metrics:                metricsserver.Options{BindAddress: a.opts.MetricsAddress},
		HealthProbeBindAddress: a.opts.HealthAddress,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&gardencorev1beta1.Shoot{}: {Field: fields.OneTermEqualSelector("spec.seedName", own)},
				&gardencorev1beta1.ControllerInstallation{}: {
					Field: fields.OneTermEqualSelector("spec.seedRef.name", own),
				},
				&operationsv1alpha1.Bastion{}:     {Field: fields.OneTermEqualSelector("spec.seedName", own)},
				&gardencorev1beta1.BackupBucket{}: {Field: fields.OneTermEqualSelector("spec.seedName", own)},
				&gardencorev1beta1.BackupEntry{}:  {Field: fields.OneTermEqualSelector("spec.seedName", own)},
				&gardencorev1beta1.Seed{}:         {Field: fields.OneTermEqualSelector("metadata.name", own)},
				&seedmanagementv1alpha1.Gardenlet{}: {
					Namespaces: map[string]cache.Config{
						gardencorev1beta1.GardenNamespace: {
							FieldSelector: fields.OneTermEqualSelector("metadata.name", own),
						},
					},
				},
			},
		},
		Controller:              ctrlconfig.Controller{SkipNameValidation: &a.opts.SkipNameValidation},
		LeaderElection:          a.opts.LeaderElection,
		LeaderElectionConfig:    unthrottled(a.opts.Seed),
		LeaderElectionID:        leaderElectionID,
		LeaderElectionNamespace: gardencorev1beta1.GardenNamespace,
		// Flows that were cut off go on in the next process; there is nothing to wait for.
		GracefulShutdownTimeout: durationPointer(5 * time.Second),
	}))
	if err != nil {
		return nil, fmt.Errorf("connecting to the garden at %s: %w", a.garden.Host, err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}

func durationPointer(d time.Duration) *time.Duration { return &d }
