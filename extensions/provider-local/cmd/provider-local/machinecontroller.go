package main

import (
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

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
		Shoot: func(mgr manager.Manager) error {
			if volumesDir != "" {
				if err := volumes.Add(mgr, volumes.Options{Dir: volumesDir}); err != nil {
					return err
				}
			}
			return loadbalancers.Add(mgr)
		},
	})
	cmd.Flags().StringVar(&volumesDir, "volumes-dir", "",
		"folder that all machines share; if set, volumes for the pods of the target cluster are provisioned in it")
	return cmd
}
