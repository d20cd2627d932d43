package maintenance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 11, 1, 22, 30, 0, 0, time.UTC)

// versions reads a list such as "1.35.4 1.36.3-deprecated": supported unless the suffix says otherwise.
func versions(list string) []gardencorev1beta1.ExpirableVersion {
	var result []gardencorev1beta1.ExpirableVersion
	for text := range strings.FieldsSeq(list) {
		version, classification, _ := strings.Cut(text, "-")
		entry := gardencorev1beta1.ExpirableVersion{Version: version}
		if classification != "" {
			entry.Classification = new(gardencorev1beta1.VersionClassification(classification))
		}
		result = append(result, entry)
	}
	return result
}

func imageVersions(list string) []gardencorev1beta1.MachineImageVersion {
	var result []gardencorev1beta1.MachineImageVersion
	for _, version := range versions(list) {
		result = append(result, gardencorev1beta1.MachineImageVersion{
			ExpirableVersion: gardencorev1beta1.ExpirableVersion{
				Version: version.Version, Classification: version.Classification,
			},
		})
	}
	return result
}

func TestKubernetesUpdate(t *testing.T) {
	tests := map[string]struct {
		current, offered string
		auto             bool
		worker           string // version of the pool, when it has one of its own
		want, wantWorker string
	}{
		"newest patch": {
			current: "1.35.1", offered: "1.35.1 1.35.3 1.35.4 1.36.3", auto: true, want: "1.35.4",
		},
		"up to date": {
			current: "1.35.4", offered: "1.35.4 1.36.3", auto: true, want: "1.35.4",
		},
		"previews are never chosen": {
			current: "1.35.1", offered: "1.35.1 1.35.3 1.35.4-preview", auto: true, want: "1.35.3",
		},
		"supported before deprecated": {
			current: "1.35.1", offered: "1.35.1 1.35.3 1.35.4-deprecated", auto: true, want: "1.35.3",
		},
		"deprecated before nothing": {
			current: "1.35.1", offered: "1.35.1 1.35.4-deprecated", auto: true, want: "1.35.4",
		},
		"switched off":             {current: "1.35.1", offered: "1.35.1 1.35.4", want: "1.35.1"},
		"switched off but expired": {current: "1.35.1", offered: "1.35.1-expired 1.35.4", want: "1.35.4"},
		"expired minor": {
			current: "1.34.4", offered: "1.34.4-expired 1.35.3 1.35.4 1.36.3", want: "1.35.4",
		},
		"only expired versions in the next one": {
			current: "1.34.4", offered: "1.34.4-expired 1.35.3-expired 1.35.4-expired 1.36.3", want: "1.35.4",
		},
		"no longer offered": {current: "1.35.1", offered: "1.35.4", want: "1.35.4"},
		"never two minors":  {current: "1.34.4", offered: "1.34.4-expired 1.36.3", want: "1.34.4"},
		"pools follow": {
			current: "1.35.4", offered: "1.34.1 1.34.4 1.35.4", auto: true, worker: "1.34.1", want: "1.35.4",
			wantWorker: "1.34.4",
		},
		"expired pools go up to the next minor": {
			current: "1.36.3", offered: "1.34.4-expired 1.35.4 1.36.3", worker: "1.34.4", want: "1.36.3",
			wantWorker: "1.35.4",
		},
		"pools never pass by the control plane": {
			current: "1.35.3", offered: "1.35.1-expired 1.35.3 1.35.4", worker: "1.35.1", want: "1.35.3",
			wantWorker: "1.35.3",
		},
		"the lifecycle of a version is followed": {
			current: "1.35.1", offered: "1.35.1 1.35.4-unavailable", auto: true, want: "1.35.1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			shoot := &gardencorev1beta1.Shoot{}
			shoot.Spec.Kubernetes.Version = test.current
			shoot.Spec.Maintenance = &gardencorev1beta1.Maintenance{
				AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{KubernetesVersion: test.auto},
			}
			if test.worker != "" {
				shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{
					{Name: "pool", Kubernetes: &gardencorev1beta1.WorkerKubernetes{Version: &test.worker}},
				}
			}
			changes, _ := Update(shoot, &gardencorev1beta1.CloudProfileSpec{
				Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: versions(test.offered)},
			}, now)
			if got := shoot.Spec.Kubernetes.Version; got != test.want {
				t.Errorf("version = %s, want %s (%v)", got, test.want, changes)
			}
			if test.worker != "" && *shoot.Spec.Provider.Workers[0].Kubernetes.Version != test.wantWorker {
				t.Errorf("version of the pool = %s, want %s (%v)", *shoot.Spec.Provider.Workers[0].Kubernetes.Version,
					test.wantWorker, changes)
			}
		})
	}
}

