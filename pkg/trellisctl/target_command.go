package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// targetLevels are what can be targeted, and forgotten.
var targetLevels = []string{"garden", "project", "seed", "shoot", "control-plane"}

func (c *cli) targetCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "target [PATTERN]",
		Short: "Remember what following commands of this terminal are about",
		Long: `target remembers a garden, project, seed, shoot or control plane for this terminal. What is
targeted replaces what was below it: another project has no shoot yet. Names are looked up before they are remembered. A
shoot is looked for in the targeted project, or else in all projects.

Instead of names, anything may be given that a pattern of the configuration matches, such as a name that a cluster has
elsewhere. Patterns are regular expressions with groups that are called project, namespace, shoot or seed, as in
gardenctl's configuration ("trellisctl config set-garden --pattern"). The first one that matches counts; those of the
targeted garden come first. A garden without patterns has one for the names that clusters have in seeds:

  gardens:
  - name: local
    kubeconfig: garden.kubeconfig
    patterns: ["^shoot--(?P<project>.+?)--(?P<shoot>.+)$"]`,
		Example: `  trellisctl target --garden local --project demo --shoot member1
  trellisctl target project demo
  trellisctl target shoot member1
  trellisctl target control-plane
  trellisctl target shoot--demo--member1
  trellisctl target view
  trellisctl target unset shoot`,
		Annotations: map[string]string{ownArguments: ""},
		Args:        onePattern,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 1 {
				return c.targetPattern(command, arguments[0])
			}
			if c.flags == (Target{}) {
				return errors.New("say what to target, for example --project demo --shoot member1; `trellisctl " +
					"target view` shows the current target")
			}
			return c.retarget(command)
		},
	}
	command.AddCommand(
		c.targetLevel("garden", "local", &c.flags.Garden, c.completeGardens),
		c.targetLevel("project", "demo", &c.flags.Project, c.completeNames(projectKind)),
		c.targetLevel("seed", "local", &c.flags.Seed, c.completeNames(seedKind)),
		c.targetLevel("shoot", "member1", &c.flags.Shoot, c.completeNames(shootKind)),
		c.targetControlPlane(), c.targetView(), c.targetUnset())
	return command
}

// onePattern is for the command target, which has others below it and takes a pattern, too.
func onePattern(command *cobra.Command, arguments []string) error {
	if len(arguments) > 1 {
		return oneOfItsCommands(command, arguments)
	}
	return nil
}

// targetLevel is the command that targets something by its name.
func (c *cli) targetLevel(level, example string, flag *string, complete cobra.CompletionFunc) *cobra.Command {
	return &cobra.Command{
		Use:               level + " NAME",
		Short:             "Target a " + level,
		Example:           "  trellisctl target " + level + " " + example,
		Args:              exactlyOne(level),
		ValidArgsFunction: onlyFirst(complete),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := takeName(level, arguments[0], flag); err != nil {
				return withHelp(command, err)
			}
			return c.retarget(command)
		},
	}
}

func (c *cli) targetControlPlane() *cobra.Command {
	return &cobra.Command{
		Use: "control-plane", Short: "Target the namespace of the shoot's control plane in its seed",
		Example: "  trellisctl target control-plane", Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c.flags.ControlPlane = true
			return c.retarget(command)
		},
	}
}

func (c *cli) targetView() *cobra.Command {
	var output formatFlag
	command := &cobra.Command{
		Use: "view", Short: "Show the target of this terminal", Args: noArguments,
		Example: "  trellisctl target view\n  trellisctl target view -o yaml",
		RunE: func(command *cobra.Command, _ []string) error {
			target, err := c.target()
			if err != nil {
				return err
			}
			if output.isDocument() {
				return output.print(command.OutOrStdout(), target)
			}
			fmt.Fprintln(command.OutOrStdout(), oneLine(target.String()))
			return nil
		},
	}
	output.flag(command, formatYAML, formatJSON)
	return command
}

func (c *cli) targetUnset() *cobra.Command {
	return &cobra.Command{
		Use:       "unset [garden|project|seed|shoot|control-plane]",
		Short:     "Forget the target of this terminal, or a part of it with what is below",
		Example:   "  trellisctl target unset\n  trellisctl target unset shoot",
		Args:      optional(oneOfValidArgs),
		ValidArgs: targetLevels,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return os.RemoveAll(SessionDir())
			}
			target, err := LoadTarget(SessionDir())
			if err != nil {
				return err
			}
			target = target.Without(arguments[0])
			if target == (Target{}) {
				err = os.RemoveAll(SessionDir())
			} else {
				err = target.Save(SessionDir())
			}
			if err == nil {
				fmt.Fprintf(command.OutOrStdout(), "Targeted %s\n", oneLine(target.String()))
			}
			return err
		},
	}
}

