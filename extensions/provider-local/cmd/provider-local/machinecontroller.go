package main

import (
	"context"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/machine"
)

func machineControllerCommand() *cobra.Command {
	server := options.NewMCServer()
	volumesDir := ""
	cmd := &cobra.Command{
		Use:   "machine-controller",
		Short: "Drive machines for machine-controller-manager",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			defer logs.FlushLogs()
			client, err := controlClient(server.ControlKubeconfig)
			if err != nil {
				return err
			}
			if err := startVolumes(cmd.Context(), volumesDir, server.TargetKubeconfig); err != nil {
				return err
			}
			return app.Run(server, &machine.Driver{Client: client})
		},
	}
	server.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&volumesDir, "volumes-dir", "", "folder that all machines share; if set, volumes for the pods of the target cluster are provisioned in it")
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

// startVolumes provisions volumes in the target cluster for as long as the process runs.
func startVolumes(ctx context.Context, dir, kubeconfig string) error {
	if dir == "" {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("--target-kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	log := klog.Background().WithName("volumes")
	go func() {
		if err := volumes.New(client, dir, log).Run(ctx); err != nil {
			log.Error(err, "volumes are not provisioned any more")
		}
	}()
	return nil
}
