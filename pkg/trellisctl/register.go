package trellisctl

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/version"
)

func (c *cli) registerCommand() *cobra.Command {
	var access fleetAccess
	var kubeconfig, kubeContext string
	options := registration.RegisterOptions{}
	agent := registration.AgentOptions{}
	command := &cobra.Command{
		Use:   "register NAME",
		Short: "Invite a cluster to a fleet by an agent in it, which talks to the fleet (pull)",
		Long: `register is for clusters that the fleet cannot reach. It makes a member that waits for its agent, and prints the manifest of the
agent, or applies it with --kubeconfig. Both sides have a say: the owner of the cluster accepts the fleet by applying the manifest, which
pins the fleet's certificate authority and holds all that the fleet may do there (--allow-namespaces, --allow-kinds); the fleet accepts
the agent with "trellisctl accept", by the fingerprint of its key.

The manifest holds a token that is good for asking for a certificate and nothing else, for as long as --token-lifetime says. Registering
the same name again gives another.

With bounds, the cluster's API is not served in the fleet. --serve-api has it served all the same: the agent may then ask for it as any
user and group in the whole cluster, so who takes the agent over is bound by nothing.`,
		Example: `  trellisctl register edge1 --project demo --shoot fleet > agent.yaml
  trellisctl register edge2 --fleet-kubeconfig fleet.yaml \
    --kubeconfig edge2.yaml --allow-namespaces shop,blog
  trellisctl accept edge2 --fleet-kubeconfig fleet.yaml`,
		Args: oneMember,
		RunE: func(command *cobra.Command, arguments []string) error {
			if options.TokenLifetime < 10*time.Minute {
				return fmt.Errorf("--token-lifetime %s: must be at least 10m", options.TokenLifetime)
			}
			if err := agent.Validate(); err != nil {
				return err
			}
			if !command.Flags().Changed("serve-api") {
				agent.ServeAPI = !agent.Bounded()
			}
			image, err := agentImage(agent.Image)
			if err != nil {
				return err
			}
			agent.Image = image
			var member *rest.Config
			if kubeconfig != "" || kubeContext != "" {
				if member, err = memberToRegister(kubeconfig, kubeContext, &agent); err != nil {
					return err
				}
			}
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			options.Name = arguments[0]
			if options.Endpoint == "" {
				options.Endpoint = fleet.Address
			}
			invitation, err := registration.Register(command.Context(), fleet.Client, fleet.Config, options)
			if err != nil {
				return err
			}
			objects := invitation.Manifest(agent)
			if member == nil {
				err = printManifest(command, objects)
			} else {
				err = applyManifest(command, member, objects)
			}
			if err != nil {
				return err
			}
			tellNext(command, invitation, fleet.Config.Insecure)
			return nil
		},
	}
	access.flags(command)
	descriptionFlags(command, &options.Description)
	agentFlags(command, &agent)
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster, to apply the manifest at once instead of printing it")
	flags.StringVar(&kubeContext, "context", "", "context in that kubeconfig (default: its current one)")
	flags.StringVar(&options.Endpoint, "fleet-endpoint", "",
		"URL of the fleet's API as the agent reaches it (default: that of the shoot, or of --fleet-kubeconfig)")
	flags.DurationVar(&options.TokenLifetime, "token-lifetime", time.Hour,
		"how long the agent may ask to be accepted with this manifest")
	return command
}

func agentFlags(command *cobra.Command, agent *registration.AgentOptions) {
	flags := command.Flags()
	flags.StringVar(&agent.Image, "image", "",
		"image of the agent (default: that of the fleet's controllers in this version)")
	flags.StringSliceVar(&agent.Namespaces, "allow-namespaces", nil,
		"namespaces in which the fleet may manage objects, and none without a namespace (default: everything)")
	flags.StringSliceVar(&agent.Kinds, "allow-kinds", nil,
		"kinds that the fleet may manage, like ConfigMap or Deployment.apps (default: all)")
	flags.BoolVar(&agent.ServeAPI, "serve-api", false,
		"serve the cluster's API in the fleet; the agent's account \"impersonator\" may then be any user and group in "+
			"the whole cluster (default: true without --allow-namespaces and --allow-kinds, else false)")
	flags.StringVar(&agent.Kubernetes, "kubernetes-version", "",
		"version of the cluster, such as v1.36.2: from v1.36 on nobody can be one of system:masters "+
			"(default: asked with --kubeconfig, else unknown)")
}

