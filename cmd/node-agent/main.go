// The node-agent runs on every machine of a shoot and applies its OperatingSystemConfig.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/pkg/nodeagent"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	var configPath string
	command := &cobra.Command{
		Use:   "node-agent",
		Short: "Makes this machine a node of its shoot and keeps it configured",
		Long: `node-agent fetches the machine's OperatingSystemConfig (a Secret in kube-system of the shoot), writes its files,
takes programs such as kubelet out of images, and starts its systemd units. It first uses the bootstrap token that the
machine's user data brought, and kubelet's certificate once the node has joined. It keeps watching for changes.`,
		Version:      version.String(),
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := nodeagent.LoadConfig(configPath)
			if err != nil {
				return err
			}
			agent, err := nodeagent.New(command.Context(), config, klog.Background())
			if err != nil {
				return err
			}
			return agent.Run(command.Context())
		},
	}
	command.Flags().StringVar(&configPath, "config", nodeagent.ConfigPath,
		"configuration file, written by the machine's user data")

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node-agent:", err)
		os.Exit(1)
	}
}
