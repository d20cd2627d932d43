// Package machinecontroller makes a machine driver the program that runs beside machine-controller-manager.
package machinecontroller

import (
	"context"
	"fmt"
	"os"

	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/pkg/answers"
)

// Clusters are the two sides of a machine controller.
type Clusters struct {
	// Control has the Machine objects: the seed.
	Control *rest.Config
	// Target has the nodes: the shoot. It is nil where machines are made for no cluster.
	Target *rest.Config
}

// Options describe the program.
type Options struct {
	// Use is the name of the command.
	Use string
	// Driver makes the driver.
	Driver func(clusters Clusters) (driver.Driver, error)
	// Start is called before the driver runs, to start what else the provider wants in this process; it must not block.
	Start func(ctx context.Context, clusters Clusters) error
}

// Command returns the command, with the flags of machine-controller-manager's machine controllers. It never returns unless
// something fails.
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
	machineDriver, err := o.Driver(clusters)
	if err != nil {
		return err
	}
	if o.Start != nil {
		if err := o.Start(ctx, clusters); err != nil {
			return err
		}
	}
	machines, err := versioned.NewForConfig(rest.AddUserAgent(clusters.Control, "machine-pacer"))
	if err != nil {
		return err
	}
	go newPacer(machines, server.Namespace, klog.Background().WithName("pacer")).run(ctx)
	// The machine controller ends with the process only.
	context.AfterFunc(ctx, func() {
		logs.FlushLogs()
		os.Exit(0)
	})
	return app.Run(server, machineDriver)
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
