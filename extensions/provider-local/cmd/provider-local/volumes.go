package main

import (
	"errors"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
)

// volumesCommand provisions volumes where there is no cloud: on the other nodes of a landscape that has several.
func volumesCommand() *cobra.Command {
	options, verbosity := volumes.Options{ChosenOnly: true}, 0
	cmd := &cobra.Command{
		Use:   "volumes",
		Short: "Provision the volumes of a node beside that of the cloud",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.Node == "" {
				return errors.New("--node-name is empty: name the node whose folder --dir is")
			}
			log := command.NewLogger(verbosity).WithName("volumes")
			ctrl.SetLogger(log)
			mgr, err := volumesManager(options, log)
			if err != nil {
				return err
			}
			return mgr.Start(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&options.Dir, "dir", "/var/lib/local-cloud/volumes", "folder of the node with all its volumes")
	f.StringVar(&options.Node, "node-name", "", "name of the node; claims for which it was chosen are provisioned")
	f.IntVarP(&verbosity, "v", "v", 0, "verbosity of the log")
	return cmd
}
