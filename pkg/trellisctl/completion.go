package trellisctl

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// completeFlag completes the values of a flag.
func completeFlag(command *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// completeShoot completes one argument by the names of shoots.
func (c *cli) completeShoot() cobra.CompletionFunc { return onlyFirst(c.completeNames(shootKind)) }

// completePools completes the pools of the shoot that is named, or else targeted.
func (c *cli) completePools(command *cobra.Command, arguments []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	session, err := c.shootSession(arguments)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	shoot, err := session.Shoot(command.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var pools []string
	for _, worker := range shoot.Spec.Provider.Workers {
		pools = append(pools, oneLine(worker.Name))
	}
	return pools, cobra.ShellCompDirectiveNoFileComp
}

// completeShootAndPool completes a shoot, and then one of its pools.
func (c *cli) completeShootAndPool(command *cobra.Command, arguments []string, begun string) ([]string,
	cobra.ShellCompDirective) {
	if len(arguments) == 1 {
		return c.completePools(command, arguments, begun)
	}
	return c.completeShoot()(command, arguments, begun)
}

// completeStepAndShoot completes one of some steps, and then a shoot.
func (c *cli) completeStepAndShoot(steps []string) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) == 0 {
			return steps, cobra.ShellCompDirectiveNoFileComp
		}
		return c.completeShoot()(command, arguments[1:], begun)
	}
}

// completeMembers completes the members of a fleet.
func (c *cli) completeMembers(access *fleetAccess) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		fleet, err := c.fleet(command.Context(), *access)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list := &clusterv1alpha1.ClusterList{}
		if err := fleet.Client.List(command.Context(), list); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for i := range list.Items {
			names = append(names, oneLine(list.Items[i].Name))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeGardens completes the names of the gardens that are configured.
func (c *cli) completeGardens(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := LoadConfig(c.configPath)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, garden := range config.Gardens {
		names = append(names, garden.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNames completes the names of a kind's objects from the garden.
func (c *cli) completeNames(k *gardenKind) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		session, err := c.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return session.names(command.Context(), k), cobra.ShellCompDirectiveNoFileComp
	}
}

// onlyFirst completes the first argument, and no more.
func onlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(command, arguments, begun)
	}
}

// completeTargets completes the names behind the target flags.
func (c *cli) completeTargets(root *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"garden": c.completeGardens, "project": c.completeNames(projectKind), "seed": c.completeNames(seedKind),
		"shoot": c.completeNames(shootKind),
	} {
		completeFlag(root, flag, complete)
	}
}

// names are those of the objects of a kind, in the targeted project if they are in one.
func (s *Session) names(ctx context.Context, k *gardenKind) []string {
	l := s.lister(k, &listing{}, nil)
	selection, err := l.selection(ctx)
	if err != nil {
		return nil
	}
	list := k.newList()
	if err := s.client.List(ctx, list, selection); err != nil {
		return nil
	}
	objects, err := objectsOf(list)
	if err != nil {
		return nil
	}
	var names []string
	for _, object := range objects {
		names = append(names, oneLine(object.GetName()))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
