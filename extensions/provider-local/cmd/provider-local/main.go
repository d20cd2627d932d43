// provider-local is everything of the local infrastructure in one program: the cloud itself, the extension's
// controllers and the machine driver.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"context"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:   "provider-local",
		Short: "The local infrastructure of a Trellis landscape",
		Long: `provider-local runs shoots on the landscape's own node.

  cloud               is the infrastructure: networks, DNS records, volumes and bastions of the node
  volumes             provisions the volumes of a node beside that of the cloud
  controllers         is the extension: Infrastructure, ControlPlane, Worker, DNSRecord, BackupBucket, BackupEntry and Bastion of type local
  issuer              is an OIDC issuer with three users
  machine-controller  is the machine driver beside machine-controller-manager in each shoot's control plane`,
		SilenceUsage: true,
	}
	root.AddCommand(cloudCommand(), volumesCommand(), controllersCommand(), machineControllerCommand(),
		issuerCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}
