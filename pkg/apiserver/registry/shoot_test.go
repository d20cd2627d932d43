package registry

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func shootWith(change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Name: "member1", Namespace: "garden-demo", Generation: 3, Annotations: map[string]string{},
		},
	}
	shoot.Spec.Region = "here"
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	if change != nil {
		change(shoot)
	}
	return shoot
}

func TestShootNeedsNewGeneration(t *testing.T) {
	operation := func(value string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Annotations[gardencorev1beta1.GardenerOperation] = value }
	}
	confined := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Maintenance = &gardencorev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}
	}
	failed := func(s *gardencorev1beta1.Shoot) {
		s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateFailed
	}
	both := func(changes ...func(*gardencorev1beta1.Shoot)) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	tests := map[string]struct {
		old, updated   func(*gardencorev1beta1.Shoot)
		want           bool
		wantAnnotation string
	}{
		"nothing changed": {},
		"spec changed":    {updated: func(s *gardencorev1beta1.Shoot) { s.Spec.Region = "there" }, want: true},
		"label changed":   {updated: func(s *gardencorev1beta1.Shoot) { s.Labels = map[string]string{"a": "b"} }},
		"spec changed, confined to the maintenance window": {
			old: confined, updated: both(confined, func(s *gardencorev1beta1.Shoot) { s.Spec.Region = "there" }),
		},
		"hibernated, confined to the maintenance window": {
			old: confined, updated: both(confined, func(s *gardencorev1beta1.Shoot) {
				s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
			}), want: true,
		},
		"assigned to a seed, confined to the maintenance window": {
			old: confined, updated: both(confined, func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("a") }),
			want: true,
		},
		"reconcile requested": {updated: operation("reconcile"), want: true},
		"reconcile requested among others": {
			updated: operation("maintain;reconcile"), want: true, wantAnnotation: "maintain",
		},
		"reconcile before the first reconciliation": {
			old:     func(s *gardencorev1beta1.Shoot) { s.Status.LastOperation = nil },
			updated: operation("reconcile"), wantAnnotation: "reconcile",
		},
		"retry of a failed shoot": {old: failed, updated: both(failed, operation("retry")), want: true},
		"reconcile of a failed shoot waits": {
			old: failed, updated: both(failed, operation("reconcile")), wantAnnotation: "reconcile",
		},
		"retry of a shoot that is well": {updated: operation("retry"), wantAnnotation: "retry"},
		"rotation requested": {
			updated: operation("rotate-ca-start"), want: true, wantAnnotation: "rotate-ca-start",
		},
		"rotation still there": {
			old: operation("rotate-ca-start"), updated: operation("rotate-ca-start"), wantAnnotation: "rotate-ca-start",
		},
		"in-place update forced": {
			updated: operation("force-in-place-update"), wantAnnotation: "force-in-place-update",
		},
		"rotation of a failed shoot waits": {
			old: failed, updated: both(failed, operation("rotate-ca-start")), wantAnnotation: "rotate-ca-start",
		},
		"restore of a failed shoot": {
			old: failed, updated: both(failed, operation("restore-etcd=2026-01-01T12:00:00Z")), want: true,
			wantAnnotation: "restore-etcd=2026-01-01T12:00:00Z",
		},
		"restore of a failed shoot still there": {
			old:            both(failed, operation("restore-etcd=2026-01-01T12:00:00Z")),
			updated:        both(failed, operation("restore-etcd=2026-01-01T12:00:00Z")),
			wantAnnotation: "restore-etcd=2026-01-01T12:00:00Z",
		},
		"rotation of all includes the narrower ones": {
			updated: operation("rotate-ca-start;rotate-credentials-start;rotate-observability-credentials"), want: true,
			wantAnnotation: "rotate-credentials-start",
		},
		"machines rolled out": {
			updated: operation("rollout-workers=pool"), want: true, wantAnnotation: "rollout-workers=pool",
		},
		"SSH key of a shoot without machines": {updated: operation("rotate-ssh-keypair")},
		"force deletion": {updated: func(s *gardencorev1beta1.Shoot) {
			s.Annotations[gardencorev1beta1.AnnotationConfirmationForceDeletion] = "true"
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old, updated := shootWith(test.old), shootWith(test.updated)
			if got := shootNeedsNewGeneration(updated, old); got != test.want {
				t.Errorf("new generation = %v, want %v", got, test.want)
			}
			if got := updated.Annotations[gardencorev1beta1.GardenerOperation]; got != test.wantAnnotation {
				t.Errorf("operation annotation = %q, want %q", got, test.wantAnnotation)
			}
		})
	}
}

