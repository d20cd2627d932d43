package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// at is a time in tests: so many minutes after the first.
func at(minutes int) metav1.Time {
	return metav1.NewTime(time.Unix(1_800_000_000, 0).Add(time.Duration(minutes) * time.Minute))
}

func shootWith(pools ...string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	for _, pool := range pools {
		shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, gardencorev1beta1.Worker{Name: pool})
	}
	return shoot
}

// describe renders a rotation: "Preparing 0-- pool(a)": when its halves began and ended, and which pools it waits for.
func describe(status *gardencorev1beta1.ShootStatus) string {
	r := find(status.Credentials.Rotation, CertificateAuthorities)
	if r == nil {
		return ""
	}
	minutes := func(t *metav1.Time) string {
		if t == nil {
			return "."
		}
		return fmt.Sprint(int(t.Sub(at(0).Time).Minutes()))
	}
	text := string(*r.phase)
	for _, t := range []**metav1.Time{r.initiated, r.prepared, r.completing, r.completed} {
		text += " " + minutes(*t)
	}
	if r.pending != nil {
		for _, p := range *r.pending {
			text += " " + p.Name + "@" + minutes(p.LastInitiationTime)
		}
	}
	return text
}

// Each step is an operation that is asked for ("" for a reconciliation without one), and what the certificate
// authorities are at its start and at its end. Steps are a minute apart; times are those of the start, the end of the
// first half, the start of the second one and its end.
func TestPhases(t *testing.T) {
	type step struct{ operation, begun, finished string }
	for name, test := range map[string]struct {
		pools []string
		steps []step
	}{
		"all at once": {[]string{"a", "b"}, []step{
			{"rotate-ca-start", "Preparing 0 . . .", "Prepared 0 0 . ."},
			{"", "Prepared 0 0 . .", "Prepared 0 0 . ."},
			{"rotate-ca-complete", "Completing 0 0 2 .", "Completed 0 . . 2"},
			{"", "Completed 0 . . 2", "Completed 0 . . 2"},
			{"rotate-credentials-start", "Preparing 4 . . 2", "Prepared 4 4 . 2"},
			{"rotate-credentials-complete", "Completing 4 4 5 2", "Completed 4 . . 5"},
		}},
		"pools one by one": {[]string{"a", "b"}, []step{
			{
				"rotate-ca-start-without-workers-rollout", "PreparingWithoutWorkersRollout 0 . . . a@. b@.",
				"WaitingForWorkersRollout 0 . . . a@. b@.",
			},
			{
				"rotate-rollout-workers=a", "WaitingForWorkersRollout 0 . . . b@.",
				"WaitingForWorkersRollout 0 . . . b@.",
			},
			{"rotate-ca-complete", "WaitingForWorkersRollout 0 . . . b@.", "WaitingForWorkersRollout 0 . . . b@."},
			{"rotate-rollout-workers=b,c", "WaitingForWorkersRollout 0 . . .", "Prepared 0 3 . ."},
			{"rotate-ca-complete", "Completing 0 3 4 .", "Completed 0 . . 4"},
			{
				"rotate-credentials-start-without-workers-rollout", "PreparingWithoutWorkersRollout 5 . . 4 a@0 b@0",
				"WaitingForWorkersRollout 5 . . 4 a@0 b@0",
			},
			{"rotate-rollout-workers=*", "WaitingForWorkersRollout 5 . . 4", "Prepared 5 6 . 4"},
		}},
		"no machines to wait for": {nil, []step{
			{"rotate-ca-start-without-workers-rollout", "PreparingWithoutWorkersRollout 0 . . .", "Prepared 0 0 . ."},
		}},
		"out of turn": {[]string{"a"}, []step{
			{"rotate-ca-complete", "", ""},
			{"rotate-ca-start", "Preparing 1 . . .", "Prepared 1 1 . ."},
			{"rotate-ca-start", "Prepared 1 1 . .", "Prepared 1 1 . ."},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, status := shootWith(test.pools...), &gardencorev1beta1.ShootStatus{}
			for i, s := range test.steps {
				var operations []string
				if s.operation != "" {
					operations = []string{s.operation}
				}
				// gardenlet may be killed after it has written the status: it begins again.
				for range 2 {
					Begin(shoot, operations, at(i))(status)
				}
				if got := describe(status); got != s.begun {
					t.Fatalf("%d. %s begins %q, want %q", i+1, s.operation, got, s.begun)
				}
				Finish(shoot, at(i))(status)
				if got := describe(status); got != s.finished {
					t.Fatalf("%d. %s ends %q, want %q", i+1, s.operation, got, s.finished)
				}
			}
		})
	}
}

