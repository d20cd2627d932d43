package trellisctl

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// tell prints progress.
func tell(command *cobra.Command) func(string, ...any) {
	return func(format string, arguments ...any) {
		fmt.Fprintf(command.ErrOrStderr(), format+"\n", arguments...)
	}
}

// descriptionFlags describe a member for policies.
func descriptionFlags(command *cobra.Command, d *registration.Description) {
	command.Flags().StringVar(&d.Provider, "provider", "",
		"provider of the cluster's machines, for policies that spread by provider")
	command.Flags().StringVar(&d.Region, "region", "", "region of the cluster, for policies that spread by region")
	command.Flags().StringSliceVar(&d.Zones, "zones", nil,
		"zones of the cluster's machines, for policies that spread by zone")
	command.Flags().StringToStringVar(&d.Labels, "labels", nil,
		"labels of the member, for policies that select clusters (key=value,…)")
}

func (c *cli) joinCommand() *cobra.Command {
	var access fleetAccess
	var kubeconfig, kubeContext string
	options := registration.JoinOptions{}
	var w waiting
	command := &cobra.Command{
		Use:   "join NAME --kubeconfig FILE",
		Short: "Make a cluster a member of a fleet, which talks to it (push)",
		Long: `join makes any Kubernetes cluster a member of a fleet. The shoots of the fleet's project are members by themselves.

With the kubeconfig, which needs the rights of a cluster administrator and is stored nowhere, it creates in the cluster a service
account for the fleet. The fleet gets a token of it, and renews that from half of its life on. Then join waits until the fleet
has reached the cluster: its processes run elsewhere than this command, so the address must be good there too (--endpoint).

A cluster can be a member once, whatever its name: it is known by the UID of its namespace kube-system. To renew credentials or
change the description, join it again under its name. The fleet has to reach the cluster, if need be through a proxy (--proxy-url).`,
		Example: `  trellisctl join edge1 --project demo --shoot fleet --kubeconfig edge1.yaml
  trellisctl join edge2 --fleet-kubeconfig fleet.yaml --context edge2 \
    --provider metal --region eu-north --zones a,b
  trellisctl unjoin edge1 --project demo --shoot fleet`,
		Args: oneMember,
		RunE: func(command *cobra.Command, arguments []string) error {
			if kubeconfig == "" && kubeContext == "" {
				return errors.New("which cluster? Add --kubeconfig FILE, or --context NAME of your own kubeconfig")
			}
			if options.TokenLifetime < 10*time.Minute {
				return fmt.Errorf("--token-lifetime %s: must be at least 10m", options.TokenLifetime)
			}
			config, err := configFrom(kubeconfig, kubeContext, "--kubeconfig")
			if err != nil {
				return err
			}
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			member, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
			if err != nil {
				return fmt.Errorf("connecting to the cluster at %s: %w", config.Host, err)
			}
			options.Name, options.Timeout, options.Tell = arguments[0], w.atMost(), tell(command)
			return registration.Join(command.Context(), fleet.Client, member, config, options)
		},
	}
	access.flags(command)
	descriptionFlags(command, &options.Description)
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that joins")
	flags.StringVar(&kubeContext, "context", "", "context in that kubeconfig (default: its current one)")
	flags.StringVar(&options.Endpoint, "endpoint", "",
		"URL of the cluster's API as the fleet reaches it (default: the one of the kubeconfig)")
	flags.StringVar(&options.ProxyURL, "proxy-url", "", "proxy on the way from the fleet to the cluster")
	flags.DurationVar(&options.TokenLifetime, "token-lifetime", registration.DefaultTokenLifetime,
		"how long the fleet's tokens are valid; a fleet that is stopped for longer than half of that may lose the "+
			"cluster")
	w.flagsFor(command, true, 2*time.Minute, "the fleet has reached the cluster")
	return command
}

func (c *cli) unjoinCommand() *cobra.Command {
	var access fleetAccess
	var w waiting
	command := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Let a member leave a fleet",
		Long: `unjoin takes a member out of a fleet: the fleet removes from it what it applied there (what a policy says to preserve
stays), then its own access, and forgets the credentials.

A member that does not answer is given up after half a minute: what was applied there stays, and so does the access, until its
owner deletes the ClusterRoles trellis-fleet-<id> and trellis-fleet-<id>-impersonator in it.`,
		Example:           "  trellisctl unjoin edge1 --project demo --shoot fleet",
		Args:              oneMember,
		ValidArgsFunction: onlyFirst(c.completeMembers(&access)),
		RunE: func(command *cobra.Command, arguments []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			return registration.Unjoin(command.Context(), fleet.Client, arguments[0], w.atMost(), tell(command))
		},
	}
	access.flags(command)
	w.flagsFor(command, true, 5*time.Minute, "it is done")
	return command
}
