// Package machinecontroller makes a machine driver the program that runs beside machine-controller-manager. The loops
// of the driver are those of machine-controller-manager's own library; all others in the process are controllers of
// controller-runtime.
package machinecontroller

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Clusters are the two sides of a machine controller.
type Clusters struct {
	// Control has the Machine objects: the seed.
	Control *rest.Config
	// Target has the nodes: the shoot. It is nil where machines are made for no cluster.
	Target *rest.Config
}

// answer asks what the machine controller asks before it begins, which ends it where the seed is not healthy for ten
// seconds, or the shoot does not answer once.
func (c Clusters) answer(ctx context.Context) error {
	if err := managers.Healthy(c.Control)(ctx); err != nil || c.Target == nil {
		return err
	}
	return managers.Groups(c.Target)(ctx)
}

// Options describe the program.
type Options struct {
	// Use is the name of the command.
	Use string
	// Driver makes the driver.
	Driver func(clusters Clusters) (driver.Driver, error)
	// Shoot adds what else the provider runs in this process to a manager for Target, which knows the kinds of
	// Kubernetes. nil when that is nothing. It is not called without a Target.
	Shoot func(mgr manager.Manager) error
}

// Command returns the command, with the flags of machine-controller-manager's machine controllers. It ends with its
// context, or when one of its parts fails.
func Command(o Options) *cobra.Command {
	server := options.NewMCServer()
	cmd := &cobra.Command{
		Use:   o.Use,
		Short: "Drive machines for machine-controller-manager",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			defer logs.FlushLogs()
			return run(cmd.Context(), o, server)
		},
	}
	server.AddFlags(cmd.Flags())
	return cmd
}

func run(ctx context.Context, o Options, server *options.MCServer) error {
	clusters, err := connect(server)
	if err != nil {
		return err
	}
	logger := klog.Background()
	ctrl.SetLogger(logger)
	health := net.JoinHostPort(server.Address, strconv.Itoa(int(server.Port)))
	if err := managers.Begin(ctx, health, clusters.answer); err != nil {
		return err
	}
	machineDriver, err := o.Driver(clusters)
	if err != nil {
		return err
	}
	scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	companions, err := seedManager(clusters.Control, server, scheme, logger)
	if err != nil {
		return err
	}
	if o.Shoot != nil && clusters.Target != nil {
		shoot, err := shootManager(o, clusters.Target, scheme, logger)
		if err != nil {
			return err
		}
		if err := addElected(companions, shoot); err != nil {
			return err
		}
	}
	// Whichever part ends first ends the program; the machine controller cannot be told to.
	ended := make(chan error, 2)
	go func() { ended <- companions.Start(ctx) }()
	go func() { ended <- app.Run(server, machineDriver) }()
	return <-ended
}

// seedManager paces deletions of the machines in a namespace. Where the machine controller is one of several replicas
// that elect a leader, so is this, by a Lease of its own: that of the machine controller is within its library.
func seedManager(
	config *rest.Config, server *options.MCServer, scheme *runtime.Scheme, logger logr.Logger,
) (manager.Manager, error) {
	options := command.Inside(scheme, logger)
	options.Cache.DefaultNamespaces = map[string]cache.Config{server.Namespace: {}}
	options.LeaderElection = server.LeaderElection.LeaderElect
	options.LeaderElectionID, options.LeaderElectionNamespace = worker.CompanionsLease, server.Namespace
	mgr, err := manager.New(rest.AddUserAgent(config, "machine-pacer"), options)
	if err != nil {
		return nil, fmt.Errorf("connecting to the seed: %w", err)
	}
	return mgr, addPacer(mgr)
}

// addElected has a manager run within another one, while that leads. A manager that is added as it is would be taken
// for a cache, and run in each replica.
func addElected(mgr, within manager.Manager) error {
	return mgr.Add(manager.RunnableFunc(within.Start))
}

// shootManager runs what the provider adds.
func shootManager(o Options, config *rest.Config, scheme *runtime.Scheme, logger logr.Logger) (manager.Manager, error) {
	mgr, err := manager.New(config, command.Inside(scheme, logger))
	if err != nil {
		return nil, fmt.Errorf("connecting to the shoot: %w", err)
	}
	return mgr, o.Shoot(mgr)
}

// connect reads --control-kubeconfig and --target-kubeconfig as the machine controller does.
func connect(server *options.MCServer) (Clusters, error) {
	var clusters Clusters
	var err error
	if server.TargetKubeconfig != constants.TargetKubeconfigDisabledValue {
		if clusters.Target, err = clientcmd.BuildConfigFromFlags("", server.TargetKubeconfig); err != nil {
			return clusters, fmt.Errorf("--target-kubeconfig: %w", err)
		}
		clusters.Target = answers.FromShoot(clusters.Target)
	}
	switch server.ControlKubeconfig {
	case "":
		clusters.Control = rest.CopyConfig(clusters.Target)
	case "inClusterConfig":
		clusters.Control, err = clientcmd.BuildConfigFromFlags("", "")
	default:
		clusters.Control, err = clientcmd.BuildConfigFromFlags("", server.ControlKubeconfig)
	}
	if err != nil {
		return clusters, fmt.Errorf("--control-kubeconfig: %w", err)
	}
	clusters.Control.QPS, clusters.Control.Burst = server.KubeAPIQPS, int(server.KubeAPIBurst)
	return clusters, nil
}
