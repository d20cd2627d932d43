package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

func TestPlanSeed(t *testing.T) {
	size := resource.MustParse("20Gi")
	for name, test := range map[string]struct {
		spec gardencorev1beta1.SeedSpec
		want Seed
	}{
		"nothing": {gardencorev1beta1.SeedSpec{}, Seed{}},
		"off": {
			gardencorev1beta1.SeedSpec{
				Settings: &gardencorev1beta1.SeedSettings{
					TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{},
				},
			}, Seed{},
		},
		"everything": {gardencorev1beta1.SeedSpec{
			Volume: &gardencorev1beta1.SeedVolume{MinimumSize: new(size)},
			Settings: &gardencorev1beta1.SeedSettings{
				TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{Enabled: true},
			},
		}, Seed{MinimumVolumeSize: size, TrafficDistribution: "PreferClose"}},
	} {
		if difference := cmp.Diff(test.want, planSeed(&test.spec)); difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
}

func TestPlanBackup(t *testing.T) {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{UID: "seed-uid"}}
	shoot := Identity{Namespace: "shoot--demo--one", UID: "uid"}
	if got := planBackup(seed, shoot); got != nil {
		t.Errorf("without a store: %+v", got)
	}
	seed.Spec.Backup = &gardencorev1beta1.Backup{Provider: "store"}
	want := &Backup{Provider: "store", Bucket: "seed-uid", Entry: "shoot--demo--one--uid"}
	if difference := cmp.Diff(want, planBackup(seed, shoot)); difference != "" {
		t.Error(difference)
	}
}

// What etcd is asked to restore reaches etcd-main and kube-apiserver where there is a store. It is restored from the
// shoot's own backups: nothing that a Shoot says leads elsewhere.
func TestPlanRestore(t *testing.T) {
	asked := Restore{Restore: request.Restore{To: "2026-01-01T12:00:00Z", ID: "one"}}
	for name, test := range map[string]struct {
		backup *gardencorev1beta1.Backup
		want   Restore
		prefix string
	}{
		"with a store":    {&gardencorev1beta1.Backup{Provider: "store"}, asked, "shoot--demo--one--uid"},
		"without a store": {nil, Restore{}, ""},
	} {
		p := &Plan{
			Identity: Identity{Namespace: "shoot--demo--one", UID: "uid"}, Internal: &Record{Hostname: "api.example"},
		}
		in := &Inputs{
			Shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				gardencorev1beta1.GardenerOperation: "restore-etcd=shoot--other--one",
			}}},
			Seed: &gardencorev1beta1.Seed{Spec: gardencorev1beta1.SeedSpec{Backup: test.backup}}, Restore: asked,
		}
		p.planStore(in)
		f := p.facts(in)
		if p.Restore != test.want || f.RestoreETCD != test.want.Restore || f.BackupPrefix != test.prefix {
			t.Errorf("%s: planned %+v, facts %+v below %q", name, p.Restore, f.RestoreETCD, f.BackupPrefix)
		}
	}
}

// Where the seed has a store, gardenlet's settings of backups reach etcd.
func TestPlanSettingsOfBackups(t *testing.T) {
	settings := component.ETCDBackup{DeltaSnapshotPeriod: time.Minute, FullSnapshots: 3}
	for backup, want := range map[*gardencorev1beta1.Backup]component.ETCDBackup{
		nil: {}, {Provider: "store"}: settings,
	} {
		p := &Plan{
			Identity: Identity{Namespace: "shoot--demo--one", UID: "uid"}, Internal: &Record{Hostname: "api.example"},
		}
		in := &Inputs{
			Shoot: &gardencorev1beta1.Shoot{}, ETCDBackup: settings,
			Seed: &gardencorev1beta1.Seed{Spec: gardencorev1beta1.SeedSpec{Backup: backup}},
		}
		p.planStore(in)
		if got := p.facts(in).ETCDBackup; got != want {
			t.Errorf("with the store %+v: %+v, want %+v", backup, got, want)
		}
	}
}

// An etcd that was on another seed before takes over its backups, by when it came.
func TestPlanTakesOverBackups(t *testing.T) {
	came := metav1.Now()
	for moved, want := range map[bool]int64{true: came.Unix(), false: 0} {
		p := &Plan{
			Identity: Identity{Namespace: "shoot--demo--one", UID: "uid"}, Internal: &Record{Hostname: "api.example"},
		}
		in := &Inputs{Shoot: &gardencorev1beta1.Shoot{}, Seed: &gardencorev1beta1.Seed{
			Spec: gardencorev1beta1.SeedSpec{Backup: &gardencorev1beta1.Backup{Provider: "store"}},
		}}
		if moved {
			in.Shoot.Status.BeginRestore("one", "two", came)
		}
		p.planStore(in)
		if f := p.facts(in); f.BackupClaim != want {
			t.Errorf("moved %v: the claim is %d, want %d", moved, f.BackupClaim, want)
		}
	}
}
