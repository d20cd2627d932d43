// Package event deletes events of the garden that nobody needs any more, before kube-apiserver would.
package event

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// DefaultTTL is how long events are kept that are not about shoots.
	DefaultTTL = time.Hour
	// period is how often old events are looked for.
	period = 10 * time.Minute
	// pageSize bounds how many events are in memory at once.
	pageSize = 500
)

// Retention deletes events that are older than the time to live. Those about shoots stay for as long as kube-apiserver
// keeps them: they are what users look at. It implements manager.Runnable.
type Retention struct {
	// Client must not read from a cache: watching all events would cost far more than reading them now and then.
	Client client.Client
	TTL    time.Duration
	Now    func() time.Time
}

// SetupWithManager registers the runnable.
func (r *Retention) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		uncached, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
		if err != nil {
			return fmt.Errorf("client for events: %w", err)
		}
		r.Client = uncached
	}
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return mgr.Add(r)
}

// Start deletes old events from time to time until the context ends.
func (r *Retention) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("event-retention")
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		deleted, err := r.sweep(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error(err, "Cannot delete old events, trying again", "after", period)
		case deleted > 0:
			log.V(1).Info("Deleted old events", "count", deleted)
		}
	}, period)
	return nil
}

// sweep deletes what is too old and tells how many events that were.
func (r *Retention) sweep(ctx context.Context) (deleted int, err error) {
	page := &corev1.EventList{}
	for {
		err := r.Client.List(ctx, page, client.Limit(pageSize), client.Continue(page.Continue),
			client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("involvedObject.kind", "Shoot")})
		if err != nil {
			return deleted, fmt.Errorf("listing events: %w", err)
		}
		for i := range page.Items {
			if !expired(&page.Items[i], r.TTL, r.Now()) {
				continue
			}
			if err := client.IgnoreNotFound(r.Client.Delete(ctx, &page.Items[i])); err != nil {
				return deleted, fmt.Errorf("deleting event %s: %w", client.ObjectKeyFromObject(&page.Items[i]), err)
			}
			deleted++
		}
		if page.Continue == "" {
			return deleted, nil
		}
	}
}

// expired tells whether an event may go: whether it is not about a shoot and was last seen longer ago than its time to
// live.
func expired(event *corev1.Event, ttl time.Duration, now time.Time) bool {
	aboutShoot := event.InvolvedObject.Kind == "Shoot" &&
		event.InvolvedObject.GroupVersionKind().Group == gardencorev1beta1.GroupName
	return !aboutShoot && now.Sub(lastSeen(event)) >= ttl
}

// lastSeen is the latest of the times that an event carries. Events of the two APIs carry different ones.
func lastSeen(event *corev1.Event) time.Time {
	latest := event.CreationTimestamp.Time
	for _, t := range []time.Time{event.FirstTimestamp.Time, event.LastTimestamp.Time, event.EventTime.Time} {
		if t.After(latest) {
			latest = t
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(latest) {
		latest = event.Series.LastObservedTime.Time
	}
	return latest
}
