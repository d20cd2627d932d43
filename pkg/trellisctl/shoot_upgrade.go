package trellisctl

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// upgrading is what versions a shoot is to have; empty is that of before.
type upgrading struct {
	kubernetes, image string
	// pools are those that get the image; none are all.
	pools []string
}

func (c *cli) upgradeShootCommand() *cobra.Command {
	var w waiting
	var u upgrading
	command := &cobra.Command{
		Use:   "shoot [NAME]",
		Short: "Update the versions of a shoot, or list what is offered",
		Long: `Without --to and --machine-image it lists what the cloud profile offers, what that replaces, and how. First the
control plane is updated, then the workers. What another version of Kubernetes does not have any more is taken out of the specification,
as maintenance does it, and told.`,
		Example: `  trellisctl upgrade shoot member1 --project demo
  trellisctl upgrade shoot member1 --to 1.37 --wait
  trellisctl upgrade shoot member1 --machine-image newest --pool pool`,
		Args: oneShoot, ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			if u.kubernetes == "" && u.image == "" {
				return session.listUpgrades(command, time.Now())
			}
			return session.upgrade(command, u, w)
		},
	}
	command.Flags().StringVar(&u.kubernetes, "to", "", "version of Kubernetes, such as 1.36.3, or 1.36 for its newest")
	command.Flags().StringVar(&u.image, "machine-image", "", "version of the machine image, or newest")
	command.Flags().StringSliceVar(&u.pools, "pool", nil, "pools that get the machine image (default: all)")
	completeFlag(command, "pool", c.completePools)
	w.flags(command)
	return command
}

