package event

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newEvent(name, apiVersion, kind string, age time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)),
		},
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind},
	}
}

func TestExpired(t *testing.T) {
	repeated := newEvent("repeated", "v1", "Secret", 3*time.Hour)
	repeated.LastTimestamp = metav1.NewTime(now.Add(-time.Minute))
	series := newEvent("series", "v1", "Secret", 3*time.Hour)
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(now.Add(-time.Minute))}
	for _, test := range []struct {
		event *corev1.Event
		want  bool
	}{
		{newEvent("young", "v1", "Secret", 59*time.Minute), false},
		{newEvent("old", "v1", "Secret", time.Hour), true},
		{newEvent("shoot", "core.gardener.cloud/v1beta1", "Shoot", 3*time.Hour), false},
		{newEvent("other-shoot", "plants.example/v1", "Shoot", 3*time.Hour), true},
		{repeated, false},
		{series, false},
	} {
		if got := expired(test.event, time.Hour, now); got != test.want {
			t.Errorf("%s: expired = %t, want %t", test.event.Name, got, test.want)
		}
	}
}

func TestSweep(t *testing.T) {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).
		WithObjects(newEvent("old", "v1", "Secret", 2*time.Hour),
			newEvent("young", "v1", "Secret", time.Minute)).Build()
	r := &Retention{Client: noSelector{c}, TTL: time.Hour, Now: func() time.Time { return now }}
	if deleted, err := r.sweep(ctx); err != nil || deleted != 1 {
		t.Errorf("deleted %d, %v; want 1", deleted, err)
	}
	left := &corev1.EventList{}
	if err := c.List(ctx, left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "young" {
		t.Errorf("left = %v, %v; want the young one", left.Items, err)
	}
}

// noSelector leaves out what the fake client cannot do: field selectors with "not equal", and pages.
type noSelector struct{ client.Client }

func (c noSelector) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return c.Client.List(ctx, list)
}
