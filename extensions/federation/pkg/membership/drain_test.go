package membership

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

func sleeping(wanted, is bool) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &wanted}
		s.Status.IsHibernated = is
	}
}

func TestRestsNow(t *testing.T) {
	now := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	drainedFor := func(d time.Duration) *clusterv1alpha1.Cluster {
		added := metav1.NewTime(now.Add(-d))
		return &clusterv1alpha1.Cluster{
			Spec: clusterv1alpha1.ClusterSpec{
				Taints: []corev1.Taint{{Key: clusterv1alpha1.TaintHibernated, TimeAdded: &added}},
			},
		}
	}
	marked := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotationsFor(true)}}
	for name, tc := range map[string]struct {
		shoot  *gardencorev1beta1.Shoot
		member *clusterv1alpha1.Cluster
		works  int
		want   bool
	}{
		"awake": {shoot(reachable), &clusterv1alpha1.Cluster{}, 3, false},
		"kept awake": {
			shoot(reachable, sleeping(false, false)), &clusterv1alpha1.Cluster{}, 3, false,
		},
		"asleep":                        {shoot(sleeping(true, true)), &clusterv1alpha1.Cluster{}, 3, true},
		"wakes up":                      {shoot(sleeping(false, true)), &clusterv1alpha1.Cluster{}, 3, true},
		"falls asleep, still used":      {shoot(reachable, sleeping(true, false)), drainedFor(time.Minute), 3, false},
		"falls asleep, drained":         {shoot(reachable, sleeping(true, false)), drainedFor(time.Minute), 0, true},
		"falls asleep, does not answer": {shoot(sleeping(true, false)), drainedFor(time.Minute), 3, true},
		"falls asleep, took too long": {
			shoot(reachable, sleeping(true, false)), drainedFor(21 * time.Minute), 3, true,
		},
		"falls asleep, not yet tainted": {
			shoot(reachable, sleeping(true, false)), &clusterv1alpha1.Cluster{}, 3, false,
		},
		"once it rests it goes on to so": {shoot(reachable, sleeping(true, false)), marked, 3, true},
	} {
		if got := restsNow(tc.shoot, tc.member, tc.works, now); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func scheduled(start, location string) *gardencorev1beta1.Shoot {
	return shoot(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{
			Schedules: []gardencorev1beta1.HibernationSchedule{{Start: &start, Location: &location}},
		}
	})
}

// A schedule that comes or goes is noticed at once: it may be due in a moment.
func TestSchedulesAreWatched(t *testing.T) {
	update := event.TypedUpdateEvent[*gardencorev1beta1.Shoot]{
		ObjectOld: shoot(), ObjectNew: scheduled("0 20 * * *", "UTC"),
	}
	if !membershipChanged().Update(update) {
		t.Error("a new schedule is not noticed")
	}
	update.ObjectOld = update.ObjectNew.DeepCopy()
	if membershipChanged().Update(update) {
		t.Error("the same schedule is looked at again")
	}
}

func TestSleepsSoon(t *testing.T) {
	now := time.Date(2024, 1, 1, 19, 45, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		shoot *gardencorev1beta1.Shoot
		soon  bool
		again time.Duration
	}{
		"no schedule":        {shoot(), false, 0},
		"in a quarter":       {scheduled("0 20 * * *", "UTC"), false, 5 * time.Minute},
		"in five minutes":    {scheduled("50 19 * * *", "UTC"), true, 5 * time.Minute},
		"a moment ago":       {scheduled("45 19 * * *", "UTC"), true, 0},
		"some time ago":      {scheduled("44 19 * * *", "UTC"), false, 23*time.Hour + 49*time.Minute},
		"in another place":   {scheduled("50 20 * * *", "Europe/Berlin"), true, 5 * time.Minute},
		"in no known place":  {scheduled("50 19 * * *", "Nowhere"), false, 0},
		"no cron expression": {scheduled("soon", "UTC"), false, 0},
	} {
		if soon, again := sleepsSoon(tc.shoot, now); soon != tc.soon || again != tc.again {
			t.Errorf("%s: got %v, %s", name, soon, again)
		}
	}
}

// A shoot that falls asleep is tainted first, marked when its Works are gone, and neither when it is awake again.
func TestSleepingMembersAreDrained(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	issued := 0
	clock := func() time.Time { return now }
	r := &Reconciler{Garden: gardenThatIssues(t, clock, &issued), Now: clock}
	fleet := fleetClient(t)
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.ExecutionNamespace("member1"), Name: "w"},
	}
	if err := fleet.Create(ctx, work); err != nil {
		t.Fatal(err)
	}
	step := func(what string, s *gardencorev1beta1.Shoot, taints int, rests string) {
		t.Helper()
		if err := r.sync(ctx, fleet, []gardencorev1beta1.Shoot{*s}); err != nil {
			t.Fatal(err)
		}
		member := &clusterv1alpha1.Cluster{}
		if err := fleet.Get(ctx, client.ObjectKey{Name: "member1"}, member); err != nil {
			t.Fatal(err)
		}
		if len(member.Spec.Taints) != taints || member.Annotations[clusterv1alpha1.HibernatedAnnotation] != rests {
			t.Errorf("%s: got taints %v, annotations %v", what, member.Spec.Taints, member.Annotations)
		}
		if taints > 0 && member.Spec.Taints[0] == own {
			return
		}
		before := member.DeepCopy()
		member.Spec.Taints = append([]corev1.Taint{own}, member.Spec.Taints...)
		if err := fleet.Patch(ctx, member, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	step("awake", shoot(reachable), 0, "")
	step("falls asleep", shoot(reachable, sleeping(true, false)), 2, "")
	if err := fleet.Delete(ctx, work); err != nil {
		t.Fatal(err)
	}
	step("drained", shoot(reachable, sleeping(true, false)), 2, "true")
	step("asleep", shoot(sleeping(true, true)), 2, "true")
	step("wakes up", shoot(sleeping(false, true)), 2, "true")
	step("awake again", shoot(reachable), 1, "")
}
