package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/rollout"
)

// step is what of an etcd is deployed next.
type step struct {
	values Values
	names  secretNames
	// from is the resourceVersion of the StatefulSet that it is a step on the way from; empty if it leads to the end.
	from string
}

// nextStep returns what is deployed on the way from the StatefulSet that is there, if any, to what is wanted. What is
// to be a single member, and what sleeps, is changed at once. Of several members, some are of before a change and some
// of after it for a while:
//
//   - A single member that is to get others serves on while they join it, and is replaced by one of several then: a
//     StatefulSet replaces no pod while one with a higher ordinal is not ready. So a member that they cannot join is
//     replaced by a single one first: one that does not serve, that is of before single members listened for others, or
//     that began before others were to be trusted as peers.
//   - New certificates come before other authorities to trust, which may be without those of the old certificates. All
//     pods trust the authorities of the new ones by then: the preparation of a rotation has seen to that.
func nextStep(present *appsv1.StatefulSet, v Values, names secretNames) (step, error) {
	next := step{values: v, names: names}
	if v.Availability.IsHigh() && v.BackupDir != "" {
		return next, errors.New("etcds with several members back up to no directory of a node; leave BackupDir out")
	}
	if present == nil {
		if !v.Availability.IsHigh() {
			next.names = names.ofSingle(v, secretNames{}, true)
		}
		return next, nil
	}
	mounted := mountedSecrets(present)
	if !v.Availability.IsHigh() {
		if isOfSeveral(present) {
			return next, fmt.Errorf("StatefulSet %s has several members and cannot have a single one again: keep "+
				"spec.controlPlane.highAvailability of the Shoot", client.ObjectKeyFromObject(present))
		}
		next.names = names.ofSingle(v, mounted, isAsleep(present))
		return next, nil
	}
	if isAsleep(present) {
		return next, nil
	}
	isOwn := mounted.areOwn(v.Role)
	isSingle := ptr.Deref(present.Spec.Replicas, 1) == 1
	if isSingle && (mounted.peer == "" || isOwn && mounted.peersAtStart != names.peerCA ||
		rollout.OfStatefulSet(present).Check() != nil) {
		next.values.Availability, next.values.Replicas = component.Availability{}, 1
		next.names, next.from = names.ofSingle(v, secretNames{}, false), present.ResourceVersion
		return next, nil
	}
	if isOwn {
		return next, nil
	}
	isTrustNew := mounted.ca != names.ca || mounted.peerCA != names.peerCA
	areCertificatesNew := mounted.server != names.server || mounted.peer != names.peer
	if isTrustNew && (areCertificatesNew || !isUpdated(present)) {
		next.names.ca, next.names.peerCA, next.from = mounted.ca, mounted.peerCA, present.ResourceVersion
	}
	return next, nil
}

// isOfSeveral says whether a StatefulSet is one of several members, which may sleep.
func isOfSeveral(present *appsv1.StatefulSet) bool {
	arguments := argumentsIn(present)
	hasMembers := func(argument string) bool { return strings.HasPrefix(argument, membersFlag) }
	return slices.ContainsFunc(arguments, hasMembers) && !slices.Contains(arguments, singleFlag)
}

// isUpdated says whether all pods are of the newest template, be they ready or not.
func isUpdated(present *appsv1.StatefulSet) bool {
	return rollout.OfStatefulSet(present).Progressing() == ""
}

// mountedSecrets are those that the pods of a StatefulSet mount.
func mountedSecrets(set *appsv1.StatefulSet) secretNames {
	secretOf := func(volume, file string) string {
		isFile := func(item corev1.KeyToPath) bool { return item.Path == file }
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.Name != volume || v.Projected == nil {
				continue
			}
			for _, source := range v.Projected.Sources {
				if source.Secret != nil && slices.ContainsFunc(source.Secret.Items, isFile) {
					return source.Secret.Name
				}
			}
		}
		return ""
	}
	return secretNames{
		ca: secretOf(pkiVolume, "ca.crt"), server: secretOf(pkiVolume, "tls.crt"),
		peerCA: secretOf(peerVolume, "ca.crt"), peer: secretOf(peerVolume, "tls.crt"),
		peersAtStart: set.Spec.Template.Annotations[peersAtStart],
	}
}

// apply applies a step. One that leads to another is refused when the StatefulSet is no longer the one it starts from:
// it would take members away that have joined since.
func (d *deployer) apply(ctx context.Context, next step) error {
	for _, object := range objects(d.namespace, next.values, next.names) {
		desired, err := apply.ToUnstructured(d.client.Scheme(), object)
		if err != nil {
			return fmt.Errorf("applying %s: %w", apply.Describe(d.client.Scheme(), object), err)
		}
		if _, isSet := object.(*appsv1.StatefulSet); isSet && next.from != "" {
			desired.SetResourceVersion(next.from)
		}
		if err := apply.Unstructured(ctx, d.client, apply.Gardenlet, desired); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements component.Waiter. It makes the steps that are left, and returns when clients are served with the
// newest certificates.
func (d *deployer) Wait(ctx context.Context) error {
	for {
		set := &appsv1.StatefulSet{ObjectMeta: d.meta(Name(d.values.Role))}
		if err := component.WaitUntilHealthy(ctx, d.client, set); err != nil {
			return err
		}
		isLast, err := d.isLast(ctx, set)
		if err != nil {
			return err
		}
		if isLast {
			return d.settle(ctx, set)
		}
		if err := d.Deploy(ctx); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// isLast says whether no step is left.
func (d *deployer) isLast(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	if !d.values.Availability.IsHigh() {
		return true, nil
	}
	generated, err := d.generateSecrets(ctx)
	if err != nil {
		return false, err
	}
	return ptr.Deref(set.Spec.Replicas, 1) == d.values.Replicas && mountedSecrets(set) == generated.names(), nil
}