// memberToRegister is the cluster that the manifest is applied to. It is asked for its version if nobody says that.
func memberToRegister(kubeconfig, kubeContext string, agent *registration.AgentOptions) (*rest.Config, error) {
	config, err := configFrom(kubeconfig, kubeContext, "--kubeconfig")
	if err != nil || agent.Kubernetes != "" || !agent.ServeAPI {
		return config, err
	}
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster at %s: %w", config.Host, err)
	}
	found, err := asking.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the cluster at %s for its version, which --kubernetes-version says "+
			"otherwise: %w", config.Host, err)
	}
	agent.Kubernetes = found.GitVersion
	return config, nil
}

func agentImage(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	vector, err := imagevector.Load()
	if err != nil {
		return "", err
	}
	image, err := vector.Find("federation", imagevector.Tag(version.Version))
	if err != nil {
		return "", err
	}
	return image.String(), nil
}

func printManifest(command *cobra.Command, objects []client.Object) error {
	text, err := registration.YAML(clientgoscheme.Scheme, objects)
	if err != nil {
		return err
	}
	_, err = command.OutOrStdout().Write(text)
	return err
}

func applyManifest(command *cobra.Command, config *rest.Config, objects []client.Object) error {
	member, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to the cluster at %s: %w", config.Host, err)
	}
	return registration.ApplyManifest(command.Context(), member, objects)
}

func tellNext(command *cobra.Command, invitation *registration.Invitation, insecure bool) {
	say := tell(command)
	if insecure {
		say("Warning: the fleet's kubeconfig accepts any server certificate, so the agent will too")
	}
	say("%s is invited until %s. When its agent runs, compare the fingerprint in its log and accept it: trellisctl "+
		"accept %s",
		invitation.Member, invitation.Expires.Local().Format(time.RFC1123), invitation.Member)
	say("Its log: kubectl -n %s logs deployment/agent", invitation.Access)
}

func (c *cli) acceptCommand() *cobra.Command {
	var access fleetAccess
	var key string
	var output formatFlag
	command := &cobra.Command{
		Use:   "accept [NAME]",
		Short: "Accept the agent of a member that was registered, or list those that wait",
		Long: `accept lets an agent that was invited with "trellisctl register" serve its member. It shows the fingerprint of the agent's key, which
is to be the one in the agent's log. With --key it accepts no other. The list has the first 32 digits of it, and with -o wide all.

From then on the agent may read and report on the Works of its own member, and nothing else in the fleet.`,
		Example: `  trellisctl accept --project demo --shoot fleet
  trellisctl accept edge1 --key 3f2a9c01d4 --project demo --shoot fleet`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 1 || len(arguments) == 0 && key != "" {
				return errors.New("name one member, or none to list the agents that wait")
			}
			return nil
		},
		ValidArgsFunction: onlyFirst(c.completeMembers(&access)),
		RunE: func(command *cobra.Command, arguments []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			name := ""
			if len(arguments) == 1 {
				name = arguments[0]
			}
			candidates, err := registration.Candidates(command.Context(), fleet.Client, name)
			if err != nil {
				return err
			}
			if name == "" {
				return listCandidates(command, candidates, output.isWide())
			}
			accepted, err := registration.Accepted(command.Context(), fleet.Client, name)
			if err != nil {
				return err
			}
			chosen, err := registration.Choose(candidates, accepted, name, key)
			if err != nil {
				return err
			}
			if err := registration.Accept(command.Context(), fleet.Client, chosen); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(),
				"member %s: accepted the agent with key %s (Kubernetes %s, cluster %s)\n", name, chosen.Fingerprint,
				oneLine(chosen.Version), oneLine(chosen.ID))
			return nil
		},
	}
	access.flags(command)
	command.Flags().StringVar(&key, "key", "", "fingerprint of the agent's key, or at least its first eight digits")
	output.wideFlag(command, "the id of the cluster, and the whole fingerprint")
	return command
}

// shownDigits of a fingerprint are enough: nobody finds a key of which they are the same.
const shownDigits = 32

func listCandidates(command *cobra.Command, candidates []registration.Candidate, wide bool) error {
	if len(candidates) == 0 {
		tell(command)("No agent waits to be accepted")
		return nil
	}
	header := []string{"MEMBER", "VERSION", "KEY", "WAITS"}
	if wide {
		header = append(header, "CLUSTER")
	}
	t := newTable(command.OutOrStdout(), header...)
	for _, c := range candidates {
		cells := []string{
			c.Member, c.Version, c.Fingerprint[:min(len(c.Fingerprint), shownDigits)],
			duration.HumanDuration(time.Since(c.Since)),
		}
		if wide {
			cells[2] = c.Fingerprint
			cells = append(cells, c.ID)
		}
		t.row(cells...)
	}
	return t.Flush()
}
