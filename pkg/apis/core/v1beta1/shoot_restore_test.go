package v1beta1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateRestoreOfETCD(t *testing.T) {
	const path = "metadata.annotations[gardener.cloud/operation]"
	at := func(text string) *metav1.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.Time{Time: parsed}
	}
	rotated := func(phase CredentialsRotationPhase, completed string) func(*Shoot) {
		return func(s *Shoot) {
			s.Status.Credentials.Rotation.ETCDEncryptionKey = &ETCDEncryptionKeyRotation{
				Phase: phase, LastCompletionTime: at(completed),
			}
		}
	}
	const noon = "restore-etcd=2026-01-01T12:00:00Z"
	for _, row := range []operation{
		{"a time", nil, noon, ""},
		{"a time of another zone", nil, "restore-etcd=2026-01-01T12:00:00+02:00", ""},
		{"among others", nil, "reconcile;" + noon, ""},
		{"without a time", nil, "restore-etcd", "must be one of"},
		{"no time", nil, "restore-etcd=yesterday", `names "yesterday"`},
		{"what is another's", nil, "restore-etcd=../shoot--other--one", "which is no time"},
		{"two times", nil, noon + ";restore-etcd=2026-01-01T11:00:00Z", "cannot be asked for together"},
		{
			"of what is being created", func(s *Shoot) { s.Status.LastOperation.State = LastOperationStateProcessing },
			noon, "once the cluster has been created",
		},
		{
			"while asleep", func(s *Shoot) { s.Spec.Hibernation = &Hibernation{Enabled: new(true)} }, noon,
			"wake it up first",
		},
		{"while waking up", func(s *Shoot) { s.Status.IsHibernated = true }, noon, "wake it up first"},
		{
			"while deleted", func(s *Shoot) { s.DeletionTimestamp = at("2026-01-02T12:00:00Z") }, noon,
			"is being deleted",
		},
		{
			"before its time", func(s *Shoot) { s.CreationTimestamp = *at("2026-01-01T12:00:01Z") }, noon,
			"before the shoot was created, 2026-01-01T12:00:01Z",
		},
		{"while the key is rotated", rotated(RotationPreparing, "2025-01-01T12:00:00Z"), noon, "that is Preparing"},
		{"with another key", rotated(RotationCompleted, "2026-01-01T13:00:00Z"), noon, "cannot be read"},
		{"with the key that there is", rotated(RotationCompleted, "2026-01-01T11:00:00Z"), noon, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := aCreatedShoot()
			if row.state != nil {
				row.state(old)
			}
			shoot := old.DeepCopy()
			shoot.Annotations = map[string]string{GardenerOperation: row.asked}
			where := path
			if row.message == "" {
				where = ""
			}
			expectError(t, ValidateShootUpdate(shoot, old), where, row.message)
		})
	}
	shoot := aCreatedShoot()
	shoot.Annotations = map[string]string{GardenerMaintenanceOperation: noon}
	expectError(t, ValidateShootUpdate(shoot, aCreatedShoot()),
		"metadata.annotations[maintenance.gardener.cloud/operation]", "cannot wait for maintenance")
}

func TestSeveralMembersRestoreATime(t *testing.T) {
	shoot := aCreatedShoot()
	shoot.Annotations = map[string]string{GardenerOperation: "restore-etcd=2026-01-01T12:00:00Z"}
	shoot.Spec.ControlPlane = &ControlPlane{HighAvailability: &HighAvailability{
		FailureTolerance: FailureTolerance{Type: FailureToleranceTypeNode},
	}}
	expectError(t, validateOperations(shoot, aCreatedShoot()), "", "")
}

func TestRestoreOperation(t *testing.T) {
	shoot := aCreatedShoot()
	if operation, _, err := RestoreOperation(shoot); operation != "" || err != nil {
		t.Errorf("got %q, %v of what asks for nothing", operation, err)
	}
	const want = "restore-etcd=2026-01-01T12:00:00Z"
	shoot.Annotations = map[string]string{GardenerOperation: "rotate-ca-start;" + want}
	operation, to, err := RestoreOperation(shoot)
	if operation != want || err != nil || !to.Equal(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("got %q, %s, %v", operation, to, err)
	}
}
