package trellisctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// resolved is what a target stands for, in the form of gardenctl.
type resolved struct {
	Garden  *resolvedGarden  `json:"garden,omitempty"`
	Project *resolvedProject `json:"project,omitempty"`
	Seed    *resolvedSeed    `json:"seed,omitempty"`
	Shoot   *resolvedShoot   `json:"shoot,omitempty"`
}

type resolvedGarden struct {
	// Name is the identity, where one is configured.
	Name  string `json:"name"`
	Alias string `json:"alias,omitempty"`
}

type resolvedProject struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

type resolvedSeed struct {
	Name string `json:"name"`
}

type resolvedShoot struct {
	Name               string   `json:"name"`
	Namespace          string   `json:"namespace"`
	AccessRestrictions []string `json:"accessRestrictions,omitempty"`
}

func (c *cli) resolveCommand() *cobra.Command {
	output := formatFlag{value: formatYAML}
	command := &cobra.Command{
		Use:       "resolve garden|project|seed|shoot",
		Short:     "Print what the target stands for, for programs",
		Example:   "  trellisctl resolve shoot --shoot member1 -o json",
		Args:      oneOfValidArgs,
		ValidArgs: []string{"garden", "project", "seed", "shoot"},
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			found, err := session.resolve(command.Context(), arguments[0])
			if err != nil {
				return err
			}
			return output.print(command.OutOrStdout(), found)
		},
	}
	output.flag(command, formatYAML, formatJSON)
	return command
}

// resolve looks up a level of the target and those above it.
func (s *Session) resolve(ctx context.Context, level string) (*resolved, error) {
	result := &resolved{Garden: &resolvedGarden{Name: s.garden.Name}}
	if s.garden.Identity != "" {
		result.Garden = &resolvedGarden{Name: s.garden.Identity, Alias: s.garden.Name}
	}
	switch {
	case level == "garden":
		return result, nil
	case level == "shoot" || level == "seed" && s.Target.Seed == "" && s.Target.Shoot != "":
		return result, s.resolveShoot(ctx, result, level)
	case level == "seed":
		return result, s.resolveSeed(ctx, result)
	case s.Target.Project == "" && s.Target.Shoot != "":
		if err := s.resolveShoot(ctx, result, level); err != nil {
			return nil, err
		}
		result.Seed, result.Shoot = nil, nil
		return result, nil
	}
	if s.Target.Project == "" {
		return nil, fmt.Errorf("no project is targeted: add --project NAME")
	}
	project, err := s.Project(ctx, s.Target.Project)
	if err != nil {
		return nil, err
	}
	result.Project = &resolvedProject{project.Name, deref(project.Spec.Namespace)}
	return result, nil
}

func (s *Session) resolveSeed(ctx context.Context, result *resolved) error {
	if s.Target.Seed == "" {
		return fmt.Errorf("no seed is targeted: add --seed NAME, or --shoot NAME for the seed of a shoot")
	}
	seed, err := s.Seed(ctx, s.Target.Seed)
	if err != nil {
		return err
	}
	result.Seed = &resolvedSeed{seed.Name}
	return nil
}

// resolveShoot fills in the shoot with its project and seed; of a seed, the seed alone.
func (s *Session) resolveShoot(ctx context.Context, result *resolved, level string) error {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return err
	}
	if seed := deref(shoot.Spec.SeedName); seed != "" {
		result.Seed = &resolvedSeed{seed}
	} else if level == "seed" {
		return fmt.Errorf("shoot %s/%s has no seed yet; `trellisctl ls shoots` shows how far it is", shoot.Namespace,
			shoot.Name)
	}
	if level == "seed" {
		return nil
	}
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return err
	}
	if name := projects[shoot.Namespace]; name != "" {
		result.Project = &resolvedProject{name, shoot.Namespace}
	}
	result.Shoot = &resolvedShoot{Name: shoot.Name, Namespace: shoot.Namespace}
	for _, restriction := range shoot.Spec.AccessRestrictions {
		result.Shoot.AccessRestrictions = append(result.Shoot.AccessRestrictions, restriction.Name)
	}
	return nil
}