// retarget checks what is to be targeted, and remembers it.
func (c *cli) retarget(command *cobra.Command) error {
	session, err := c.connect()
	if err != nil {
		return err
	}
	target, err := session.check(command.Context())
	if err != nil {
		return err
	}
	if err := target.Save(SessionDir()); err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "Targeted %s\n", oneLine(target.String()))
	return nil
}

// check reads what is targeted, so that a mistyped name is found when it is typed, and adds the project of the shoot.
func (s *Session) check(ctx context.Context) (Target, error) {
	target := s.Target
	switch {
	case target.Shoot != "":
		shoot, err := s.Shoot(ctx)
		if err != nil {
			return Target{}, err
		}
		if target.Project == "" {
			projects, err := s.projectsByNamespace(ctx)
			if err != nil {
				return Target{}, err
			}
			target.Project = projects[shoot.Namespace]
		}
		return target, s.fits(shoot)
	case target.Project != "":
		_, err := s.Project(ctx, target.Project)
		return target, err
	case target.Seed != "":
		_, err := s.Seed(ctx, target.Seed)
		return target, err
	}
	return target, nil
}

// fits checks that the targeted shoot runs where it is said to.
func (s *Session) fits(shoot *gardencorev1beta1.Shoot) error {
	if seed := deref(shoot.Spec.SeedName); s.Target.Seed != "" && seed != s.Target.Seed {
		return fmt.Errorf("shoot %s/%s is on seed %s, and not on %s, which is targeted: leave out --seed, or run "+
			"`trellisctl target unset seed` before", shoot.Namespace, shoot.Name, orElse(seed, "none"), s.Target.Seed)
	}
	if s.Target.ControlPlane {
		return hasControlPlane(shoot)
	}
	return nil
}

// Seed finds a seed by name.
func (s *Session) Seed(ctx context.Context, name string) (*gardencorev1beta1.Seed, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
		return nil, explain(err, "seed", name, "trellisctl ls seeds")
	}
	return seed, nil
}

// targetPattern targets what a pattern of the configuration makes of a text.
func (c *cli) targetPattern(command *cobra.Command, text string) error {
	if c.flags != (Target{Garden: c.flags.Garden}) {
		return withHelp(command, fmt.Errorf("%q is given, and flags that say what to target: leave out one of them",
			text))
	}
	config, err := LoadConfig(c.configPath)
	if err != nil {
		return err
	}
	remembered, err := LoadTarget(SessionDir())
	if err != nil {
		return err
	}
	gardens, err := config.preferred(c.flags.Garden, remembered.Garden)
	if err != nil {
		return err
	}
	target, namespace, found := matchPatterns(gardens, text)
	if !found {
		return withHelp(command, noPattern(command, config, gardens, text))
	}
	if target.Project == "" && namespace != "" {
		session, err := Connect(config, Target{Garden: target.Garden})
		if err != nil {
			return err
		}
		if target.Project, err = session.projectOf(command.Context(), namespace); err != nil {
			return err
		}
	}
	c.flags = target
	return c.retarget(command)
}

// noPattern says that a text is neither a command nor matched.
func noPattern(command *cobra.Command, config *Config, gardens []*Garden, text string) error {
	message := fmt.Sprintf("%s has no command %q", command.CommandPath(), text)
	command.SuggestionsMinimumDistance = 2
	if similar := command.SuggestionsFor(text); len(similar) > 0 {
		return fmt.Errorf("%s; similar: %s", message, strings.Join(similar, ", "))
	}
	var names []string
	for _, garden := range gardens {
		names = append(names, garden.Name)
	}
	return fmt.Errorf("%s, and no pattern matches it that %s has in gardens[].patterns of garden %s", message,
		config.path, strings.Join(names, ", "))
}

// projectOf is the project that a namespace belongs to.
func (s *Session) projectOf(ctx context.Context, namespace string) (string, error) {
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return "", err
	}
	if projects[namespace] == "" {
		return "", fmt.Errorf("namespace %q belongs to no project that you may see; `trellisctl ls projects` shows "+
			"those with their namespaces", namespace)
	}
	return projects[namespace], nil
}