func TestForcedUpdatesDropWhatTheNewVersionForbids(t *testing.T) {
	shoot := newShoot()
	shoot.Spec.Kubernetes.Version = "1.34.4"
	shoot.Spec.Addons = &gardencorev1beta1.Addons{}
	profile := &gardencorev1beta1.CloudProfileSpec{
		Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: versions("1.34.4-expired 1.35.4")},
	}
	changes, failures := Update(shoot, profile, now)
	if len(failures) > 0 || shoot.Spec.Kubernetes.Version != "1.35.4" || shoot.Spec.Addons != nil {
		t.Errorf("version %s, addons %v, failures %v", shoot.Spec.Kubernetes.Version, shoot.Spec.Addons, failures)
	}
	if description := outcome(changes, failures, now).Description; !strings.Contains(description,
		"from 1.34.4 to 1.35.4: version expired; spec.addons dropped") {
		t.Errorf("description = %q", description)
	}
}

func TestMachineImageUpdate(t *testing.T) {
	patch, minor, major := gardencorev1beta1.UpdateStrategyPatch, gardencorev1beta1.UpdateStrategyMinor,
		gardencorev1beta1.UpdateStrategyMajor
	const offered = "12.1.0 12.1.2 12.3.0 12.3.4 13.0.0 13.0.1-preview"
	tests := map[string]struct {
		current, offered string
		strategy         gardencorev1beta1.MachineImageUpdateStrategy
		auto             bool
		want             string
		failures         int
	}{
		"patch":                          {"12.1.0", offered, patch, true, "12.1.2", 0},
		"minor":                          {"12.1.0", offered, minor, true, "12.3.4", 0},
		"major":                          {"12.1.0", offered, major, true, "13.0.0", 0},
		"switched off":                   {"12.1.0", offered, major, false, "12.1.0", 0},
		"expired":                        {"12.1.0", "12.1.0-expired 12.1.2", major, false, "12.1.2", 0},
		"expired, next minor":            {"12.1.2", "12.1.2-expired 12.3.0 12.3.4 13.0.0", patch, false, "12.3.4", 0},
		"expired, next major":            {"12.3.4", "12.3.4-expired 13.0.0 13.0.1 13.1.0", minor, false, "13.0.1", 0},
		"expired, and there is no other": {"12.3.4", "12.1.0 12.3.4-expired", major, true, "12.3.4", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			shoot := &gardencorev1beta1.Shoot{}
			shoot.Spec.Maintenance = &gardencorev1beta1.Maintenance{
				AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{MachineImageVersion: &test.auto},
			}
			shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{
				{
					Name: "pool", Machine: gardencorev1beta1.Machine{
						Image: &gardencorev1beta1.ShootMachineImage{Name: "debian", Version: &test.current},
					},
				},
			}
			profile := &gardencorev1beta1.CloudProfileSpec{
				MachineImages: []gardencorev1beta1.MachineImage{
					{Name: "debian", UpdateStrategy: &test.strategy, Versions: imageVersions(test.offered)},
				},
			}
			changes, failures := Update(shoot, profile, now)
			if got := *shoot.Spec.Provider.Workers[0].Machine.Image.Version; got != test.want ||
				len(failures) != test.failures {
				t.Errorf("version = %s, want %s; changes %v, failures %v", got, test.want, changes, failures)
			}
		})
	}
}

