package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
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
  eval "$(trellisctl kubectl-env bash)" && kubectl get nodes
  trellisctl kubeconfig --project demo --shoot member1 > m1.yaml
  trellisctl show --project demo --shoot member1`,
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
	root.AddCommand(c.listCommand(), c.targetCommand(), c.kubeconfigCommand(), c.kubectlEnvCommand(), c.showCommand(),
		c.hibernateCommand(), c.wakeUpCommand(), versionCommand())
	root.AddCommand(c.membersCommand(), c.joinCommand(), c.registerCommand(), c.acceptCommand(), c.unjoinCommand(),
		c.cordonCommand(), c.uncordonCommand(), c.drainCommand(), c.explainCommand(), c.planCommand(),
		c.deletionsCommand())
	root.AddCommand(c.rolloutCommand(), c.interpretCommand())
	foldHelp(root)
	pointToHelp(root)
	return root
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

func (c *cli) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "ls [projects|shoots|seeds]",
		Aliases:   []string{"list"},
		Short:     "List projects, shoots and seeds",
		Example:   "  trellisctl ls\n  trellisctl ls shoots --project demo",
		Args:      optional(oneOfValidArgs),
		ValidArgs: []string{"projects", "shoots", "seeds"},
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			lists := []struct {
				name string
				list func() error
			}{
				{
					"projects", func() error {
						return session.ListProjects(command.Context(), command.OutOrStdout(), time.Now())
					},
				},
				{
					"shoots", func() error {
						return session.ListShoots(command.Context(), command.OutOrStdout(), time.Now())
					},
				},
				{
					"seeds", func() error {
						return session.ListSeeds(command.Context(), command.OutOrStdout(), time.Now())
					},
				},
			}
			for i, entry := range lists {
				if len(arguments) == 1 && arguments[0] != entry.name {
					continue
				}
				if len(arguments) == 0 && i > 0 {
					fmt.Fprintln(command.OutOrStdout())
				}
				if err := entry.list(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (c *cli) targetCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "target",
		Short: "Remember what following commands of this terminal are about",
		Example: `  trellisctl target --garden local --project demo --shoot member1
  trellisctl target --control-plane
  trellisctl target view
  trellisctl target unset`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.flags == (Target{}) {
				return errors.New("say what to target, for example --project demo --shoot member1; `trellisctl " +
					"target view` shows the current target")
			}
			session, err := c.connect()
			if err != nil {
				return err
			}
			if err := session.check(command.Context()); err != nil {
				return err
			}
			if err := session.Target.Save(SessionDir()); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Targeted %s\n", session.Target)
			return nil
		},
	}
	command.AddCommand(&cobra.Command{
		Use: "view", Short: "Show the target of this terminal", Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			target, err := c.target()
			if err == nil {
				fmt.Fprintln(command.OutOrStdout(), target)
			}
			return err
		},
	}, &cobra.Command{
		Use: "unset", Short: "Forget the target of this terminal", Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return os.RemoveAll(SessionDir()) },
	})
	return command
}

// check reads what is targeted, so that a mistyped name is found when it is typed.
func (s *Session) check(ctx context.Context) error {
	if s.Target.Shoot != "" {
		_, err := s.Shoot(ctx)
		return err
	}
	if s.Target.Project != "" {
		_, err := s.Project(ctx, s.Target.Project)
		return err
	}
	if s.Target.Seed != "" {
		seed := &gardencorev1beta1.Seed{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: s.Target.Seed}, seed); err != nil {
			return explain(err, "seed", s.Target.Seed, "trellisctl ls seeds")
		}
	}
	return nil
}

func (c *cli) accessFlags(command *cobra.Command) {
	command.Flags().StringVar(&c.level, "access-level", string(AccessAuto),
		"admin, viewer, or auto: admin where allowed, else viewer")
	command.Flags().DurationVar(&c.expiration, "expiration", time.Hour,
		"how long the credentials are valid (10m to 24h)")
}

func (c *cli) kubeconfigCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a short-lived kubeconfig of the target",
		Example: `  trellisctl kubeconfig --garden local --project demo --shoot member1 > m1.yaml
  trellisctl kubeconfig --seed local > seed.yaml`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			data, err := c.kubeconfig(command.Context())
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(data)
			return err
		},
	}
	c.accessFlags(command)
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

func (c *cli) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the control-plane pods and conditions of a shoot",
		Example: "  trellisctl show --project demo --shoot member1",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			return session.Show(command.Context(), command.OutOrStdout(), time.Now())
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of trellisctl", Args: noArguments,
		Run: func(command *cobra.Command, _ []string) { fmt.Fprintln(command.OutOrStdout(), version.String()) },
	}
}

// completeTargets completes the names behind the target flags from the garden.
func (c *cli) completeTargets(root *cobra.Command) {
	register := func(flag string, list func(ctx context.Context, s *Session) client.ObjectList) {
		complete := func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			session, err := c.connect()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return session.names(command.Context(), list(command.Context(), session)),
				cobra.ShellCompDirectiveNoFileComp
		}
		if err := root.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
	register("project", func(context.Context, *Session) client.ObjectList { return &gardencorev1beta1.ProjectList{} })
	register("seed", func(context.Context, *Session) client.ObjectList { return &gardencorev1beta1.SeedList{} })
	register("shoot", func(context.Context, *Session) client.ObjectList { return &gardencorev1beta1.ShootList{} })
}

func (s *Session) names(ctx context.Context, list client.ObjectList) []string {
	var names []string
	if err := s.client.List(ctx, list); err != nil {
		return nil
	}
	switch typed := list.(type) {
	case *gardencorev1beta1.ProjectList:
		for _, item := range typed.Items {
			names = append(names, item.Name)
		}
	case *gardencorev1beta1.SeedList:
		for _, item := range typed.Items {
			names = append(names, item.Name)
		}
	case *gardencorev1beta1.ShootList:
		for _, item := range typed.Items {
			names = append(names, item.Name)
		}
	}
	return names
}
