package main

import (
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/machine"
)

func machineControllerCommand() *cobra.Command {
	server := options.NewMCServer()
	cmd := &cobra.Command{
		Use:   "machine-controller",
		Short: "Drive machines for machine-controller-manager",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			logs.InitLogs()
			defer logs.FlushLogs()
			client, err := controlClient(server.ControlKubeconfig)
			if err != nil {
				return err
			}
			return app.Run(server, &machine.Driver{Client: client})
		},
	}
	server.AddFlags(cmd.Flags())
	return cmd
}

// controlClient connects to the cluster with the Machine objects, in which the machines' pods are as well.
func controlClient(kubeconfig string) (kubernetes.Interface, error) {
	if kubeconfig == "inClusterConfig" {
		kubeconfig = ""
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--control-kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	return kubernetes.NewForConfig(config)
}
