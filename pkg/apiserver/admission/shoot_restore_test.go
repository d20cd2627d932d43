package admission

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// A restore is refused until whoever asks for it has been told what is lost, and has said so of this very time.
func TestRestoresAreConfirmed(t *testing.T) {
	const noon, operation = "2026-01-01T12:00:00Z", "restore-etcd=2026-01-01T12:00:00Z"
	asking := func(operation, confirmed string) *gardencorev1beta1.Shoot {
		return aShoot(func(s *gardencorev1beta1.Shoot) {
			s.Spec.SeedName = new("local")
			s.Annotations = map[string]string{gardencorev1beta1.GardenerOperation: operation}
			if confirmed != "" {
				s.Annotations[gardencorev1beta1.AnnotationConfirmationRestoreETCD] = confirmed
			}
		})
	}
	backedUp := aSeed(func(s *gardencorev1beta1.Seed) {
		s.Spec.Backup = &gardencorev1beta1.Backup{Provider: "local"}
	})
	for name, test := range map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		seed       *gardencorev1beta1.Seed
		want       string
	}{
		"not confirmed": {
			asking(operation, ""), asking("", ""), backedUp,
			"metadata.annotations[confirmation.gardener.cloud/restore-etcd]: Forbidden: restore-etcd discards what " +
				"was written to the cluster's API since 2026-01-01T12:00:00Z: the last 1h12m0s, and up to a " +
				"period of backups before. To confirm that, set this annotation to 2026-01-01T12:00:00Z",
		},
		"confirmed": {asking(operation, noon), asking("", ""), backedUp, ""},
		"confirmed in another zone": {
			asking(operation, "2026-01-01T13:00:00+01:00"), asking("", ""), backedUp, "",
		},
		"another time is confirmed": {
			asking(operation, "2026-01-01T11:00:00Z"), asking("", ""), backedUp, "To confirm that",
		},
		"confirmed with a word": {asking(operation, "true"), asking("", ""), backedUp, "To confirm that"},
		"in the future": {
			asking("restore-etcd=2026-01-01T13:12:01Z", "2026-01-01T13:12:01Z"), asking("", ""), backedUp,
			"in the future: it is 2026-01-01T13:12:00Z",
		},
		"without a store":          {asking(operation, noon), asking("", ""), aSeed(), `seed "local" has none`},
		"asked for before":         {asking(operation, ""), asking(operation, ""), backedUp, ""},
		"another operation":        {asking("reconcile", ""), asking("", ""), backedUp, ""},
		"with a Shoot that is new": {asking(operation, ""), nil, backedUp, "To confirm that"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newShootValidator()
			plugin.now = func() time.Time { return time.Date(2026, 1, 1, 13, 12, 0, 0, time.UTC) }
			plugin.SetDependencies(&Dependencies{Reader: objects{"seeds /local": test.seed}})
			request := write{gardencorev1beta1.Resource("shoots"), "", test.shoot, nil, ""}
			if test.old != nil {
				request.old = test.old
			}
			checkRefusal(t, plugin.checkRestore(t.Context(), request.attributes()), test.want)
			if test.old != nil {
				checkRefusal(t, plugin.Validate(t.Context(), request.attributes(), nil), test.want)
			}
		})
	}
}
