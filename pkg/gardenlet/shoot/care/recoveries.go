package care

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// annotationToldRecovery is, on the StatefulSet of an etcd, when the last recovery of its first member had ended that
// an event was made of; for the others, their ordinal follows. Events do not last as long as what they are about.
const annotationToldRecovery = "etcd.trellis.garden/told-recovery"

func annotationOfMember(ordinal int) string {
	if ordinal == 0 {
		return annotationToldRecovery
	}
	return fmt.Sprintf("%s-%d", annotationToldRecovery, ordinal)
}

// clockSkew is how far the clock of a node may be ahead.
const clockSkew = time.Minute

// tellRecoveries makes an event in the garden of each recovery that there was none of.
func (c *Reconciler) tellRecoveries(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcds []etcdView) error {
	var all []error
	for _, etcd := range etcds {
		for ordinal, member := range etcd.members {
			if member.told != nil && len(member.told.Recoveries) > 0 {
				all = append(all, c.tellRecovery(ctx, shoot, etcd, ordinal))
			}
		}
	}
	return errors.Join(all...)
}

// tellRecovery tells of one recovery of a member; the next one is told at the next look.
func (c *Reconciler) tellRecovery(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcd etcdView,
	ordinal int) error {
	member, annotation := etcd.members[ordinal], annotationOfMember(ordinal)
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: etcd.name}
	if err := c.Seed.Get(ctx, key, set); err != nil {
		return fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	now := c.now()
	recovery := untold(member.told.Recoveries, set.Annotations[annotation], now)
	if recovery == nil {
		return nil
	}
	event := recoveryEvent(shoot, member.name, recovery, "gardenlet-"+c.Config.SeedConfig.Name, now)
	if err := client.IgnoreAlreadyExists(c.Garden.Create(ctx, event)); err != nil {
		return fmt.Errorf("making event %s about a recovery: %w", client.ObjectKeyFromObject(event), err)
	}
	before := set.DeepCopy()
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, annotation, recovery.Finished.UTC().Format(time.RFC3339Nano))
	if err := c.Seed.Patch(ctx, set, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting on StatefulSet %s that a recovery was told: %w", key, err)
	}
	return nil
}

// untold returns the first recovery that ended after the time of the annotation. What is of long ago or of the future,
// as far as clocks may differ, is nothing to tell.
func untold(recoveries []status.Recovery, last string, now time.Time) *status.Recovery {
	after, err := time.Parse(time.RFC3339Nano, last)
	if oldest := now.Add(-recoveryAge); err != nil || after.Before(oldest) {
		after = oldest
	}
	var first *status.Recovery
	for i := range recoveries {
		ended := recoveries[i].Finished
		if ended.After(after) && ended.Before(now.Add(clockSkew)) && (first == nil || ended.Before(first.Finished)) {
			first = &recoveries[i]
		}
	}
	return first
}

// recoveryEvent has the same name whenever it is made of the same recovery.
func recoveryEvent(shoot *gardencorev1beta1.Shoot, etcd string, recovery *status.Recovery, reporter string,
	now time.Time) *eventsv1.Event {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", shoot.UID, etcd, recovery.Finished.UnixNano()))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: fmt.Sprintf("%s.%x", shoot.Name, sum[:8])},
		EventTime:  metav1.NewMicroTime(now),
		Type:       corev1.EventTypeWarning, Reason: reasonRecovered, Action: "Recover",
		ReportingController: "gardenlet", ReportingInstance: reporter,
		Regarding: corev1.ObjectReference{
			APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot", Namespace: shoot.Namespace,
			Name: shoot.Name, UID: shoot.UID,
		},
		Note: etcd + " " + recovery.Describe(),
	}
}
