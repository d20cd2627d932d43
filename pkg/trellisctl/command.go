package trellisctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-garden/trellis/pkg/version"
)

// cli holds the flags that all commands share.
type cli struct {
	configPath string
	flags      Target
	level      string
	expiration time.Duration
}

// NewCommand is the root command. Called as kubectl-trellis it presents itself as the plugin `kubectl trellis`.
func NewCommand() *cobra.Command {
	c := &cli{}
	root := &cobra.Command{
		Use:   "trellisctl",
		Short: "Work with the gardens, projects, shoots and seeds of Trellis",
		Long: `trellisctl lists what a garden has, remembers what you are working on, and hands out short-lived kubeconfigs.

The target (garden, project, shoot, seed) is given by flags, or remembered for this terminal by "trellisctl target".
Gardens are configured in .landscape/trellisctl.yaml of a local landscape, or in ~/.garden/trellisctl.yaml.`,
		Example: `  trellisctl ls
  trellisctl target --garden local --project demo --shoot member1
  trellisctl describe shoot
  eval "$(trellisctl kubectl-env bash)" && kubectl get nodes
  trellisctl kubeconfig --project demo --shoot member1 > m1.yaml
  trellisctl show kube-apiserver --project demo --shoot member1`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-trellis") {
		root.Use = "kubectl-trellis"
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl trellis"}
	}
	root.SetOut(Visible(os.Stdout))
	root.SetErr(Visible(os.Stderr))
	flags := root.PersistentFlags()
	flags.StringVar(&c.configPath, "config", "",
		"configuration file with the gardens (default: see above, or $"+ConfigEnv+")")
	flags.StringVar(&c.flags.Garden, "garden", "", "garden, by name or identity")
	flags.StringVar(&c.flags.Project, "project", "", "project")
	flags.StringVar(&c.flags.Seed, "seed", "", "seed")
	flags.StringVar(&c.flags.Shoot, "shoot", "", "shoot")
	flags.BoolVar(&c.flags.ControlPlane, "control-plane", false,
		"the namespace of the shoot's control plane in its seed")
	c.completeTargets(root)
	c.addCommands(root)
	root.AddCommand(c.credentialCommand(), manCommand())
	foldHelp(root)
	pointToHelp(root)
	return root
}

// addCommands adds the commands that people call. Those that are about the same stand together in help.
func (c *cli) addCommands(root *cobra.Command) {
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"there", "What there is:", []*cobra.Command{
			c.listCommand(), c.describeCommand(), c.showCommand(), c.diagnoseCommand(),
		}},
		{"targets", "Targets and credentials:", []*cobra.Command{
			c.targetCommand(), c.kubeconfigCommand(), c.kubectlEnvCommand(), c.providerEnvCommand(), c.sshCommand(),
			c.resolveCommand(),
		}},
		{"shoots", "Shoots:", append(c.shootCommands(), c.hibernateCommand(), c.wakeUpCommand())},
		{"members", "Members of a fleet:", []*cobra.Command{
			c.membersCommand(), c.joinCommand(), c.registerCommand(), c.acceptCommand(), c.unjoinCommand(),
			c.cordonCommand(), c.uncordonCommand(), c.drainCommand(),
		}},
		{"placement", "Objects of a fleet:", []*cobra.Command{
			c.explainCommand(), c.planCommand(), c.rolloutCommand(), c.deletionsCommand(), c.interpretCommand(),
		}},
		{"inside", "What runs in the members of a fleet:", []*cobra.Command{
			c.getCommand(), c.topCommand(), c.logsCommand(), c.execCommand(), c.eventsCommand(),
		}},
		{"setup", "Setting up:", []*cobra.Command{c.configCommand(), c.rcCommand(), versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
}

func (c *cli) target() (Target, error) {
	remembered, err := LoadTarget(SessionDir())
	if err != nil {
		return Target{}, err
	}
	target := remembered.Merge(c.flags)
	return target, target.Validate()
}

func (c *cli) connect() (*Session, error) {
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	config, err := LoadConfig(c.configPath)
	if err != nil {
		return nil, err
	}
	return Connect(config, target)
}

func (c *cli) accessFlags(command *cobra.Command) {
	command.Flags().StringVar(&c.level, "access-level", string(AccessAuto),
		"admin, viewer, or auto: admin where allowed, else viewer")
	command.Flags().DurationVar(&c.expiration, "expiration", time.Hour,
		"how long the credentials are valid (10m to 24h)")
}

func (c *cli) kubeconfigCommand() *cobra.Command {
	var access execAccess
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a short-lived kubeconfig of the target",
		Example: `  trellisctl kubeconfig --garden local --project demo --shoot member1 > m1.yaml
  trellisctl kubeconfig --project demo --all > demo.yaml
  trellisctl kubeconfig --seed local > seed.yaml`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			data, err := c.kubeconfigOrExec(command, access)
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(data)
			return err
		},
	}
	c.accessFlags(command)
	access.flags(command)
	return command
}

func (c *cli) kubeconfig(ctx context.Context) ([]byte, error) {
	session, err := c.connect()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := session.Kubeconfig(ctx, AccessLevel(c.level), c.expiration)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(*kubeconfig)
}

func (c *cli) kubectlEnvCommand() *cobra.Command {
	command := &cobra.Command{
		Use:       "kubectl-env bash|zsh|fish|powershell",
		Short:     "Print the shell command that points kubectl at the target",
		Example:   `  eval "$(trellisctl kubectl-env bash)"`,
		Args:      oneOfValidArgs,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(command *cobra.Command, arguments []string) error {
			data, err := c.kubeconfig(command.Context())
			if err != nil {
				return err
			}
			path := filepath.Join(SessionDir(), "kubeconfig.yaml")
			if err := makeSessionDir(filepath.Dir(path)); err != nil {
				return err
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				return err
			}
			formats := map[string]string{
				"bash": "export KUBECONFIG='%s';\n", "zsh": "export KUBECONFIG='%s';\n",
				"fish": "set -gx KUBECONFIG '%s';\n", "powershell": "$Env:KUBECONFIG = '%s';\n",
			}
			fmt.Fprintf(command.OutOrStdout(), formats[arguments[0]], path)
			return nil
		},
	}
	c.accessFlags(command)
	return command
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of trellisctl", Args: noArguments, Example: "  trellisctl version",
		Run: func(command *cobra.Command, _ []string) { fmt.Fprintln(command.OutOrStdout(), version.String()) },
	}
}
