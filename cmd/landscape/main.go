// Command landscape runs Trellis' local landscape: `make up`, `make status` and `make down` are its sub-commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/landscape"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	// The command of `exec` has said itself what went wrong.
	if exit, ok := err.(*exec.ExitError); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nerror:", err)
		os.Exit(1)
	}
}

// flags are common to the commands for people.
type flags struct{ name, root string }

func (f *flags) landscape() (*landscape.Landscape, error) {
	root, err := landscape.FindRoot(f.root)
	if err != nil {
		return nil, err
	}
	return landscape.New(f.name, root)
}

func command() *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:   "landscape",
		Short: "Run a whole Trellis installation on this machine",
		Long: `landscape runs a whole Trellis installation on this machine: a node in a container of its own, a Kubernetes
cluster on it, and in that a garden, a seed, two shoots with a worker each and a fleet. With --nodes 3, the cluster has
two nodes more.

The host is left as it is: the node has its own network (with no link to the host), mounts, processes and
cgroups. All state lies in one folder, .landscape in the repository.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&f.name, "name", landscape.DefaultName,
		"name of the landscape; several of different names run side by side")
	root.PersistentFlags().StringVar(&f.root, "root", "",
		"clone of Trellis to build from (default: the one that holds the working directory)")
	root.AddCommand(upCommand(f), downCommand(f), statusCommand(f), buildCommand(f), browserCommand(f))
	root.AddCommand(pagesCommand(f), execCommand(f), rotateCommand(f))
	root.AddCommand(nodeCommand(), initCommand(), forwardCommand(), registryCommand())
	return root
}

func upCommand(f *flags) *cobra.Command {
	options := landscape.UpOptions{}
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring the landscape up, or go on where an earlier run stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.Up(cmd.Context(), options, landscape.NewProgress(os.Stdout))
		},
	}
	command.Flags().StringSliceVar(&options.Phases, "phase", nil,
		"run only these phases: "+strings.Join(landscape.PhaseNames(), ", "))
	command.Flags().Func("nodes",
		"`number` of nodes of the runtime cluster, each a zone of the seed (default: as before, and one at first)",
		func(text string) (err error) { options.Nodes, err = landscape.ParseNodes(text); return err })
	command.Flags().BoolVar(&options.NoBuild, "no-build", false, "take programs and images as they were built before")
	command.Flags().StringSliceVar(&options.KubernetesVersions, "kubernetes-version", nil,
		"build these versions of Kubernetes too, such as 1.35.4")
	return command
}

func downCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the landscape and remove all of it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.Down(landscape.NewProgress(os.Stdout))
		},
	}
}

func statusCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the health of the landscape's parts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.Status(cmd.Context(), os.Stdout)
		},
	}
}

func buildCommand(f *flags) *cobra.Command {
	options := landscape.UpOptions{Phases: []string{"build"}}
	command := &cobra.Command{
		Use:   "images",
		Short: "Build programs and images without starting anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.Build(cmd.Context(), options, landscape.NewProgress(os.Stdout))
		},
	}
	command.Flags().StringSliceVar(&options.KubernetesVersions, "kubernetes-version", nil,
		"build these versions of Kubernetes too, such as 1.35.4")
	return command
}

func browserCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "browser",
		Short: "Get a browser for the end-to-end tests, into the cache folder",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.BuildBrowser(cmd.Context(), landscape.NewProgress(os.Stdout))
		},
	}
}

func pagesCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "pages",
		Short: "Check the pages of the dashboard, and build them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.BuildPages(cmd.Context(), landscape.NewProgress(os.Stdout))
		},
	}
}

func execCommand(f *flags) *cobra.Command {
	name := ""
	command := &cobra.Command{
		Use:   "exec [--node NAME] -- COMMAND [ARGUMENT...]",
		Short: "Run a command inside a node of the landscape, such as `journalctl -u kubelet` or a shell",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			inside, err := l.Exec(cmd.Context(), name, args...)
			if err != nil {
				return err
			}
			inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
			return inside.Run()
		},
	}
	command.Flags().StringVar(&name, "node", "",
		"name of the node in the runtime cluster (default: the first, local-node, which alone has access for kubectl)")
	return command
}

func rotateCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-encryption-keys",
		Short: "Give the garden's API servers new keys for encryption at rest, or finish a rotation that was stopped",
		Long: `rotate-encryption-keys gives kube-apiserver and garden-apiserver of the garden new keys for what they encrypt in etcd:
first all servers learn the new keys, then they write with them and every encrypted object is written anew, then the old
keys are forgotten and deleted. The API stays available. Stopped at any point, it goes on from there when called again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.landscape()
			if err != nil {
				return err
			}
			return l.RotateEncryptionKeys(cmd.Context(), landscape.NewProgress(os.Stdout))
		},
	}
}

func nodeCommand() *cobra.Command {
	var spec string
	command := &cobra.Command{
		Use: node.SuperviseCommand, Short: "Supervise a node (started by up)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return node.Supervise(cmd.Context(), spec) },
	}
	command.Flags().StringVar(&spec, "spec", "", "file with the node's spec")
	return command
}

func initCommand() *cobra.Command {
	var spec string
	command := &cobra.Command{
		Use: node.InitCommand, Short: "Be the first process of a node (started by the supervisor)", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return node.Init(spec) },
	}
	command.Flags().StringVar(&spec, "spec", "", "file with the node's spec")
	return command
}

func forwardCommand() *cobra.Command {
	return &cobra.Command{
		Use: node.ForwardCommand + " TARGET...", Short: "Serve inherited listeners (started by the supervisor)",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, targets []string) error { return node.ServeForwards(cmd.Context(), targets) },
	}
}

func registryCommand() *cobra.Command {
	var store, address string
	command := &cobra.Command{
		Use: "registry", Short: "Serve the images of a store (started by the supervisor)", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("registry: %w", err)
			}
			server := &http.Server{Handler: images.Handler(images.Store{Dir: store})}
			context.AfterFunc(cmd.Context(), func() { server.Close() })
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("registry: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&store, "store", "", "folder of the store")
	command.Flags().StringVar(&address, "listen", "", "address and port")
	return command
}