func TestPrepareShootTidiesOperations(t *testing.T) {
	shoot := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Annotations[gardencorev1beta1.GardenerOperation] = " rotate-ca-start; ;reconcile;rotate-ca-start"
	})
	prepareShoot(shoot)
	if got, want := shoot.Annotations[gardencorev1beta1.GardenerOperation], "rotate-ca-start;reconcile"; got != want {
		t.Errorf("operation annotation = %q, want %q", got, want)
	}
}

func TestRestrictToBindingTakesOnlyTheSeed(t *testing.T) {
	old := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStatePending,
		}
	})
	bound := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Region, s.Spec.SeedName, s.Status.TechnicalID = "there", new("a"), "other"
		s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("member1.example")}
		s.Spec.Networking = &gardencorev1beta1.Networking{Type: new("other"), Pods: new("10.3.0.0/16")}
	})
	restrictToBinding(bound, old)
	if bound.Spec.Region != "here" || bound.Status.TechnicalID != "" {
		t.Errorf("binding changed more than the seed: %+v", bound)
	}
	if ptr.Deref(bound.Spec.SeedName, "") != "a" {
		t.Errorf("seed = %v, want a", bound.Spec.SeedName)
	}
	if got := ptr.Deref(bound.Spec.DNS.Domain, ""); got != "member1.example" {
		t.Errorf("domain = %q, want the one that the seed gives", got)
	}
	if networking := bound.Spec.Networking; networking.Type != nil || ptr.Deref(networking.Pods, "") != "10.3.0.0/16" {
		t.Errorf("networking = %+v, want the seed's network for pods and nothing else", networking)
	}
	if bound.Status.LastOperation != nil {
		t.Error("the pending operation is still there")
	}
}

// With the seed the status changes at once: from then on the gardenlet before has no right to the shoot, and the next
// one knows that it is to restore, and not to create.
func TestBindingElsewhere(t *testing.T) {
	old := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedName, s.Status.SeedName, s.Status.TechnicalID = new("a"), new("a"), "shoot--demo--member1"
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateError,
		}
		s.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "silent"}}
	})
	bound := old.DeepCopy()
	bound.Spec.SeedName = new("b")
	restrictToBinding(bound, old)
	last := bound.Status.LastOperation
	if bound.Status.SeedName != nil || bound.Status.TechnicalID != "shoot--demo--member1" ||
		bound.Status.MigrationStartTime == nil || bound.Status.LastErrors != nil ||
		last.Type != gardencorev1beta1.LastOperationTypeRestore ||
		last.State != gardencorev1beta1.LastOperationStatePending {
		t.Errorf("the status is %+v", bound.Status)
	}
	again := bound.DeepCopy()
	restrictToBinding(again, bound)
	if !again.Status.MigrationStartTime.Equal(bound.Status.MigrationStartTime) {
		t.Error("to be bound where it is already begins another restore")
	}
}

func TestCanonicalizeShootKeepsSeedLabels(t *testing.T) {
	shoot := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Labels = map[string]string{"mine": "yes", gardencorev1beta1.LabelPrefixSeedName + "old": "true"}
		s.Spec.SeedName, s.Status.SeedName = new("new"), new("current")
	})
	canonicalizeShoot(shoot)
	want := map[string]string{
		"mine": "yes", gardencorev1beta1.LabelPrefixSeedName + "new": "true",
		gardencorev1beta1.LabelPrefixSeedName + "current": "true",
	}
	if len(shoot.Labels) != len(want) {
		t.Errorf("labels = %v, want %v", shoot.Labels, want)
	}
	for key, value := range want {
		if shoot.Labels[key] != value {
			t.Errorf("label %s = %q, want %q", key, shoot.Labels[key], value)
		}
	}
}

