package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
)

// ShootQuotaValidatorName is the name of the plugin that keeps shoots within quotas.
const ShootQuotaValidatorName = "ShootQuotaValidator"

// shootQuotaValidator keeps the shoots of a project, or of credentials, within the quotas that their bindings name: in
// size and in lifetime.
type shootQuotaValidator struct {
	*admission.Handler
	dependent
	now func() time.Time
}

var (
	_ admission.MutationInterface   = &shootQuotaValidator{}
	_ admission.ValidationInterface = &shootQuotaValidator{}
)

func newShootQuotaValidator() *shootQuotaValidator {
	return &shootQuotaValidator{Handler: admission.NewHandler(admission.Create, admission.Update), now: time.Now}
}

// Admit implements admission.MutationInterface: it sets when the shoot expires.
func (s *shootQuotaValidator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old, ok := written[*gardencorev1beta1.Shoot](a)
	if !ok || shoot.DeletionTimestamp != nil || !concernsLifetime(shoot, old) {
		return nil
	}
	quotas, err := quotasOf(ctx, s.Reader, shoot)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := limitLifetime(shoot, lifetimeOf(quotas), s.now()); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func concernsLifetime(shoot, old *gardencorev1beta1.Shoot) bool {
	return old == nil || old.Annotations[gardencorev1beta1.ShootExpirationTimestamp] !=
		shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp] || !sameBinding(shoot, old)
}

// lifetimeOf returns the shortest lifetime that one of the quotas allows; 0 if none limits it.
func lifetimeOf(quotas []*gardencorev1beta1.Quota) time.Duration {
	shortest := time.Duration(0)
	for _, quota := range quotas {
		if quota.Spec.ClusterLifetimeDays == nil {
			continue
		}
		if lifetime := time.Duration(*quota.Spec.ClusterLifetimeDays) * 24 * time.Hour; shortest == 0 ||
			lifetime < shortest {
			shortest = lifetime
		}
	}
	return shortest
}

// limitLifetime sets when the shoot expires where that is not set, and refuses what is later than one more lifetime
// from now.
func limitLifetime(shoot *gardencorev1beta1.Shoot, lifetime time.Duration, now time.Time) error {
	if lifetime == 0 {
		return nil
	}
	value := shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp]
	if value == "" {
		born := now
		if !shoot.CreationTimestamp.IsZero() {
			born = shoot.CreationTimestamp.Time
		}
		setAnnotation(shoot, gardencorev1beta1.ShootExpirationTimestamp, born.Add(lifetime).UTC().Format(time.RFC3339))
		return nil
	}
	expiration, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return fmt.Errorf("metadata.annotations[%s]: %q is no time such as %s",
			gardencorev1beta1.ShootExpirationTimestamp, value, now.Add(lifetime).UTC().Format(time.RFC3339))
	}
	if latest := now.Add(lifetime); expiration.After(latest) {
		return fmt.Errorf("metadata.annotations[%s]: %s is too late: the quota lets the shoot live until %s at "+
			"most, %d days from now",
			gardencorev1beta1.ShootExpirationTimestamp, value, latest.UTC().Format(time.RFC3339),
			int(lifetime.Hours()/24))
	}
	return nil
}

// Validate implements admission.ValidationInterface: it holds the size of the shoot against the quotas' metrics.
func (s *shootQuotaValidator) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	shoot, old, ok := changedShoot(a)
	if !ok || a.GetSubresource() != "" || gardencorev1beta1.IsWorkerless(shoot) {
		return nil
	}
	quotas, err := quotasOf(ctx, s.Reader, shoot)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for _, quota := range quotas {
		if err := s.keepWithin(ctx, a, quota, shoot, old); err != nil {
			return err
		}
	}
	return nil
}

// keepWithin refuses what exceeds one quota, together with what others take and are about to take.
func (s *shootQuotaValidator) keepWithin(ctx context.Context, a admission.Attributes, quota *gardencorev1beta1.Quota,
	shoot, old *gardencorev1beta1.Shoot) error {
	profiles := &profileCache{reader: s.Reader}
	wanted, before, err := profiles.demandOfChange(ctx, shoot, old)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !exceedsAny(wanted, before, quota.Spec.Metrics) {
		return nil
	}
	value, err := json.Marshal(wanted)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	claim := reservation.Claim{Owner: nameOf(shoot), Value: string(value)}
	return s.reserve(ctx, a, quotaScope(quota, shoot), claim,
		func(ctx context.Context, claims []reservation.Claim) error {
			used, err := s.usedBy(ctx, shoot, quota, profiles, claims)
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			if err := checkMetrics(quota, used, wanted, before); err != nil {
				return admission.NewForbidden(a, err)
			}
			return nil
		})
}

// quotaScope is where shares of a quota are claimed. A quota of projects is a limit for each of them.
func quotaScope(quota *gardencorev1beta1.Quota, shoot *gardencorev1beta1.Shoot) string {
	scope := "quotas/" + nameOf(quota)
	if quota.Spec.Scope.Kind == quotaScopeProject {
		scope += "/" + shoot.Namespace
	}
	return scope
}