// No operating system is updated in place, and no version of Kubernetes while machines wait for the last one.
func TestMaintenanceOfPoolsThatAreUpdatedInPlace(t *testing.T) {
	version := func(v string) gardencorev1beta1.ExpirableVersion {
		return gardencorev1beta1.ExpirableVersion{Version: v}
	}
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Kubernetes.Version = "1.36.3"
	shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{
		UpdateStrategy: new(gardencorev1beta1.AutoInPlaceUpdate),
		Machine: gardencorev1beta1.Machine{
			Image: &gardencorev1beta1.ShootMachineImage{Name: "debian", Version: new("12.1.0")},
		},
	}}
	profile := &gardencorev1beta1.CloudProfileSpec{
		Kubernetes: gardencorev1beta1.KubernetesSettings{
			Versions: []gardencorev1beta1.ExpirableVersion{version("1.36.3"), version("1.36.4")},
		},
		MachineImages: []gardencorev1beta1.MachineImage{{Name: "debian",
			Versions: []gardencorev1beta1.MachineImageVersion{
				{ExpirableVersion: version("12.1.0")},
				{
					ExpirableVersion: version("12.2.0"),
					InPlaceUpdates:   &gardencorev1beta1.InPlaceUpdates{Supported: true},
				},
			}}},
	}
	waiting := shoot.DeepCopy()
	waiting.Status.InPlaceUpdates = &gardencorev1beta1.InPlaceUpdatesStatus{
		PendingWorkerUpdates: &gardencorev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"hand"}},
	}
	for want, s := range map[string]*gardencorev1beta1.Shoot{"1.36.4": shoot, "1.36.3": waiting} {
		_, failures := Update(s, profile, now)
		if got := *s.Spec.Provider.Workers[0].Machine.Image.Version; got != "12.1.0" {
			t.Errorf("the image is updated to %s", got)
		}
		if got := s.Spec.Kubernetes.Version; got != want {
			t.Errorf("Kubernetes is %s, want %s", got, want)
		}
		if told := len(failures) == 1 && strings.Contains(failures[0], "hand"); told != (s == waiting) {
			t.Errorf("got %v", failures)
		}
	}
}

