package trellisctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventHeader names the columns of events.
var eventHeader = []string{"EVENT", "SEEN", "FROM", "MESSAGE"}

// eventCells are what stands in the columns of an event.
func eventCells(event *corev1.Event, now time.Time) []string {
	return []string{
		event.Reason, whenSeen(event, now), orElse(event.ReportingController, event.Source.Component),
		warning(event) + event.Message,
	}
}

// eventsAbout lists what happened to an object of the garden, or to another one of its name, the newest last.
func (s *Session) eventsAbout(ctx context.Context, kind, namespace, name string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := s.client.List(ctx, list, client.InNamespace(eventNamespace(namespace)),
		client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name})
	if err != nil {
		return nil, fmt.Errorf("listing events of %s %s: %w", strings.ToLower(kind), name, err)
	}
	sortEvents(list.Items)
	return list.Items, nil
}

// eventNamespace is where the events of objects of a namespace are; those of objects without one have a place, too.
func eventNamespace(namespace string) string { return orElse(namespace, metav1.NamespaceDefault) }

// sortEvents has the newest last.
func sortEvents(events []corev1.Event) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b)), cmp.Compare(a.Name, b.Name))
	})
}

// lastSeen is when an event happened last. Newer recorders and older ones note that in different fields.
func lastSeen(event *corev1.Event) time.Time {
	latest := event.CreationTimestamp.Time
	for _, at := range []time.Time{event.FirstTimestamp.Time, event.LastTimestamp.Time, event.EventTime.Time} {
		if at.After(latest) {
			latest = at
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(latest) {
		latest = event.Series.LastObservedTime.Time
	}
	return latest
}

// whenSeen is "5m" or "5m (x3)".
func whenSeen(event *corev1.Event, now time.Time) string {
	count := event.Count
	if event.Series != nil {
		count = event.Series.Count
	}
	when := sinceThen(metav1.NewTime(lastSeen(event)), now)
	if count > 1 {
		return fmt.Sprintf("%s (x%d)", when, count)
	}
	return when
}

func warning(event *corev1.Event) string {
	if event.Type == corev1.EventTypeWarning {
		return "Warning: "
	}
	return ""
}
