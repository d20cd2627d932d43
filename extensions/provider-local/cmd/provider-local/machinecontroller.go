package main

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/extensions/pkg/machinecontroller"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/loadbalancers"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/machine"
)

func machineControllerCommand() *cobra.Command {
	volumesDir := ""
	cmd := machinecontroller.Command(machinecontroller.Options{
		Use: "machine-controller",
		// The machines' pods are in the cluster with the Machine objects.
		Driver: func(clusters machinecontroller.Clusters) (driver.Driver, error) {
			client, err := kubernetes.NewForConfig(clusters.Control)
			return &machine.Driver{Client: client}, err
		},
		Start: func(ctx context.Context, clusters machinecontroller.Clusters) error {
			if err := startVolumes(ctx, volumesDir, clusters); err != nil {
				return err
			}
			return startLoadBalancers(ctx, clusters)
		},
	})
	cmd.Flags().StringVar(&volumesDir, "volumes-dir", "", "folder that all machines share; if set, volumes for the pods of the target cluster are provisioned in it")
	return cmd
}

// startVolumes provisions volumes in the target cluster for as long as the process runs.
func startVolumes(ctx context.Context, dir string, clusters machinecontroller.Clusters) error {
	if dir == "" || clusters.Target == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(clusters.Target)
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

// startLoadBalancers gives Services of the target cluster their addresses for as long as the process runs.
func startLoadBalancers(ctx context.Context, clusters machinecontroller.Clusters) error {
	if clusters.Target == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(clusters.Target)
	if err != nil {
		return err
	}
	log := klog.Background().WithName("loadbalancers")
	go func() {
		if err := loadbalancers.New(client, log).Run(ctx); err != nil {
			log.Error(err, "load balancers get no addresses any more")
		}
	}()
	return nil
}
