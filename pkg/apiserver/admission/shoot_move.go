package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// validateMove checks that a control plane may go to another seed: the one that it is on is gone, so that there will
// never be two of it, and the other one finds all that it needs. What any seed needs for a shoot, validateSeed checks.
func (s *shootValidator) validateMove(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	if old == nil || old.Spec.SeedName == nil || shoot.Spec.SeedName == nil ||
		*old.Spec.SeedName == *shoot.Spec.SeedName {
		return nil, nil
	}
	var errs field.ErrorList
	for _, check := range []func(context.Context, *gardencorev1beta1.Shoot,
		*gardencorev1beta1.Shoot) (problem string, err error){s.leaves, s.arrives, s.hasState} {
		problem, err := check(ctx, shoot, old)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "seedName"), problem))
		}
	}
	return errs, nil
}

// seed returns a Seed; nil if there is none of the name.
func (s *shootValidator) seed(ctx context.Context, name string) (*gardencorev1beta1.Seed, error) {
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "", name)
	if isMissing(err) {
		return nil, nil
	}
	return seed, err
}

// leaves returns why a control plane may not be given up where it is; empty when it may. As long as no gardenlet has
// begun to restore it, it is nowhere: a gardenlet writes to the status that it begins, and is refused after a move.
func (s *shootValidator) leaves(ctx context.Context, _, old *gardencorev1beta1.Shoot) (string, error) {
	if old.Status.SeedName == nil && gardencorev1beta1.IsRestoring(old) {
		return "", nil
	}
	name := ptr.Deref(old.Status.SeedName, *old.Spec.SeedName)
	seed, err := s.seed(ctx, name)
	if err != nil {
		return "", err
	}
	switch {
	case seed == nil || !gardencorev1beta1.IsSeedLost(seed):
		return fmt.Sprintf("control planes stay on the seed on which they are, %s. Only when its cluster is gone for "+
			"good, and nothing of it runs any more, confirm that, and how you know: kubectl annotate seed %s "+
			"%s='...'", name, name, gardencorev1beta1.AnnotationConfirmationSeedLost), nil
	case isHeard(seed):
		return fmt.Sprintf("seed %s is confirmed to be lost, but its gardenlet reports (condition %s): there would be "+
			"two control planes. Stop the cluster of the seed, or take the confirmation away", name,
			gardencorev1beta1.SeedGardenletReady), nil
	}
	return "", nil
}

// isHeard tells whether the gardenlet of a seed reports, be it that it is not ready. garden-controller-manager makes
// the condition Unknown when it is silent.
func isHeard(seed *gardencorev1beta1.Seed) bool {
	return slices.ContainsFunc(seed.Status.Conditions, func(c gardencorev1beta1.Condition) bool {
		return c.Type == gardencorev1beta1.SeedGardenletReady && c.Status != gardencorev1beta1.ConditionUnknown
	})
}

// isReady tells whether the gardenlet of a seed is.
func isReady(seed *gardencorev1beta1.Seed) bool {
	return slices.ContainsFunc(seed.Status.Conditions, func(c gardencorev1beta1.Condition) bool {
		return c.Type == gardencorev1beta1.SeedGardenletReady && c.Status == gardencorev1beta1.ConditionTrue
	})
}

// arrives returns why the other seed cannot restore the control plane; empty when it can.
func (s *shootValidator) arrives(ctx context.Context, shoot, old *gardencorev1beta1.Shoot) (string, error) {
	to, err := s.seed(ctx, *shoot.Spec.SeedName)
	if to == nil || err != nil {
		return "", err // validateSeed tells
	}
	from, err := s.seed(ctx, *old.Spec.SeedName)
	if err != nil {
		return "", err
	}
	switch {
	case !isReady(to):
		return fmt.Sprintf("seed %s is not ready (condition %s)", to.Name, gardencorev1beta1.SeedGardenletReady), nil
	case to.Spec.Backup == nil:
		return fmt.Sprintf("seed %s has no spec.backup, so that it cannot restore etcd from the backups", to.Name), nil
	case from != nil && internalDomain(from) != internalDomain(to):
		return fmt.Sprintf("seed %s has another internal domain (%q) than %s (%q): nodes would not find the API server",
			to.Name, internalDomain(to), from.Name, internalDomain(from)), nil
	case !servesDomain(to, shoot):
		return fmt.Sprintf("seed %s makes no DNS records in the domain of the shoot, %s", to.Name,
			*shoot.Spec.DNS.Domain), nil
	}
	return s.reachesBackups(ctx, to, old)
}

func internalDomain(seed *gardencorev1beta1.Seed) string {
	return ptr.Deref(seed.Spec.DNS.Internal, gardencorev1beta1.SeedDNSProviderConfig{}).Domain
}

// servesDomain tells whether the record of the shoot's domain can be changed from a seed.
func servesDomain(seed *gardencorev1beta1.Seed, shoot *gardencorev1beta1.Shoot) bool {
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil || len(shoot.Spec.DNS.Providers) > 0 {
		return true
	}
	return slices.ContainsFunc(seed.Spec.DNS.Defaults, func(c gardencorev1beta1.SeedDNSProviderConfig) bool {
		return strings.HasSuffix(*shoot.Spec.DNS.Domain, "."+c.Domain)
	})
}

// reachesBackups returns why a seed cannot use the backups of a shoot, which stay in their bucket; empty when it can.
func (s *shootValidator) reachesBackups(ctx context.Context, to *gardencorev1beta1.Seed,
	old *gardencorev1beta1.Shoot) (string, error) {
	name := gardencorev1beta1.BackupEntryName(old.Status.TechnicalID, string(old.UID))
	entry, err := get[*gardencorev1beta1.BackupEntry](ctx, s.Reader, gardencorev1beta1.Resource("backupentries"),
		old.Namespace, name)
	if isMissing(err) || err == nil && entry.DeletionTimestamp != nil {
		return fmt.Sprintf("there are no backups of the shoot: it has no BackupEntry %s", name), nil
	}
	if err != nil {
		return "", err
	}
	bucket, err := get[*gardencorev1beta1.BackupBucket](ctx, s.Reader, gardencorev1beta1.Resource("backupbuckets"), "",
		entry.Spec.BucketName)
	switch {
	case isMissing(err):
		return fmt.Sprintf("the BackupBucket %s, in which the backups are, is gone", entry.Spec.BucketName), nil
	case err != nil:
		return "", err
	case bucket.Spec.Provider.Type != to.Spec.Backup.Provider:
		return fmt.Sprintf("the backups are in an object store of provider %s, and seed %s uses those of %s",
			bucket.Spec.Provider.Type, to.Name, to.Spec.Backup.Provider), nil
	}
	return "", nil
}

// hasState returns why the keys and machines of a shoot are not known; empty when they are.
func (s *shootValidator) hasState(ctx context.Context, shoot, _ *gardencorev1beta1.Shoot) (string, error) {
	state, err := get[*gardencorev1beta1.ShootState](ctx, s.Reader, gardencorev1beta1.Resource("shootstates"),
		shoot.Namespace, shoot.Name)
	switch {
	case isMissing(err) || err == nil && len(state.Spec.Gardener) == 0:
		return "the keys of the cluster are not known: its ShootState is missing, or empty", nil
	case err != nil:
		return "", err
	}
	for _, extension := range state.Spec.Extensions {
		if len(extension.Resources) > 0 {
			return fmt.Sprintf("the extension of its %s needs objects, such as %s, which are not kept", extension.Kind,
				extension.Resources[0].Name), nil
		}
	}
	return "", nil
}
