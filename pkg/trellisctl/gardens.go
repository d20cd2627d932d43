package trellisctl

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

func (c *cli) configCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "Show and change which gardens are known",
		Example: "  trellisctl config view\n" +
			"  trellisctl config set-garden landscape-dev --kubeconfig dev.yaml --alias dev",
	}
	command.AddCommand(c.configViewCommand(), c.setGardenCommand(), c.deleteGardenCommand())
	return command
}

func (c *cli) configViewCommand() *cobra.Command {
	output := formatFlag{value: formatYAML}
	command := &cobra.Command{
		Use: "view", Short: "Print the configuration in use", Args: noArguments,
		Example: "  trellisctl config view -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := LoadConfig(c.configPath)
			if err != nil {
				return err
			}
			return output.print(command.OutOrStdout(), config)
		},
	}
	output.flag(command, formatYAML, formatJSON)
	return command
}

func (c *cli) setGardenCommand() *cobra.Command {
	var kubeconfig, kubeContext, alias string
	var patterns []string
	command := &cobra.Command{
		Use:   "set-garden IDENTITY",
		Short: "Add a garden, or change one",
		Long: `set-garden writes the file of the configuration in use, or ~/.garden/trellisctl.yaml where there is none.
IDENTITY is what the garden's ConfigMap kube-system/cluster-identity says. What is not given stays; comments in the file
do not.

Patterns are for "trellisctl target PATTERN". Those that are given replace the garden's, in their order, and an empty
one takes them away. A garden without patterns has one for the names that clusters have in seeds.

  --pattern '^(?P<project>[^/]+)/(?P<shoot>.+)$'`,
		Example: "  trellisctl config set-garden landscape-dev --kubeconfig dev.yaml --alias dev",
		Args:    exactlyOne("garden by its identity"),
		RunE: func(command *cobra.Command, arguments []string) error {
			config, err := c.configToChange()
			if err != nil {
				return err
			}
			flags := command.Flags()
			err = config.setGarden(arguments[0], func(garden *Garden) error {
				if flags.Changed("context") {
					garden.Context = kubeContext
				}
				if alias != "" {
					garden.Name = alias
				}
				if flags.Changed("pattern") {
					if garden.Patterns, err = givenPatterns(patterns); err != nil {
						return err
					}
				}
				if kubeconfig == "" {
					return nil
				}
				// Commands are run in other folders, too.
				garden.Kubeconfig, err = filepath.Abs(kubeconfig)
				return err
			})
			if err != nil {
				return err
			}
			if err := config.save(); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Configured garden %s in %s\n", arguments[0], config.path)
			return nil
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the garden")
	command.Flags().StringVar(&kubeContext, "context", "", "context in it (default: its current one)")
	command.Flags().StringVar(&alias, "alias", "", "what you call the garden (default: its identity)")
	command.Flags().StringArrayVar(&patterns, "pattern", nil,
		"regular expression for targets, with groups as trellisctl target has them; repeat it for more")
	return command
}

func (c *cli) deleteGardenCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete-garden IDENTITY",
		Short:   "Forget a garden",
		Example: "  trellisctl config delete-garden landscape-dev",
		Args:    exactlyOne("garden by its identity or name"), ValidArgsFunction: onlyFirst(c.completeGardens),
		RunE: func(command *cobra.Command, arguments []string) error {
			config, err := c.configToChange()
			if err != nil {
				return err
			}
			if err := config.deleteGarden(arguments[0]); err != nil {
				return err
			}
			if err := config.save(); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Garden %s is not in %s any more\n", arguments[0], config.path)
			return nil
		},
	}
}

// configToChange is the configuration in use, or an empty one in its place.
func (c *cli) configToChange() (*Config, error) {
	candidates := configPaths()
	if path, _ := namedConfig(c.configPath); path != "" {
		candidates = []string{path}
	}
	for _, candidate := range candidates {
		config, err := readConfig(candidate)
		if !errors.Is(err, fs.ErrNotExist) {
			return config, err
		}
	}
	// The last place is the user's own.
	return &Config{path: candidates[len(candidates)-1]}, nil
}

// setGarden changes the garden of an identity, or one that is called so and has none, or adds one.
func (c *Config) setGarden(identity string, change func(*Garden) error) error {
	at := slices.IndexFunc(c.Gardens, func(g Garden) bool { return g.Identity == identity })
	if at < 0 {
		at = slices.IndexFunc(c.Gardens, func(g Garden) bool { return g.Identity == "" && g.Name == identity })
	}
	if at < 0 {
		c.Gardens = append(c.Gardens, Garden{Name: identity})
		at = len(c.Gardens) - 1
	}
	garden := &c.Gardens[at]
	garden.Identity = identity
	if err := change(garden); err != nil {
		return err
	}
	if garden.Kubeconfig == "" {
		return fmt.Errorf("garden %s has no kubeconfig: add --kubeconfig FILE", identity)
	}
	for i := range c.Gardens {
		if other := &c.Gardens[i]; i != at && (other.Name == garden.Name || other.Identity == garden.Name) {
			return fmt.Errorf("another garden in %s is called %s: choose another name with --alias", c.path,
				garden.Name)
		}
	}
	return nil
}

func (c *Config) deleteGarden(name string) error {
	if name == "" {
		return errors.New("which garden? Name its identity")
	}
	garden, err := c.Garden(name)
	if err != nil {
		return err
	}
	found := garden.Name
	c.Gardens = slices.DeleteFunc(c.Gardens, func(g Garden) bool { return g.Name == found })
	return nil
}

// save replaces the file as a whole, so that nobody reads half of it.
func (c *Config) save() error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(c.path); err == nil {
		mode = info.Mode().Perm()
	}
	note := c.path + ".new-" + rand.Text()
	if err := os.WriteFile(note, text, mode); err != nil {
		return err
	}
	if err := os.Rename(note, c.path); err != nil {
		os.Remove(note)
		return err
	}
	return nil
}
