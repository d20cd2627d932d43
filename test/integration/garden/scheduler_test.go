package garden

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/scheduler"
)

// startScheduler runs garden-scheduler as its own user until the test ends.
func startScheduler(t *testing.T, options scheduler.Options) {
	t.Helper()
	options.HealthAddress, options.MetricsAddress = "0", "0"
	config, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.GardenSchedulerUser)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx, config, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("garden-scheduler ended with: %v", err)
		}
	})
}

// newRegion makes a project and a cloud profile of the same name, whose only region has that name too.
func newRegion(t *testing.T, name string) (namespace string) {
	t.Helper()
	create(t, newProfile(name))
	return newProject(t, name)
}

func newReadySeed(t *testing.T, name, region string, change ...func(*gardencorev1beta1.Seed)) *gardencorev1beta1.Seed {
	t.Helper()
	seed := newSeed(name, region)
	for _, c := range change {
		c(seed)
	}
	create(t, seed)
	makeReady(t, seed)
	return seed
}

func setRoom(t *testing.T, seed *gardencorev1beta1.Seed, shoots string) {
	t.Helper()
	before := seed.DeepCopy()
	seed.Status.Allocatable = corev1.ResourceList{gardencorev1beta1.ResourceShoots: resource.MustParse(shoots)}
	seed.Status.Capacity = seed.Status.Allocatable
	if err := env.Client.Status().Patch(context.Background(), seed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func expectSeed(t *testing.T, shoot *gardencorev1beta1.Shoot, seed string) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if got := ptr.Deref(shoot.Spec.SeedName, ""); got != seed {
			return fmt.Errorf("shoot %s has seed %q, want %q; last operation: %+v", shoot.Name, got, seed,
				shoot.Status.LastOperation)
		}
		return nil
	})
}

func expectPending(t *testing.T, shoot *gardencorev1beta1.Shoot, parts ...string) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		last := shoot.Status.LastOperation
		if last == nil || last.Type != gardencorev1beta1.LastOperationTypeCreate ||
			last.State != gardencorev1beta1.LastOperationStatePending {
			return fmt.Errorf("shoot %s: last operation = %+v, want Create Pending", shoot.Name, last)
		}
		for _, part := range parts {
			if !strings.Contains(last.Description, part) {
				return fmt.Errorf("shoot %s: description %q lacks %q", shoot.Name, last.Description, part)
			}
		}
		return nil
	})
}

// expectEvent waits for an event about a shoot and returns its text.
func expectEvent(t *testing.T, shoot *gardencorev1beta1.Shoot, reason string, parts ...string) {
	t.Helper()
	eventually(t, func() error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(context.Background(), list, client.InNamespace(shoot.Namespace)); err != nil {
			return err
		}
		var notes []string
		for _, event := range list.Items {
			if event.Regarding.UID == shoot.UID && event.Reason == reason {
				notes = append(notes, event.Note)
			}
		}
		for _, part := range parts {
			if !strings.Contains(strings.Join(notes, "\n"), part) {
				return fmt.Errorf("events %s of shoot %s = %q, want %q", reason, shoot.Name, notes, part)
			}
		}
		return nil
	})
}

func TestScheduler(t *testing.T) {
	startScheduler(t, scheduler.Options{})
	t.Run("a shoot takes the place of another that goes", testRoomOfAnother)
	t.Run("a seed becomes visible", testSeedBecomesVisible)
	t.Run("a profile selects other seeds", testProfileSelectsOthers)
	t.Run("another scheduler's shoot is left alone", testOtherScheduler)
}