func TestNextMaintenance(t *testing.T) {
	window := &gardencorev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}
	opened := time.Date(2026, 11, 1, 22, 0, 0, 0, time.UTC)
	shoot := func(change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{UID: "abc"},
			Spec:       gardencorev1beta1.ShootSpec{Maintenance: &gardencorev1beta1.Maintenance{TimeWindow: window}},
		}
		for _, c := range change {
			c(s)
		}
		return s
	}
	offset := spread("abc", 30*time.Minute)
	maintained := func(at time.Time) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Status.LastMaintenance = &gardencorev1beta1.LastMaintenance{TriggeredTime: metav1.NewTime(at)}
		}
	}
	created := func(s *gardencorev1beta1.Shoot) { s.CreationTimestamp = metav1.NewTime(opened.Add(time.Minute)) }
	tests := map[string]struct {
		shoot     *gardencorev1beta1.Shoot
		now, want time.Time
	}{
		"before the window": {shoot(), opened.Add(-time.Hour), opened.Add(offset)},
		"before its time":   {shoot(), opened, opened.Add(offset)},
		"its time":          {shoot(), opened.Add(45 * time.Minute), opened.Add(45 * time.Minute)},
		"after the window":  {shoot(), opened.Add(2 * time.Hour), opened.Add(24*time.Hour + offset)},
		"maintained in this window": {
			shoot(maintained(opened.Add(time.Minute))), opened.Add(45 * time.Minute), opened.Add(24*time.Hour + offset),
		},
		"maintained in the last window": {
			shoot(maintained(opened.Add(-time.Hour))), opened.Add(45 * time.Minute), opened.Add(45 * time.Minute),
		},
		"created in this window": {
			shoot(created), opened.Add(45 * time.Minute), opened.Add(24*time.Hour + offset),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := nextMaintenance(test.shoot, test.now); err != nil || !got.Equal(test.want) {
				t.Errorf("next maintenance = %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestShootsSpreadOverTheWindow(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, uid := range []string{"a", "b", "c", "d", "e"} {
		offset := spread(uid, time.Hour)
		if offset < 0 || offset >= time.Hour {
			t.Errorf("offset %s is outside of the hour", offset)
		}
		seen[offset] = true
	}
	if len(seen) < 4 {
		t.Errorf("offsets %v hardly differ", seen)
	}
}

func TestOperate(t *testing.T) {
	const operation, putOff, again = gardencorev1beta1.GardenerOperation,
		gardencorev1beta1.GardenerMaintenanceOperation, gardencorev1beta1.ShootNeedsRetryOperation
	tests := map[string]struct {
		state       gardencorev1beta1.LastOperationState
		annotations map[string]string
		want        map[string]string
	}{
		"reconcile": {"Succeeded", nil, map[string]string{operation: "reconcile"}},
		"asked for": {
			"Succeeded", map[string]string{operation: "maintain"}, map[string]string{operation: "reconcile"},
		},
		"beside another operation": {
			"Succeeded", map[string]string{operation: "rotate-ca-start;maintain"},
			map[string]string{operation: "rotate-ca-start;reconcile"},
		},
		"put off": {
			"Succeeded", map[string]string{putOff: "rotate-ca-start; rotate-ssh-keypair"},
			map[string]string{operation: "rotate-ca-start;rotate-ssh-keypair"},
		},
		"put off, and not possible now": {
			"Succeeded", map[string]string{putOff: "rotate-ca-complete;reconcile"},
			map[string]string{operation: "reconcile"},
		},
		"failed": {"Failed", map[string]string{operation: "maintain"}, map[string]string{}},
		"failed while confined": {
			"Failed", map[string]string{again: "true"}, map[string]string{operation: "retry"},
		},
		"a failed shoot keeps put-offs": {
			"Failed", map[string]string{putOff: "rotate-ca-start"}, map[string]string{putOff: "rotate-ca-start"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeReconcile, State: test.state,
			}
			Operate(shoot, now)
			for key := range map[string]bool{operation: true, putOff: true, again: true} {
				if got := shoot.Annotations[key]; got != test.want[key] {
					t.Errorf("annotation %s = %q, want %q", key, got, test.want[key])
				}
			}
		})
	}
}

func newShoot() *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
	shoot.Spec.Kubernetes.Version = "1.35.1"
	shoot.Spec.Maintenance = &gardencorev1beta1.Maintenance{
		TimeWindow: &gardencorev1beta1.MaintenanceTimeWindow{Begin: "210000+0000", End: "230000+0000"},
	}
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	return shoot
}

func TestShootIsMaintainedOncePerWindow(t *testing.T) {
	ctx := context.Background()
	shoot := newShoot()
	profile := &gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	profile.Spec.Kubernetes.Versions = versions("1.35.1 1.35.4")
	r := &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoot,
			profile).WithStatusSubresource(shoot).Build(),
		Recorder: events.NewFakeRecorder(10), Now: func() time.Time { return now },
	}
	for range 2 {
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
		if err != nil || result.RequeueAfter < 22*time.Hour {
			t.Fatalf("result = %+v, %v; want it to come back tomorrow", result, err)
		}
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	last := shoot.Status.LastMaintenance
	if shoot.Spec.Kubernetes.Version != "1.35.4" || last == nil ||
		last.State != gardencorev1beta1.LastOperationStateSucceeded {
		t.Errorf("version %s, last maintenance %+v", shoot.Spec.Kubernetes.Version, last)
	}
	if last != nil && !strings.Contains(last.Description, "from 1.35.1 to 1.35.4: automatic update") {
		t.Errorf("description = %q", last.Description)
	}
}

func TestOutcome(t *testing.T) {
	done := outcome(nil, []string{"a", "b"}, now)
	if done.State != gardencorev1beta1.LastOperationStateFailed || ptr.Deref(done.FailureReason, "") != "a; b" ||
		done.Description != upToDate {
		t.Errorf("outcome = %+v", done)
	}
}

func TestOperationsAreTidied(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gardencorev1beta1.GardenerOperation: " a;;b ; a"}},
	}
	if got := operations(shoot, gardencorev1beta1.GardenerOperation); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("operations = %q", got)
	}
}
