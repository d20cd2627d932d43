package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// fleetLease is renewed some time before now.
func fleetLease(before time.Duration, changes ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: "trellis-fleet-1a2b3c4d",
		Labels: map[string]string{clusterv1alpha1.DrainLeaseLabel: "true"},
	}}
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-before)))
	lease.Spec.LeaseDurationSeconds = new(int32(180))
	for _, change := range changes {
		change(lease)
	}
	return lease
}

// waited tells how long a shoot waits for its fleets, by a clock that runs when everybody waits.
func waited(t *testing.T, clientset kubernetes.Interface, patience time.Duration) (time.Duration, error) {
	t.Helper()
	started := time.Now()
	reason := awaitDrained(t.Context(), clientset, patience)
	return time.Since(started), reason
}

func TestAwaitDrained(t *testing.T) {
	unchanged := func(*coordinationv1.Lease) {}
	unlabelled := func(l *coordinationv1.Lease) { l.Labels = nil }
	elsewhere := func(l *coordinationv1.Lease) { l.Namespace = "default" }
	endless := func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = new(int32(1 << 30)) }
	never := func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }
	const year, limit = 365 * 24 * time.Hour, clusterv1alpha1.DrainTimeout
	for _, test := range []struct {
		name   string
		before time.Duration
		change func(*coordinationv1.Lease)
		want   time.Duration
	}{
		{"a member of no fleet", 0, unlabelled, 0},
		{"a Lease in another namespace", 0, elsewhere, 0},
		{"a fleet that has been away for long", 180 * time.Second, unchanged, 0},
		{"a Lease that was never renewed", 0, never, 0},
		{"a fleet that died a moment ago", 150 * time.Second, unchanged, 30 * time.Second},
		{"a fleet that does not come to an end", 0, unchanged, limit},
		{"an owner who writes an endless Lease", 0, endless, limit},
		{"an owner who writes one of the future", -year, unchanged, limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			took, reason := waited(t, kubernetesfake.NewClientset(fleetLease(test.before, test.change)), limit)
			if took != test.want {
				t.Errorf("%s: waited %s, want %s", test.name, took, test.want)
			}
			if gaveUp := test.want == limit; (reason != nil) != gaveUp {
				t.Errorf("%s: ended with %v", test.name, reason)
			}
		})
	}
}

func TestAwaitDrainedEndsWithTheLastLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := fleetLease(0)
		clientset := kubernetesfake.NewClientset(lease)
		time.AfterFunc(20*time.Second-time.Millisecond, func() {
			leases := clientset.CoordinationV1().Leases(lease.Namespace)
			_ = leases.Delete(context.Background(), lease.Name, metav1.DeleteOptions{})
		})
		if took, reason := waited(t, clientset, clusterv1alpha1.DrainTimeout); took != 20*time.Second || reason != nil {
			t.Errorf("waited %s, %v", took, reason)
		}
	})
}

func TestFleetsPatience(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, test := range []struct {
		name  string
		since *metav1.Time
		want  time.Duration
	}{
		{"first try", new(metav1.NewTime(now)), 2 * time.Minute},
		{"second try, a minute later", new(metav1.NewTime(now.Add(-time.Minute))), time.Minute},
		{"much later", new(metav1.NewTime(now.Add(-time.Hour))), -58 * time.Minute},
		{"not known", nil, 2 * time.Minute},
	} {
		if got := fleetsPatience(test.since, now); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	if err := awaitDrained(t.Context(), kubernetesfake.NewClientset(fleetLease(0)), -time.Minute); err != nil {
		t.Error(err)
	}
}
