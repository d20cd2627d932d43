// The garden-apiserver binary serves the garden's own API behind a kube-apiserver.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // Shoots name time zones.

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/trellis-garden/trellis/pkg/apiserver"
	_ "github.com/trellis-garden/trellis/pkg/apiserver/reconnect"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	os.Exit(cli.Run(command(genericapiserver.SetupSignalContext())))
}

// command parses the options.
func command(ctx context.Context) *cobra.Command {
	options := apiserver.NewOptions()
	cmd := &cobra.Command{
		Use:     "garden-apiserver",
		Short:   "Serve the garden's API",
		Version: version.String(),
		Long: `garden-apiserver serves the groups core.gardener.cloud and security.gardener.cloud and stores them in etcd. A
kube-apiserver stands in front of it: it authenticates users, asks its authorizers, and passes requests on (see
APIService). Needed are --etcd-servers (with --etcd-cafile, --etcd-certfile and --etcd-keyfile), --kubeconfig of that
kube-apiserver, --tls-cert-file and --tls-private-key-file, valid for garden-apiserver.garden.svc, and --cluster-identity.
--authentication-kubeconfig and --authorization-kubeconfig default to --kubeconfig.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(*cobra.Command, []string) error { return options.Run(ctx) },
	}
	options.AddFlags(cmd.Flags())
	return cmd
}