// upgrade has the targeted shoot get other versions, and says what else that changes.
func (s *Session) upgrade(command *cobra.Command, u upgrading, w waiting) error {
	var told []string
	var asked alreadyUpdated
	before, after, err := s.changeShoot(command.Context(), func(shoot *gardencorev1beta1.Shoot) error {
		asked = alreadyUpdated{}
		profile, err := s.profileOf(command.Context(), shoot)
		if err != nil {
			return err
		}
		told, err = u.apply(shoot, profile, time.Now(), s.inCommands(shoot))
		if errors.As(err, &asked) && notDone(shoot) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if asked.what != "" {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is being updated: %s (%s)\n", after.Namespace, after.Name,
			oneLine(asked.what), oneLine(lastOperation(after.Status.LastOperation)))
		return s.await(command, w, s.goalOf(after))
	}
	fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is updated\n", after.Namespace, after.Name)
	for _, one := range told {
		fmt.Fprintf(command.OutOrStdout(), "  %s\n", oneLine(one))
	}
	return s.awaitChange(command, w, before, after)
}

// apply changes the versions of a shoot, and tells what was changed. It is an error if nothing is.
func (u upgrading) apply(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec, now time.Time,
	inCommands string) (told []string, err error) {
	var unchanged error
	for _, one := range []struct {
		wanted string
		apply  func(*gardencorev1beta1.Shoot, *gardencorev1beta1.CloudProfileSpec, time.Time, string) ([]string, error)
	}{{u.kubernetes, u.applyKubernetes}, {u.image, u.applyImage}} {
		if one.wanted == "" {
			continue
		}
		changes, err := one.apply(shoot, profile, now, inCommands)
		switch {
		case errors.As(err, new(alreadyUpdated)):
			unchanged = err
		case err != nil:
			return nil, err
		}
		told = append(told, changes...)
	}
	if len(told) == 0 {
		return nil, unchanged
	}
	return told, nil
}

func (u upgrading) applyKubernetes(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec,
	now time.Time, inCommands string) (told []string, err error) {
	current := shoot.Spec.Kubernetes.Version
	version, err := kubernetesUpgrade(u.kubernetes, current, profile.Kubernetes.Versions, now, inCommands)
	if err != nil {
		return nil, err
	}
	shoot.Spec.Kubernetes.Version = version
	told = append(told, fmt.Sprintf("Kubernetes %s, before %s; %s", version, current, howUpgraded(shoot, current,
		version)))
	return append(told, gardencorev1beta1.AdaptToKubernetesVersion(&shoot.Spec)...), nil
}

func (u upgrading) applyImage(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec,
	now time.Time, inCommands string) (told []string, err error) {
	workers, path := shoot.Spec.Provider.Workers, field.NewPath("spec", "provider", "workers")
	for _, pool := range u.pools {
		if (poolSize{pool: pool}).index(shoot) < 0 {
			return nil, fmt.Errorf("%s: shoot %s/%s has no pool %q; see: trellisctl upgrade shoot", path,
				shoot.Namespace, shoot.Name, pool)
		}
	}
	for i := range workers {
		worker := &workers[i]
		if len(u.pools) > 0 && !slices.Contains(u.pools, worker.Name) || worker.Machine.Image == nil {
			continue
		}
		at := path.Index(i).Child("machine", "image", "version")
		current := deref(worker.Machine.Image.Version)
		version, err := imageUpgrade(u.image, imageVersions(shoot, worker, profile), current, now)
		if err != nil {
			return nil, fmt.Errorf("%s: pool %s: %w", at, oneLine(worker.Name), err)
		}
		if version == current {
			continue
		}
		worker.Machine.Image.Version = &version
		told = append(told, fmt.Sprintf("pool %s: image %s %s, before %s; %s", worker.Name, worker.Machine.Image.Name,
			version, current, howMachinesChange(worker)))
	}
	if len(told) == 0 {
		return nil, alreadyUpdated{fmt.Sprintf("%s: all pools have that image already", path), inCommands}
	}
	return told, nil
}

// imageVersions are the versions of its image that the machines of a pool can have.
func imageVersions(shoot *gardencorev1beta1.Shoot, worker *gardencorev1beta1.Worker,
	profile *gardencorev1beta1.CloudProfileSpec) []gardencorev1beta1.ExpirableVersion {
	return profile.VersionsFor(worker.Machine.Image.Name, worker.Machine.Type, kubeletOf(shoot, worker))
}

func kubeletOf(shoot *gardencorev1beta1.Shoot, worker *gardencorev1beta1.Worker) string {
	if own := worker.Kubernetes; own != nil && own.Version != nil {
		return *own.Version
	}
	return shoot.Spec.Kubernetes.Version
}

// howUpgraded tells what happens when Kubernetes of a shoot goes from one version to another.
func howUpgraded(shoot *gardencorev1beta1.Shoot, from, to string) string {
	steps := []string{"the control plane"}
	if minorsAhead(from, to) == 0 && len(shoot.Spec.Provider.Workers) > 0 {
		return "the control plane, then the kubelets; machines stay"
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if own := worker.Kubernetes; own != nil && own.Version != nil {
			steps = append(steps, fmt.Sprintf("pool %s keeps %s", oneLine(worker.Name), oneLine(*own.Version)))
			continue
		}
		steps = append(steps, fmt.Sprintf("pool %s: %s", oneLine(worker.Name), howMachinesChange(worker)))
	}
	return strings.Join(steps, ", then ")
}

// howMachinesChange tells what happens to machines of a pool that have to change.
func howMachinesChange(worker *gardencorev1beta1.Worker) string {
	if worker.UpdateStrategy != nil && *worker.UpdateStrategy == gardencorev1beta1.ManualInPlaceUpdate {
		return "machines are updated in place when you select them"
	}
	if gardencorev1beta1.IsUpdatedInPlace(worker) {
		return "machines are updated in place, one after another"
	}
	return "machines are replaced, one after another"
}

func (s *Session) listUpgrades(command *cobra.Command, now time.Time) error {
	shoot, err := s.Shoot(command.Context())
	if err != nil {
		return err
	}
	profile, err := s.profileOf(command.Context(), shoot)
	if err != nil {
		return err
	}
	return printUpgrades(command.OutOrStdout(), shoot, profile, now)
}

// printUpgrades lists the versions that a cloud profile offers to a shoot.
func printUpgrades(out io.Writer, shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec,
	now time.Time) error {
	current := shoot.Spec.Kubernetes.Version
	offers := laterVersions(current, profile.Kubernetes.Versions, now)
	if len(offers) == 0 {
		fmt.Fprintf(out, "Kubernetes %s is the newest version that is offered\n", oneLine(current))
	} else {
		t := newTable(out, "KUBERNETES", "STATE", "REPLACES", "HOW")
		for _, offer := range offers {
			how := howUpgraded(shoot, current, offer.version)
			if minorsAhead(current, offer.version) > 1 {
				how = "after the minor versions before it"
			}
			t.row(offer.version, string(offer.state), current, how)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "POOL", "IMAGE", "REPLACES", "OFFERED", "HOW")
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		image := worker.Machine.Image
		if image == nil {
			continue
		}
		later := laterVersions(deref(image.Version), imageVersions(shoot, worker, profile), now)
		names := make([]string, len(later))
		for j, offer := range later {
			names[j] = offer.version
		}
		how := ""
		if len(later) > 0 {
			how = howMachinesChange(worker)
		}
		t.row(worker.Name, image.Name, deref(image.Version), strings.Join(names, ", "), how)
	}
	return t.Flush()
}
