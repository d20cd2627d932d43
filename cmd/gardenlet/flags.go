package main

import (
	"flag"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// addGoFlags adds --v, --vmodule and --kubeconfig, which come as flags of the standard library.
func addGoFlags(cmd *cobra.Command, logging *textlogger.Config) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(set)
	config.RegisterFlags(set)
	cmd.Flags().AddGoFlagSet(set)
}
