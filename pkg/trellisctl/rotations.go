package trellisctl

import (
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/meanings"
)

// rotationState is how far the rotation of one credential is.
type rotationState struct {
	// what is its name in `trellisctl rotate`, as far as it can be rotated alone.
	what             string
	phase            gardencorev1beta1.CredentialsRotationPhase
	began, completed *metav1.Time
	pending          []gardencorev1beta1.PendingWorkersRollout
}

// rotationsOf lists the rotations that there have been.
func rotationsOf(shoot *gardencorev1beta1.Shoot) []rotationState {
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return nil
	}
	var list []rotationState
	all := shoot.Status.Credentials.Rotation
	if r := all.CertificateAuthorities; r != nil {
		list = append(list, rotationState{
			"ca", r.Phase, r.LastInitiationTime, r.LastCompletionTime, r.PendingWorkersRollouts,
		})
	}
	if r := all.ServiceAccountKey; r != nil {
		list = append(list, rotationState{
			"serviceaccount-key", r.Phase, r.LastInitiationTime, r.LastCompletionTime, r.PendingWorkersRollouts,
		})
	}
	if r := all.ETCDEncryptionKey; r != nil {
		list = append(list, rotationState{
			"etcd-encryption-key", r.Phase, r.LastInitiationTime, r.LastCompletionTime, nil,
		})
	}
	if r := all.SSHKeypair; r != nil {
		list = append(list, rotationState{"ssh-keypair", "", r.LastInitiationTime, r.LastCompletionTime, nil})
	}
	if r := all.Observability; r != nil {
		list = append(list, rotationState{"observability", "", r.LastInitiationTime, r.LastCompletionTime, nil})
	}
	return list
}

// goesOn tells whether a rotation that is asked for once has begun and not ended. One without phases shows that by its
// times.
func (r rotationState) goesOn() bool {
	if r.phase == "" {
		return r.began != nil && (r.completed == nil || r.completed.Before(r.began))
	}
	return r.phase != gardencorev1beta1.RotationCompleted
}

// awaited is what the owner of a shoot has to do before its rotation goes on; empty if that is nothing.
func (r rotationState) awaited(inCommands string) string {
	switch r.phase {
	case gardencorev1beta1.RotationPrepared:
		return "you, to have clients switch over (fetch new kubeconfigs), and then: trellisctl rotate " + r.what +
			" complete " + inCommands
	case gardencorev1beta1.RotationWaitingForWorkersRollout:
		return "you, to have machines replaced: trellisctl rotate workers " + inCommands + " --pools " +
			poolsOf(r.pending)
	}
	return ""
}

// awaitedRotations is what the owner of a shoot has to do before its rotations go on.
func awaitedRotations(shoot *gardencorev1beta1.Shoot, inCommands string) []string {
	var reasons []string
	for _, rotation := range rotationsOf(shoot) {
		if reason := rotation.awaited(inCommands); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

func poolsOf(pending []gardencorev1beta1.PendingWorkersRollout) string {
	names := make([]string, len(pending))
	for i, pool := range pending {
		names[i] = pool.Name
	}
	return strings.Join(names, ",")
}

// printRotations tells how far rotations of credentials are.
func printRotations(out io.Writer, rotations []rotationState, now time.Time) error {
	t := newTable(out, "CREDENTIALS", "PHASE", "BEGAN", "COMPLETED", "MEANING")
	for _, r := range rotations {
		t.row(r.what, string(r.phase), ago(r.began, now), ago(r.completed, now), meanings.Phases[r.phase])
	}
	return t.Flush()
}

// printRotationStatus tells how far the rotations of a shoot are, and what they wait for.
func printRotationStatus(out io.Writer, shoot *gardencorev1beta1.Shoot, inCommands string, now time.Time) error {
	if err := printRotations(out, rotationsOf(shoot), now); err != nil {
		return err
	}
	return awaited(out, awaitedRotations(shoot, inCommands))
}
