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

// What was told of an etcd is noted on its StatefulSet, for its first member; for the others, their ordinal follows.
// Events do not last as long as what they are about.
const (
	// annotationToldRecovery is when the last recovery had ended that an event was made of.
	annotationToldRecovery = "etcd.trellis.garden/told-recovery"
	// annotationToldDifference is since when data differed of which an event was made last.
	annotationToldDifference = "etcd.trellis.garden/told-difference"
)

func annotationOfMember(annotation string, ordinal int) string {
	if ordinal == 0 {
		return annotation
	}
	return fmt.Sprintf("%s-%d", annotation, ordinal)
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
	member := etcd.members[ordinal]
	note := annotationOfMember(annotationToldRecovery, ordinal)
	return c.tellOnce(ctx, shoot, etcd, note, func(last string) *occurrence {
		recovery := untold(member.told.Recoveries, last, c.now())
		if recovery == nil {
			return nil
		}
		return &occurrence{
			at: recovery.Finished, of: member.name, reason: reasonRecovered, action: "Recover",
			text: member.name + " " + recovery.Describe(),
		}
	})
}

// tellDifferences makes an event in the garden of data that is not what it should be, once for each.
func (c *Reconciler) tellDifferences(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcds []etcdView) error {
	var all []error
	for _, etcd := range etcds {
		for ordinal, member := range etcd.members {
			if member.told != nil && member.told.Differs != nil {
				all = append(all, c.tellDifference(ctx, shoot, etcd, ordinal))
			}
		}
	}
	return errors.Join(all...)
}

func (c *Reconciler) tellDifference(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcd etcdView,
	ordinal int) error {
	member := etcd.members[ordinal]
	note := annotationOfMember(annotationToldDifference, ordinal)
	return c.tellOnce(ctx, shoot, etcd, note, func(last string) *occurrence {
		since := member.told.Differs.Since
		before, err := time.Parse(time.RFC3339Nano, last)
		if err == nil && !since.After(before) || since.After(c.now().Add(clockSkew)) {
			return nil
		}
		return &occurrence{
			at: since, of: member.name + "/difference", reason: reasonDiffers, action: "Compare",
			text: member.name + " " + member.told.Differs.Describe(),
		}
	})
}

// occurrence is what an event tells, and of what at which time: by these it is known.
type occurrence struct {
	at                       time.Time
	of, reason, action, text string
}

// tellOnce makes an event of what is to tell after an annotation of an etcd, and then annotates that.
func (c *Reconciler) tellOnce(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcd etcdView, annotation string,
	next func(last string) *occurrence) error {
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: etcd.name}
	if err := c.Seed.Get(ctx, key, set); err != nil {
		return fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	told := next(set.Annotations[annotation])
	if told == nil {
		return nil
	}
	event := eventOf(shoot, told, "gardenlet-"+c.Config.SeedConfig.Name, c.now())
	if err := client.IgnoreAlreadyExists(c.Garden.Create(ctx, event)); err != nil {
		return fmt.Errorf("making event %s about an etcd: %w", client.ObjectKeyFromObject(event), err)
	}
	before := set.DeepCopy()
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, annotation, told.at.UTC().Format(time.RFC3339Nano))
	if err := c.Seed.Patch(ctx, set, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting on StatefulSet %s what was told: %w", key, err)
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

// eventOf has the same name whenever it tells the same.
func eventOf(shoot *gardencorev1beta1.Shoot, told *occurrence, reporter string, now time.Time) *eventsv1.Event {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", shoot.UID, told.of, told.at.UnixNano()))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: fmt.Sprintf("%s.%x", shoot.Name, sum[:8])},
		EventTime:  metav1.NewMicroTime(now),
		Type:       corev1.EventTypeWarning, Reason: told.reason, Action: told.action,
		ReportingController: "gardenlet", ReportingInstance: reporter,
		Regarding: corev1.ObjectReference{
			APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot", Namespace: shoot.Namespace,
			Name: shoot.Name, UID: shoot.UID,
		},
		Note: told.text,
	}
}
