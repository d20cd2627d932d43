package shoot

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestUntilSync(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	window := func(begin, end string) *gardencorev1beta1.Maintenance {
		return &gardencorev1beta1.Maintenance{
			ConfineSpecUpdateRollout: new(true),
			TimeWindow:               &gardencorev1beta1.MaintenanceTimeWindow{Begin: begin, End: end},
		}
	}
	unconfined := window("220000+0000", "230000+0000")
	unconfined.ConfineSpecUpdateRollout = nil
	for _, test := range []struct {
		name        string
		ago         time.Duration
		state       gardencorev1beta1.LastOperationState
		version     string
		maintenance *gardencorev1beta1.Maintenance
		want        time.Duration
	}{
		{"settled a moment ago", 10 * time.Minute, "Succeeded", "v1", nil, 50 * time.Minute},
		{"settled long ago", 2 * time.Hour, "Succeeded", "v1", nil, 0},
		{"not settled", 10 * time.Minute, "Error", "v1", window("220000+0000", "230000+0000"), 0},
		{"by another gardenlet", 10 * time.Minute, "Succeeded", "v0", nil, 0},
		{"changes are not confined", 2 * time.Hour, "Succeeded", "v1", unconfined, 0},
		{"before the window", 2 * time.Hour, "Succeeded", "v1", window("220000+0000", "230000+0000"), 10 * time.Hour},
		{"after the window", 2 * time.Hour, "Succeeded", "v1", window("100000+0000", "110000+0000"), 22 * time.Hour},
		{
			"another gardenlet, before the window", 2 * time.Hour, "Succeeded", "v0",
			window("130000+0000", "140000+0000"), time.Hour,
		},
		{"in the window", 2 * time.Hour, "Succeeded", "v1", window("113000+0000", "123000+0000"), 0},
		{
			"in the window, settled a moment ago", 10 * time.Minute, "Succeeded", "v1",
			window("113000+0000", "123000+0000"), 50 * time.Minute,
		},
		{"in a window over midnight", 2 * time.Hour, "Succeeded", "v1", window("110000+0000", "010000+0000"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{Identity: gardencorev1beta1.Gardener{Version: "v1"}, Config: &config.Configuration{}}
			r.Config.Controllers.Shoot.SyncPeriod = &metav1.Duration{Duration: time.Hour}
			shoot := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Maintenance: test.maintenance}}
			shoot.Status.Gardener.Version = test.version
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
				State: test.state, LastUpdateTime: metav1.NewTime(noon.Add(-test.ago)),
			}
			// A period is up to a tenth longer, and of the window's hour up to a half passes.
			most := test.want + 6*time.Minute
			if test.version != "v1" || test.want > time.Hour {
				most = test.want + 30*time.Minute
			}
			if got := r.untilSync(shoot, noon); got < test.want || got >= most || test.want == 0 && got != 0 {
				t.Errorf("got %s, want %s or little more", got, test.want)
			}
		})
	}
}

// shootsOf a seed that were settled by a version of gardenlet, so long ago.
func shootsOf(count int, version string, at time.Time) []client.Object {
	var shoots []client.Object
	for i := range count {
		shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-p", Name: fmt.Sprintf("s%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
		}}
		shoot.Status.Gardener.Version = version
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
			State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(at),
		}
		shoots = append(shoots, shoot)
	}
	return shoots
}

// started returns a reconciler of version v1 that has begun at noon with these shoots.
func started(t *testing.T, noon time.Time, shoots []client.Object) *Reconciler {
	t.Helper()
	r := &Reconciler{
		Identity: gardencorev1beta1.Gardener{Version: "v1"}, Config: &config.Configuration{},
		Shoots: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoots...).Build(),
	}
	r.Config.Controllers.Shoot.SyncPeriod = &metav1.Duration{Duration: time.Hour}
	if err := r.beginResync(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	return r
}

// Another gardenlet, or one that was away for long, does not begin with all shoots at once, and has begun with all in
// time: the three of a landscape within seconds.
func TestResyncIsSpread(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		count   int
		version string
		window  time.Duration
	}{
		"another version":     {100, "v0", 400 * time.Second},
		"the same, long away": {100, "v1", 400 * time.Second},
		"a landscape":         {3, "v0", 12 * time.Second},
		"very many":           {1000, "v0", 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			shoots := shootsOf(test.count, test.version, noon.Add(-24*time.Hour))
			r := started(t, noon, shoots)
			halves := [2]int{}
			for _, object := range shoots {
				shoot := object.(*gardencorev1beta1.Shoot)
				wait := r.untilSync(shoot, noon)
				if wait < 0 || wait >= test.window {
					t.Fatalf("%s waits %s of %s", shoot.Name, wait, test.window)
				}
				halves[2*wait/test.window]++
				if late := r.untilSync(shoot, noon.Add(wait)); late != 0 {
					t.Errorf("%s waits another %s", shoot.Name, late)
				}
			}
			if test.count >= 100 && (halves[0] < test.count*3/10 || halves[1] < test.count*3/10) {
				t.Errorf("the halves of the window have %v shoots", halves)
			}
		})
	}
}

// What somebody asks for does not wait for its turn: a changed specification, an operation, which makes a new
// generation as well, or the retry of what failed.
func TestWhatIsAskedForDoesNotWait(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	shoots := shootsOf(1000, "v0", noon)
	r := started(t, noon, shoots)
	for i, change := range []func(*gardencorev1beta1.Shoot){
		func(s *gardencorev1beta1.Shoot) { s.Generation = 2 },
		func(s *gardencorev1beta1.Shoot) { s.Status.LastOperation = nil },
		func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateError
		},
	} {
		shoot := shoots[i].(*gardencorev1beta1.Shoot)
		if r.untilSync(shoot, noon) == 0 {
			t.Fatalf("%s has its turn at once, and shows nothing", shoot.Name)
		}
		change(shoot)
		if wait := r.untilSync(shoot, noon); wait != 0 {
			t.Errorf("change %d waits %s", i, wait)
		}
	}
}

// Who may change a Shoot must not have the seed do nothing else, nor end its reconciliation.
func TestAttackSyncPeriod(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, annotation string
		respect               bool
		least                 time.Duration
	}{
		"all the time":              {"garden-p", "1ns", true, time.Hour},
		"never":                     {"garden-p", "2562047h", false, time.Hour},
		"backwards":                 {"garden-p", "-1h", true, time.Hour},
		"no period":                 {"garden-p", "often", true, time.Hour},
		"longer, as operators let":  {"garden-p", "5h", true, 5 * time.Hour},
		"longer, for the operators": {"garden", "5h", false, 5 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Config: &config.Configuration{}}
			r.Config.Controllers.Shoot.SyncPeriod = &metav1.Duration{Duration: time.Hour}
			r.Config.Controllers.Shoot.RespectSyncPeriodOverwrite = test.respect
			shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
				Namespace:   test.namespace,
				Annotations: map[string]string{gardencorev1beta1.ShootSyncPeriod: test.annotation},
			}}
			if got := r.periodOf(shoot); got < test.least || got > test.least+test.least/10 {
				t.Errorf("a period of %s, want %s or little more", got, test.least)
			}
		})
	}
}
