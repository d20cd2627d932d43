package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/encryption"
)

// phases are the phases of a rotation in order.
var phases = []gardencorev1beta1.CredentialsRotationPhase{
	"", gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationPreparingWithoutWorkersRollout,
	gardencorev1beta1.RotationWaitingForWorkersRollout,
	gardencorev1beta1.RotationPrepared, gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted,
}

func TestPlanOfRotations(t *testing.T) {
	at := metav1.Unix(1_800_000_000, 0)
	// Per phase: keep the old one, change what the API server presents or trusts, renew tokens, stage of encryption.
	wanted := [][4]string{
		{"", "", "", ""}, {"keep", "replace", "renew", "Preparing"}, {"keep", "replace", "renew", "Preparing"},
		{"keep", "", "", ""},
		{"keep", "", "", "Rewriting"}, {"", "replace", "", "Completing"}, {"", "", "", ""},
	}
	for i, phase := range phases {
		plan := planRotation(&gardencorev1beta1.ShootStatus{
			Credentials: &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &at},
				ServiceAccountKey:      &gardencorev1beta1.ServiceAccountKeyRotation{Phase: phase},
				ETCDEncryptionKey:      &gardencorev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
			}},
		}, []string{component.CACluster, component.CAVPN}, encryption.Scheme{})
		word := func(is bool, what string) string {
			if is {
				return what
			}
			return ""
		}
		got := [4]string{
			word(plan.KeepOldAuthorities && plan.KeepOldServiceAccountKey, "keep"),
			word(plan.ReplacesAuthorities, "replace"), word(plan.RenewsTokens, "renew"),
			string(plan.Encryption.Stage("")),
		}
		if got != wanted[i] {
			t.Errorf("phase %q means %q, want %q", phase, got, wanted[i])
		}
		if !plan.Initiated[component.CAVPN].Equal(at.Time) ||
			!plan.Initiated[component.CACluster].Equal(at.Time) || len(plan.Initiated) != 2 {
			t.Errorf("phase %q: the rotations began at %v", phase, plan.Initiated)
		}
	}
}

func TestStageOfEncryption(t *testing.T) {
	changed := &encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"secrets"}}
	for _, test := range []struct {
		name    string
		plan    Encryption
		reached encryption.Stage
		want    string
	}{
		{"another scheme", Encryption{From: changed}, "", "Preparing until "},
		{"another scheme, stopped", Encryption{From: changed}, encryption.Rewriting, "Rewriting until "},
		{"another scheme, stopped at its end", Encryption{From: changed}, encryption.Completed, "Completed until "},
		{"another key", Encryption{Phase: gardencorev1beta1.RotationPreparing}, "", "Preparing until Rewriting"},
		{
			"another key, stopped", Encryption{Phase: gardencorev1beta1.RotationPreparing}, encryption.Rewriting,
			"Rewriting until Rewriting",
		},
		{"completed", Encryption{Phase: gardencorev1beta1.RotationCompleted}, encryption.Rewriting, " until "},
	} {
		if got := string(test.plan.Stage(test.reached)) + " until " + string(test.plan.Until()); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestSchemeBefore(t *testing.T) {
	applied := &gardencorev1beta1.EncryptionAtRest{
		Resources: []string{"configmaps"}, Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "aescbc"},
	}
	same := encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"configmaps", "secrets"}}
	if before := schemeBefore(applied, same); before != nil {
		t.Errorf("nothing changes, but before there was %v", before)
	}
	if before := schemeBefore(nil, same); before != nil {
		t.Errorf("nothing was stored, but as %v", before)
	}
	less := encryption.Scheme{Provider: encryption.AESCBC, Resources: []string{"secrets"}}
	if before := schemeBefore(applied, less); before == nil || !before.Equal(same) {
		t.Errorf("before there was %v, want %v", before, same)
	}
	if status := EncryptionAtRest(same); !strings.EqualFold(strings.Join(status.Resources, ","), "configmaps") ||
		status.Provider.Type != "aescbc" {
		t.Errorf("the status tells %+v", status)
	}
}
