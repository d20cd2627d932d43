package admission

import (
	"context"
	"errors"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ShootMutatorName is the name of the plugin that completes a shoot from its cloud profile and seed.
const ShootMutatorName = "ShootMutator"

// Tasks are what a change asks gardenlet to do beyond an ordinary reconciliation.
const (
	taskInfrastructure = "deployInfrastructure"
	taskDNSInternal    = "deployDNSRecordInternal"
	taskDNSExternal    = "deployDNSRecordExternal"
	taskDNSIngress     = "deployDNSRecordIngress"
)

// secondsUntilMerged is when clients try again after a namespaced cloud profile was not complete yet. They do so by
// themselves.
const secondsUntilMerged = 1

// shootMutator fills in what a user may leave out: versions, machine images, networks, who created the shoot.
type shootMutator struct {
	*admission.Handler
	dependent
	now func() time.Time
}

var _ admission.MutationInterface = &shootMutator{}

func newShootMutator() *shootMutator {
	return &shootMutator{Handler: admission.NewHandler(admission.Create, admission.Update), now: time.Now}
}

// Admit implements admission.MutationInterface.
func (s *shootMutator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if shoot, old, ok := written[*gardencorev1beta1.Shoot](a); ok && old != nil {
		keepCreator(shoot, old)
	}
	shoot, old, ok := changedShoot(a)
	if !ok {
		return nil
	}
	if old == nil {
		if err := prepareNewShoot(shoot, a.GetUserInfo().GetName()); err != nil {
			return err
		}
	}
	syncCloudProfile(shoot)
	profile, err := profileOf(ctx, s.Reader, shoot)
	switch {
	case errors.Is(err, errNotMerged):
		return apierrors.NewTooManyRequests(err.Error(), secondsUntilMerged)
	case err != nil && !isMissing(err): // a missing profile is refused by ShootValidator, with the field
		return apierrors.NewInternalError(err)
	case err == nil && profile != nil:
		if errs := gardencorev1beta1.DefaultShootFromCloudProfile(shoot, old, profile, s.now()); len(errs) > 0 {
			return invalid(a, errs)
		}
	}
	addTasks(shoot, old)
	askForRetry(shoot, old)
	return s.completeFromSeed(ctx, shoot)
}

// keepCreator keeps users from writing who created a shoot.
func keepCreator(shoot, old *gardencorev1beta1.Shoot) {
	if creator, ok := old.Annotations[gardencorev1beta1.GardenerCreatedBy]; ok {
		setAnnotation(shoot, gardencorev1beta1.GardenerCreatedBy, creator)
	}
}

// askForRetry has a failed shoot tried again at the next maintenance when that is the only time at which it is changed.
func askForRetry(shoot, old *gardencorev1beta1.Shoot) {
	if old == nil || old.Status.LastOperation == nil ||
		old.Status.LastOperation.State != gardencorev1beta1.LastOperationStateFailed {
		return
	}
	if shoot.Spec.Maintenance != nil && ptr.Deref(shoot.Spec.Maintenance.ConfineSpecUpdateRollout, false) {
		setAnnotation(shoot, gardencorev1beta1.ShootNeedsRetryOperation, "true")
	}
}

func prepareNewShoot(shoot *gardencorev1beta1.Shoot, creator string) error {
	if name := shoot.Spec.CloudProfileName; name != nil && shoot.Spec.CloudProfile != nil &&
		*name != shoot.Spec.CloudProfile.Name {
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Forbidden(field.NewPath("spec", "cloudProfileName"),
				"names another profile than spec.cloudProfile: give only the latter"),
		})
	}
	setAnnotation(shoot, gardencorev1beta1.GardenerCreatedBy, creator)
	return nil
}

// syncCloudProfile keeps the reference and its deprecated form the same, as long as the latter is in use.
func syncCloudProfile(shoot *gardencorev1beta1.Shoot) {
	if shoot.Spec.CloudProfile == nil && shoot.Spec.CloudProfileName != nil {
		shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{
			Kind: gardencorev1beta1.CloudProfileReferenceKindCloudProfile, Name: *shoot.Spec.CloudProfileName,
		}
	}
	if shoot.Spec.CloudProfile != nil && shoot.Spec.CloudProfile.Kind == "" {
		shoot.Spec.CloudProfile.Kind = gardencorev1beta1.CloudProfileReferenceKindCloudProfile
	}
}

// addTasks asks for what a change needs once.
func addTasks(shoot, old *gardencorev1beta1.Shoot) {
	tasks := neededTasks(shoot, old)
	if len(tasks) == 0 {
		return
	}
	setAnnotation(shoot, gardencorev1beta1.ShootTasks,
		joinTasks(shoot.Annotations[gardencorev1beta1.ShootTasks], tasks))
}

func neededTasks(shoot, old *gardencorev1beta1.Shoot) []string {
	dns := []string{taskDNSInternal, taskDNSExternal, taskDNSIngress}
	switch {
	case old == nil:
		return nil // everything is deployed on creation
	case isHibernated(old) && !isHibernated(shoot):
		return append([]string{taskInfrastructure}, dns...)
	case !apiequality.Semantic.DeepEqual(old.Spec.DNS, shoot.Spec.DNS):
		return dns
	case !apiequality.Semantic.DeepEqual(old.Spec.Provider.InfrastructureConfig,
		shoot.Spec.Provider.InfrastructureConfig),
		gardencorev1beta1.SSHAccessEnabled(&old.Spec) != gardencorev1beta1.SSHAccessEnabled(&shoot.Spec):
		return []string{taskInfrastructure}
	}
	return nil
}

func isHibernated(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

func joinTasks(present string, added []string) string {
	all := sets.New(added...)
	for _, task := range strings.Split(present, ",") {
		if task = strings.TrimSpace(task); task != "" {
			all.Insert(task)
		}
	}
	return strings.Join(sets.List(all), ",")
}

// completeFromSeed takes what the seed decides once there is one: the networks.
func (s *shootMutator) completeFromSeed(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if shoot.Spec.SeedName == nil {
		return nil
	}
	seed, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		*shoot.Spec.SeedName)
	if isMissing(err) {
		return nil // refused by ShootValidator
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if defaults := seed.Spec.Networks.ShootDefaults; defaults != nil {
		completeNetworks(shoot, defaults)
	}
	return nil
}

func completeNetworks(shoot *gardencorev1beta1.Shoot, defaults *gardencorev1beta1.ShootNetworks) {
	if shoot.Spec.Networking == nil {
		shoot.Spec.Networking = &gardencorev1beta1.Networking{}
	}
	networking := shoot.Spec.Networking
	if networking.Pods == nil && len(shoot.Spec.Provider.Workers) > 0 {
		networking.Pods = defaults.Pods
	}
	if networking.Services == nil {
		networking.Services = defaults.Services
	}
}