// usedBy returns what other shoots take of a quota: those that are stored, and those that are about to be.
func (s *shootQuotaValidator) usedBy(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	quota *gardencorev1beta1.Quota, profiles *profileCache, claims []reservation.Claim) (corev1.ResourceList, error) {
	others, err := othersInScope(ctx, s.Reader, shoot, quota)
	if err != nil {
		return nil, err
	}
	stored := map[string]corev1.ResourceList{}
	for _, other := range others {
		if stored[nameOf(other)], err = profiles.demand(ctx, other); err != nil {
			return nil, err
		}
	}
	for _, claim := range byOthers(claims, nameOf(shoot)) {
		var claimed corev1.ResourceList
		if err := json.Unmarshal([]byte(claim.Value), &claimed); err != nil {
			return nil, fmt.Errorf("claim of %s: %w", claim.Owner, err)
		}
		stored[claim.Owner] = larger(stored[claim.Owner], claimed)
	}
	used := corev1.ResourceList{}
	for _, taken := range stored {
		add(used, taken)
	}
	return used, nil
}

// quotasOf reads the quotas of the binding that a shoot uses. Quotas that are not there any more limit nothing.
func quotasOf(ctx context.Context, reader Reader, shoot *gardencorev1beta1.Shoot) ([]*gardencorev1beta1.Quota, error) {
	binding, err := bindingOf(ctx, reader, shoot)
	if err != nil || binding == nil {
		return nil, err
	}
	var quotas []*gardencorev1beta1.Quota
	for _, to := range binding.quotas {
		quota, err := get[*gardencorev1beta1.Quota](ctx, reader, gardencorev1beta1.Resource("quotas"), to.Namespace,
			to.Name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if err == nil {
			quotas = append(quotas, quota)
		}
	}
	return quotas, nil
}

// othersInScope returns the other shoots that count against a quota: those whose bindings name it, in the project's
// namespace if the quota is one of projects, everywhere if it is one of credentials.
func othersInScope(ctx context.Context, reader Reader, shoot *gardencorev1beta1.Shoot,
	quota *gardencorev1beta1.Quota) ([]*gardencorev1beta1.Shoot, error) {
	namespace := ""
	if quota.Spec.Scope.Kind == quotaScopeProject {
		namespace = shoot.Namespace
	}
	candidates, err := bindings(ctx, reader, namespace)
	if err != nil {
		return nil, err
	}
	var limited []binding
	namespaces := sets.New[string]()
	for _, candidate := range candidates {
		if bindsQuota(candidate, quota) {
			limited = append(limited, candidate)
			namespaces.Insert(candidate.object.GetNamespace())
		}
	}
	var others []*gardencorev1beta1.Shoot
	for _, namespace := range sets.List(namespaces) {
		shoots, err := list[*gardencorev1beta1.Shoot](ctx, reader, gardencorev1beta1.Resource("shoots"), namespace,
			fields.Everything())
		if err != nil {
			return nil, err
		}
		others = append(others, boundBy(shoots, limited, shoot)...)
	}
	return others, nil
}

// boundBy returns the shoots that use one of the bindings, without one of them.
func boundBy(shoots []*gardencorev1beta1.Shoot, bindings []binding,
	except *gardencorev1beta1.Shoot) []*gardencorev1beta1.Shoot {
	var bound []*gardencorev1beta1.Shoot
	for _, shoot := range shoots {
		if shoot.Namespace == except.Namespace && shoot.Name == except.Name {
			continue
		}
		for _, binding := range bindings {
			if binding.isOf(shoot) {
				bound = append(bound, shoot)
				break
			}
		}
	}
	return bound
}

// quotaScopeProject is the kind of scope of quotas that limit each project.
const quotaScopeProject = "Project"

// profileCache reads each cloud profile once.
type profileCache struct {
	reader Reader
	read   map[string]*gardencorev1beta1.CloudProfileSpec
}

// demandOfChange returns what a shoot takes, and what it took of the same quotas before a change.
func (c *profileCache) demandOfChange(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (wanted, before corev1.ResourceList, err error) {
	if wanted, err = c.demand(ctx, shoot); err != nil {
		return nil, nil, err
	}
	if old != nil && sameBinding(shoot, old) {
		before, err = c.demand(ctx, old)
	}
	return wanted, before, err
}

// demand returns what a shoot takes. One whose profile is gone takes nothing that could be known.
func (c *profileCache) demand(ctx context.Context, shoot *gardencorev1beta1.Shoot) (corev1.ResourceList, error) {
	if shoot.Spec.CloudProfile == nil {
		return nil, nil
	}
	key := shoot.Spec.CloudProfile.Kind + "/" + shoot.Spec.CloudProfile.Name
	if shoot.Spec.CloudProfile.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		key += "/" + shoot.Namespace
	}
	profile, ok := c.read[key]
	if !ok {
		var err error
		profile, err = profileOf(ctx, c.reader, shoot)
		if err != nil && !isMissing(err) && !errors.Is(err, errNotMerged) {
			return nil, err
		}
		if c.read == nil {
			c.read = map[string]*gardencorev1beta1.CloudProfileSpec{}
		}
		c.read[key] = profile
	}
	if profile == nil {
		return nil, nil
	}
	return demandOf(shoot, profile), nil
}