// Which credentials an operation rotates.
func TestOperationsCover(t *testing.T) {
	for operation, want := range map[string]string{
		"rotate-credentials-start": "ca:Preparing key:Preparing etcd:Preparing(true) " +
			"ssh",
		"rotate-credentials-start-without-workers-rollout": "ca:PreparingWithoutWorkersRollout " +
			"key:PreparingWithoutWorkersRollout etcd:Preparing(true) ssh",
		"rotate-ca-start":                                         "ca:Preparing",
		"rotate-serviceaccount-key-start":                         "key:Preparing",
		"rotate-serviceaccount-key-start-without-workers-rollout": "key:PreparingWithoutWorkersRollout",
		"rotate-etcd-encryption-key":                              "etcd:Preparing(true)",
		"rotate-etcd-encryption-key-start":                        "etcd:Preparing(false)",
		"rotate-ssh-keypair":                                      "ssh",
		"rotate-rollout-workers=a":                                "",
	} {
		status := &gardencorev1beta1.ShootStatus{}
		Begin(shootWith("a"), []string{operation}, at(0))(status)
		if got := cover(status.Credentials.Rotation); got != want {
			t.Errorf("%s begins %q, want %q", operation, got, want)
		}
	}
}

func cover(r *gardencorev1beta1.ShootCredentialsRotation) string {
	var words []string
	if r.CertificateAuthorities != nil {
		words = append(words, "ca:"+string(r.CertificateAuthorities.Phase))
	}
	if r.ServiceAccountKey != nil {
		words = append(words, "key:"+string(r.ServiceAccountKey.Phase))
	}
	if r.ETCDEncryptionKey != nil {
		words = append(words, fmt.Sprintf("etcd:%s(%t)", r.ETCDEncryptionKey.Phase,
			ptr.Deref(r.ETCDEncryptionKey.AutoCompleteAfterPrepared, false)))
	}
	if r.SSHKeypair != nil {
		words = append(words, "ssh")
	}
	return strings.Join(words, " ")
}

func TestSSHKeypair(t *testing.T) {
	shoot, status := shootWith("a"), &gardencorev1beta1.ShootStatus{}
	rotate := []string{gardencorev1beta1.ShootOperationRotateSSHKeypair}
	Begin(shoot, rotate, at(0))(status)
	Begin(shoot, rotate, at(1))(status)
	Finish(shoot, at(2))(status)
	if ssh := status.Credentials.Rotation.SSHKeypair; !ssh.LastInitiationTime.Equal(new(at(0))) ||
		!ssh.LastCompletionTime.Equal(new(at(2))) {
		t.Errorf("the rotation is %+v, want it from 0 to 2", ssh)
	}
	Begin(shoot, rotate, at(3))(status)
	if ssh := status.Credentials.Rotation.SSHKeypair; !ssh.LastInitiationTime.Equal(new(at(3))) {
		t.Errorf("the second rotation is %+v", ssh)
	}
	without := &gardencorev1beta1.ShootStatus{}
	Begin(shootWith(), rotate, at(0))(without)
	if without.Credentials.Rotation.SSHKeypair != nil {
		t.Error("a shoot without machines has no SSH key to rotate")
	}
}

// The key for encryption at rest completes by itself, unless the user asked for its two halves.
func TestEncryptionKey(t *testing.T) {
	for operation, want := range map[string]gardencorev1beta1.CredentialsRotationPhase{
		gardencorev1beta1.OperationRotateETCDEncryptionKey:      gardencorev1beta1.RotationCompleting,
		gardencorev1beta1.OperationRotateETCDEncryptionKeyStart: gardencorev1beta1.RotationPrepared,
	} {
		status := &gardencorev1beta1.ShootStatus{}
		Begin(shootWith(), []string{operation}, at(0))(status)
		Finish(shootWith(), at(1))(status)
		Begin(shootWith(), nil, at(2))(status)
		if got := Phase(status.Credentials.Rotation, ETCDEncryptionKey); got != want {
			t.Errorf("after %s and two reconciliations the phase is %s, want %s", operation, got, want)
		}
		Begin(shootWith(), []string{gardencorev1beta1.OperationRotateETCDEncryptionKeyComplete}, at(3))(status)
		Finish(shootWith(), at(4))(status)
		if got := Phase(status.Credentials.Rotation, ETCDEncryptionKey); got != gardencorev1beta1.RotationCompleted {
			t.Errorf("%s ends in phase %s", operation, got)
		}
	}
}

func TestRemovedPoolsAreNotAwaited(t *testing.T) {
	status := &gardencorev1beta1.ShootStatus{}
	Begin(shootWith("a", "b"), []string{"rotate-ca-start-without-workers-rollout"}, at(0))(status)
	Finish(shootWith("a", "b"), at(1))(status)
	Finish(shootWith("c"), at(2))(status)
	if phase := Phase(status.Credentials.Rotation,
		CertificateAuthorities); phase != gardencorev1beta1.RotationPrepared {
		t.Errorf("the phase is %s, want Prepared: no pool of before is left", phase)
	}
}

func TestOperationsOfOthersStay(t *testing.T) {
	shoot := shootWith()
	shoot.Annotations = map[string]string{
		gardencorev1beta1.GardenerOperation: "reconcile;rotate-ca-start;rollout-workers=a",
	}
	if got := Operations(shoot); len(got) != 1 || got[0] != "rotate-ca-start" {
		t.Errorf("operations = %v", got)
	}
}