func testRoomOfAnother(t *testing.T) {
	namespace := newRegion(t, "room")
	seed := newReadySeed(t, "room", "room")
	setRoom(t, seed, "1")
	first := newShoot(namespace, "first", "room")
	create(t, first)
	expectSeed(t, first, "room")
	expectEvent(t, first, scheduler.EventSchedulingSuccessful, "Assigned to seed room.")
	if first.Status.LastOperation != nil {
		t.Errorf("last operation = %+v, want none from the scheduler", first.Status.LastOperation)
	}

	second := newShoot(namespace, "second", "room")
	create(t, second)
	expectPending(t, second, "No seed fits. 0/", "1 has no capacity (room)")
	expectEvent(t, second, scheduler.EventSchedulingFailed, "1 has no capacity (room)", "room is full: 1 of 1 shoots")

	// What makes no difference to the finding is not written again. The third shoot comes after all that is queued.
	unchanged := second.ResourceVersion
	seed.Status.Conditions[0].Message = "still ready"
	if err := env.Client.Status().Update(context.Background(), seed); err != nil {
		t.Fatal(err)
	}
	before := seed.DeepCopy()
	seed.Labels = map[string]string{"some": "label"}
	if err := env.Client.Patch(context.Background(), seed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	third := newShoot(namespace, "third", "room")
	create(t, third)
	expectPending(t, third)
	if err := get(second); err != nil || second.ResourceVersion != unchanged {
		t.Errorf("the waiting shoot was written again (%v): %+v", err, second.Status.LastOperation)
	}
	deleteConfirmed(t, third)

	deleteConfirmed(t, first)
	expectSeed(t, second, "room")
	if second.Status.LastOperation != nil {
		t.Errorf("last operation = %+v, want none once there is a seed", second.Status.LastOperation)
	}
}

func testSeedBecomesVisible(t *testing.T) {
	namespace := newRegion(t, "hidden")
	seed := newReadySeed(t, "hidden", "hidden", func(s *gardencorev1beta1.Seed) {
		s.Spec.Settings = &gardencorev1beta1.SeedSettings{
			Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: false},
		}
	})
	shoot := newShoot(namespace, "waits", "hidden")
	create(t, shoot)
	expectPending(t, shoot, "1 takes no new shoots (hidden)")
	before := seed.DeepCopy()
	seed.Spec.Settings.Scheduling.Visible = true
	if err := env.Client.Patch(context.Background(), seed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	expectSeed(t, shoot, "hidden")
}

func testProfileSelectsOthers(t *testing.T) {
	profile := newProfile("selects")
	profile.Spec.SeedSelector = &gardencorev1beta1.SeedSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"size": "big"}},
	}
	create(t, profile)
	namespace := newProject(t, "selects")
	newReadySeed(t, "selects", "selects")
	shoot := newShoot(namespace, "waits", "selects")
	create(t, shoot)
	expectPending(t, shoot, "is not selected (selects)")
	before := profile.DeepCopy()
	profile.Spec.SeedSelector = nil
	if err := env.Client.Patch(context.Background(), profile, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	expectSeed(t, shoot, "selects")
}

func testOtherScheduler(t *testing.T) {
	namespace := newRegion(t, "others")
	newReadySeed(t, "others", "others")
	foreign := newShoot(namespace, "foreign", "others",
		func(s *gardencorev1beta1.Shoot) { s.Spec.SchedulerName = new("own") })
	ours := newShoot(namespace, "ours", "others")
	create(t, foreign, ours)
	expectSeed(t, ours, "others")
	expectSeed(t, foreign, "")
	startScheduler(t, scheduler.Options{SchedulerName: "own"})
	expectSeed(t, foreign, "others")
}

func TestSchedulerByDistance(t *testing.T) {
	startScheduler(t, scheduler.Options{Strategy: scheduler.MinimalDistance})
	selected := map[string]string{"test": "distance"}
	profile := newProfile("north-1")
	profile.Spec.SeedSelector = &gardencorev1beta1.SeedSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: selected},
	}
	create(t, profile)
	namespace := newProject(t, "distance")
	for _, region := range []string{"north-2", "elsewhere-7"} {
		newReadySeed(t, region, region, func(s *gardencorev1beta1.Seed) { s.Labels = selected })
	}

	byName := newShoot(namespace, "by-name", "north-1")
	create(t, byName)
	expectSeed(t, byName, "north-2")

	distances := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gardencorev1beta1.GardenNamespace, Name: "distances",
			Labels:      map[string]string{scheduler.LabelPurpose: scheduler.PurposeRegionConfig},
			Annotations: map[string]string{scheduler.AnnotationCloudProfiles: "north-1"},
		},
		Data: map[string]string{"north-1": "elsewhere-7 is near"},
	}
	create(t, distances)
	configured := newShoot(namespace, "waits", "north-1")
	eventually(t, func() error { // until the scheduler knows the ConfigMap
		configured = newShoot(namespace, "waits", "north-1")
		if err := env.Client.Create(context.Background(), configured); err != nil {
			return err
		}
		expectDecision(t, configured)
		if configured.Spec.SeedName == nil {
			return nil
		}
		deleteConfirmed(t, configured)
		return fmt.Errorf("assigned to %s without distances", *configured.Spec.SeedName)
	})
	expectPending(t, configured, "ConfigMap garden/distances, data.north-1")
	distances.Data["north-1"] = "north-2: 50\nelsewhere-7: 20\n"
	if err := env.Client.Update(context.Background(), distances); err != nil {
		t.Fatal(err)
	}
	expectSeed(t, configured, "elsewhere-7")
	if err := env.Client.Delete(context.Background(), distances); err != nil {
		t.Fatal(err)
	}
}

// expectDecision waits until the shoot has a seed or is told why not.
func expectDecision(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if shoot.Spec.SeedName == nil && shoot.Status.LastOperation == nil {
			return fmt.Errorf("shoot %s is undecided", shoot.Name)
		}
		return nil
	})
}
