package trellisctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func (c *cli) scaleShootCommand() *cobra.Command {
	var w waiting
	var minimum, maximum int32
	command := &cobra.Command{
		Use:   "shoot [NAME] POOL",
		Short: "Change how many machines a pool of a shoot has",
		Long: `Changes the least and the most machines of a pool. What is left out stays. Between the two numbers the
cluster-autoscaler decides. Machines that are too many are drained and deleted, with what is on their disks.`,
		Example: `  trellisctl scale shoot member1 pool --minimum 2 --maximum 5
  trellisctl scale shoot member1 pool --maximum 3 --project demo --wait`,
		Args: shootAndPool, ValidArgsFunction: c.completeShootAndPool,
		RunE: func(command *cobra.Command, arguments []string) error {
			size := poolSize{pool: arguments[len(arguments)-1]}
			if command.Flags().Changed("minimum") {
				size.minimum = &minimum
			}
			if command.Flags().Changed("maximum") {
				size.maximum = &maximum
			}
			if size.minimum == nil && size.maximum == nil {
				return errors.New("say how many machines: --minimum, --maximum, or both")
			}
			session, err := c.shootSession(arguments[:len(arguments)-1])
			if err != nil {
				return err
			}
			before, after, err := session.changeShoot(command.Context(), size.apply)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Pool %s of shoot %s/%s has %s machines, before %s\n", size.pool,
				after.Namespace, after.Name, size.of(after), size.of(before))
			return session.awaitChange(command, w, before, after)
		},
	}
	command.Flags().Int32Var(&minimum, "minimum", 0, "least machines of the pool")
	command.Flags().Int32Var(&maximum, "maximum", 0, "most machines of the pool")
	w.flags(command)
	return command
}

// shootAndPool takes a pool, and before it a shoot unless that is targeted.
func shootAndPool(command *cobra.Command, arguments []string) error {
	if len(arguments) == 1 || len(arguments) == 2 {
		return nil
	}
	example, _, _ := strings.Cut(strings.TrimSpace(command.Example), "\n")
	return fmt.Errorf("name a shoot and one of its pools, for example `%s`", example)
}

// poolSize is how many machines a pool is to have; what is nil stays.
type poolSize struct {
	pool             string
	minimum, maximum *int32
}

func (p poolSize) apply(shoot *gardencorev1beta1.Shoot) error {
	workers, path := shoot.Spec.Provider.Workers, field.NewPath("spec", "provider", "workers")
	i := p.index(shoot)
	if i < 0 {
		names := make([]string, len(workers))
		for j, worker := range workers {
			names[j] = oneLine(worker.Name)
		}
		if len(names) == 0 {
			return fmt.Errorf("%s: shoot %s/%s has no pools: it is workerless", path, shoot.Namespace, shoot.Name)
		}
		return fmt.Errorf("%s: shoot %s/%s has no pool %q; choose one of %s", path, shoot.Namespace, shoot.Name, p.pool,
			strings.Join(names, ", "))
	}
	worker := &workers[i]
	if p.minimum != nil {
		worker.Minimum = *p.minimum
	}
	if p.maximum != nil {
		worker.Maximum = *p.maximum
	}
	switch at := path.Index(i); {
	case worker.Minimum < 0:
		return fmt.Errorf("%s: %d is less than no machine", at.Child("minimum"), worker.Minimum)
	case worker.Minimum > worker.Maximum && p.maximum == nil:
		return fmt.Errorf("%s: %d is more than the maximum, %d; give --maximum as well", at.Child("minimum"),
			worker.Minimum, worker.Maximum)
	case worker.Minimum > worker.Maximum:
		return fmt.Errorf("%s: %d is less than the minimum, %d; give --minimum as well", at.Child("maximum"),
			worker.Maximum, worker.Minimum)
	}
	return nil
}

func (p poolSize) index(shoot *gardencorev1beta1.Shoot) int {
	return slices.IndexFunc(shoot.Spec.Provider.Workers,
		func(worker gardencorev1beta1.Worker) bool { return worker.Name == p.pool })
}

// of is how many machines the pool of a shoot may have.
func (p poolSize) of(shoot *gardencorev1beta1.Shoot) string {
	worker := shoot.Spec.Provider.Workers[p.index(shoot)]
	return fmt.Sprintf("%d to %d", worker.Minimum, worker.Maximum)
}