func TestPrepareShootStatus(t *testing.T) {
	prepared := func(byItself bool) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{
						Phase: gardencorev1beta1.RotationPrepared, AutoCompleteAfterPrepared: &byItself,
					},
				},
			}
		}
	}
	migrated := func(s *gardencorev1beta1.Shoot) {
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeMigrate, State: gardencorev1beta1.LastOperationStateSucceeded,
		}
	}
	for name, test := range map[string]struct {
		old, updated func(*gardencorev1beta1.Shoot)
		want         int64
	}{
		"nothing":                      {want: 3},
		"has left its seed":            {updated: migrated, want: 4},
		"had left its seed":            {old: migrated, updated: migrated, want: 3},
		"key is ready":                 {updated: prepared(false), want: 3},
		"key is ready and to be used":  {updated: prepared(true), want: 4},
		"key was ready and to be used": {old: prepared(true), updated: prepared(true), want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := shootWith(test.updated)
			prepareShootStatus(shoot, shootWith(test.old))
			if shoot.Generation != test.want {
				t.Errorf("generation = %d, want %d", shoot.Generation, test.want)
			}
		})
	}
}

func TestCanonicalizeShootDropsIdleSettings(t *testing.T) {
	shoot := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Kubernetes.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: new(int32(10))}
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
			EnableAnonymousAuthentication: new(false),
		}
		s.Spec.Addons = &gardencorev1beta1.Addons{KubernetesDashboard: &gardencorev1beta1.KubernetesDashboard{}}
		s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{ControlPlane: &gardencorev1beta1.WorkerControlPlane{}}}
	})
	canonicalizeShoot(shoot)
	kubernetes := shoot.Spec.Kubernetes
	if kubernetes.ClusterAutoscaler.MaxEmptyBulkDelete != nil ||
		kubernetes.KubeAPIServer.EnableAnonymousAuthentication != nil || shoot.Spec.Addons != nil {
		t.Errorf("spec = %+v, want nothing that is idle", shoot.Spec)
	}
	if shoot.Labels[gardencorev1beta1.LabelShootSelfHosted] != "true" {
		t.Errorf("labels = %v, want that of self-hosted shoots", shoot.Labels)
	}
}

func TestPrepareShootCompletesCredentials(t *testing.T) {
	shoot := shootWith(func(s *gardencorev1beta1.Shoot) {
		s.Spec.DNS = &gardencorev1beta1.DNS{Providers: []gardencorev1beta1.DNSProvider{{SecretName: new("dns")}}}
	})
	prepareShoot(shoot)
	if reference := shoot.Spec.DNS.Providers[0].CredentialsRef; reference == nil || reference.Kind != "Secret" ||
		reference.Name != "dns" {
		t.Errorf("reference = %+v, want Secret dns", reference)
	}
}

// The operations that need nothing but a new generation are taken out of the annotation of seeds and backups too.
func TestReconcileMakesNewGeneration(t *testing.T) {
	asked := metav1.ObjectMeta{
		Annotations: map[string]string{
			gardencorev1beta1.GardenerOperation: gardencorev1beta1.GardenerOperationReconcile,
		},
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: asked}
	kind := seeds().(*Kind[*gardencorev1beta1.Seed])
	if !kind.NeedsNewGeneration(seed, &gardencorev1beta1.Seed{}) || len(seed.Annotations) > 0 {
		t.Errorf("annotations = %v, want none and a new generation", seed.Annotations)
	}
	if kind.NeedsNewGeneration(seed, &gardencorev1beta1.Seed{}) {
		t.Error("a new generation without a reason")
	}
	forced := &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{gardencorev1beta1.BackupEntryForceDeletion: "true"},
		},
	}
	entries := backupEntries().(*Kind[*gardencorev1beta1.BackupEntry])
	if !entries.NeedsNewGeneration(forced, &gardencorev1beta1.BackupEntry{}) ||
		entries.NeedsNewGeneration(forced, forced) {
		t.Error("want a new generation when the deletion is forced, once")
	}
}

func TestFirstOf(t *testing.T) {
	many := make(field.ErrorList, maxErrors+7)
	for i := range many {
		many[i] = field.Required(field.NewPath("items").Index(i), "")
	}
	got := firstOf(many)
	if len(got) != maxErrors+1 || !strings.Contains(got[maxErrors].Error(), "7 more errors") ||
		got[maxErrors].Field != "items[100]" {
		t.Errorf("got %d errors, the last is %v", len(got), got[len(got)-1])
	}
	if few := firstOf(many[:maxErrors]); len(few) != maxErrors {
		t.Errorf("got %d errors, want all", len(few))
	}
}
