package admission

import (
	"context"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
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
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || (a.GetSubresource() != "" && a.GetSubresource() != "binding") {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1beta1.Shoot)
	if shoot.DeletionTimestamp != nil || (old != nil && apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)) {
		return nil
	}
	if old == nil {
		if err := prepareNewShoot(shoot, a.GetUserInfo().GetName()); err != nil {
			return err
		}
	}
	syncCloudProfile(shoot)
	profile, err := profileOf(ctx, s.Reader, shoot)
	if err == nil && profile != nil {
		if errs := corev1beta1.DefaultShootFromCloudProfile(shoot, old, profile, s.now()); len(errs) > 0 {
			return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, errs)
		}
	}
	if err != nil && !isMissing(err) { // a missing profile is refused by ShootValidator, with the field
		return apierrors.NewInternalError(err)
	}
	addTasks(shoot, old)
	return s.completeFromSeed(ctx, shoot)
}

func prepareNewShoot(shoot *corev1beta1.Shoot, creator string) error {
	if name := shoot.Spec.CloudProfileName; name != nil && shoot.Spec.CloudProfile != nil && *name != shoot.Spec.CloudProfile.Name {
		return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Forbidden(field.NewPath("spec", "cloudProfileName"), "names another profile than spec.cloudProfile: give only the latter"),
		})
	}
	setAnnotation(shoot, corev1beta1.GardenerCreatedBy, creator)
	return nil
}

// syncCloudProfile keeps the reference and its deprecated form the same, as long as the latter is in use.
func syncCloudProfile(shoot *corev1beta1.Shoot) {
	if shoot.Spec.CloudProfile == nil && shoot.Spec.CloudProfileName != nil {
		shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: corev1beta1.CloudProfileReferenceKindCloudProfile, Name: *shoot.Spec.CloudProfileName}
	}
	if shoot.Spec.CloudProfile != nil && shoot.Spec.CloudProfile.Kind == "" {
		shoot.Spec.CloudProfile.Kind = corev1beta1.CloudProfileReferenceKindCloudProfile
	}
}

// addTasks asks for what a change needs once.
func addTasks(shoot, old *corev1beta1.Shoot) {
	tasks := neededTasks(shoot, old)
	if len(tasks) == 0 {
		return
	}
	setAnnotation(shoot, corev1beta1.ShootTasks, joinTasks(shoot.Annotations[corev1beta1.ShootTasks], tasks))
}

func neededTasks(shoot, old *corev1beta1.Shoot) []string {
	dns := []string{taskDNSInternal, taskDNSExternal, taskDNSIngress}
	switch {
	case old == nil:
		return nil // everything is deployed on creation
	case isHibernated(old) && !isHibernated(shoot):
		return append([]string{taskInfrastructure}, dns...)
	case !apiequality.Semantic.DeepEqual(old.Spec.DNS, shoot.Spec.DNS):
		return dns
	case !apiequality.Semantic.DeepEqual(old.Spec.Provider.InfrastructureConfig, shoot.Spec.Provider.InfrastructureConfig):
		return []string{taskInfrastructure}
	}
	return nil
}

func isHibernated(shoot *corev1beta1.Shoot) bool {
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
func (s *shootMutator) completeFromSeed(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if shoot.Spec.SeedName == nil {
		return nil
	}
	seed, err := get[*corev1beta1.Seed](ctx, s.Reader, corev1beta1.Resource("seeds"), "", *shoot.Spec.SeedName)
	if isMissing(err) {
		return nil // refused by ShootValidator
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if defaults := seed.Spec.Networks.ShootDefaults; defaults != nil {
		completeNetworks(shoot, defaults)
	}
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if project != nil {
		completeDomain(shoot, project.Name, seed)
	}
	return nil
}

func completeNetworks(shoot *corev1beta1.Shoot, defaults *corev1beta1.ShootNetworks) {
	if shoot.Spec.Networking == nil {
		shoot.Spec.Networking = &corev1beta1.Networking{}
	}
	networking := shoot.Spec.Networking
	if networking.Pods == nil && len(shoot.Spec.Provider.Workers) > 0 {
		networking.Pods = defaults.Pods
	}
	if networking.Services == nil {
		networking.Services = defaults.Services
	}
}

// completeDomain gives the shoot a name below the seed's first default domain.
func completeDomain(shoot *corev1beta1.Shoot, project string, seed *corev1beta1.Seed) {
	if (shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil) || len(seed.Spec.DNS.Defaults) == 0 {
		return
	}
	if shoot.Spec.DNS == nil {
		shoot.Spec.DNS = &corev1beta1.DNS{}
	}
	shoot.Spec.DNS.Domain = ptr.To(shoot.Name + "." + project + "." + seed.Spec.DNS.Defaults[0].Domain)
}
