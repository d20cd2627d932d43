package plan

import (
	"slices"
	"strconv"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
)

// Rotation is what the phases of rotations mean for the secrets of a control plane.
type Rotation struct {
	// Initiated tells, per configuration name of the secrets manager, when its last rotation began.
	Initiated map[string]time.Time
	// KeepOldAuthorities and KeepOldServiceAccountKey: what was there before the rotation is still trusted.
	KeepOldAuthorities, KeepOldServiceAccountKey bool
	// ReplacesAuthorities: with this reconciliation the API server comes to trust, or to present, other certificates.
	// Whoever relies on that waits for it.
	ReplacesAuthorities bool
	// RenewsTokens: the tokens of the control plane's parts are to be signed with the new key.
	RenewsTokens bool
	// Encryption is the rotation of the key for encryption at rest, and the change of what is encrypted.
	Encryption Encryption
}

// Encryption is a change of how objects are stored in etcd.
type Encryption struct {
	// From is how objects were encrypted before the user asked for something else; nil if there is nothing to change.
	From *encryption.Scheme
	// Phase of the key's rotation, and when that began.
	Phase     gardencorev1beta1.CredentialsRotationPhase
	Initiated time.Time
}

// planRotation translates the phases. The names are those of all certificate authorities.
func planRotation(status *gardencorev1beta1.ShootStatus, names []string, wanted encryption.Scheme) Rotation {
	var phases *gardencorev1beta1.ShootCredentialsRotation
	plan := Rotation{Initiated: map[string]time.Time{}}
	if credentials := status.Credentials; credentials != nil {
		phases = credentials.Rotation
		plan.Encryption.From = schemeBefore(credentials.EncryptionAtRest, wanted)
	}
	authorities, key := rotation.Phase(phases, rotation.CertificateAuthorities),
		rotation.Phase(phases, rotation.ServiceAccountKey)
	plan.KeepOldAuthorities, plan.KeepOldServiceAccountKey = rotation.KeepsOld(authorities), rotation.KeepsOld(key)
	plan.ReplacesAuthorities = rotation.Introduces(authorities) || authorities == gardencorev1beta1.RotationCompleting
	plan.RenewsTokens = rotation.Introduces(key)
	for _, name := range names {
		plan.initiated(phases, rotation.CertificateAuthorities, name)
	}
	plan.initiated(phases, rotation.ServiceAccountKey, kubeapiserver.ServiceAccountKeyName)
	plan.initiated(phases, rotation.ETCDEncryptionKey, kubeapiserver.EncryptionKeyName)
	if phases != nil && phases.SSHKeypair != nil && phases.SSHKeypair.LastInitiationTime != nil {
		plan.Initiated[SSHKeypairName] = phases.SSHKeypair.LastInitiationTime.Time
	}
	plan.Encryption.Phase = rotation.Phase(phases, rotation.ETCDEncryptionKey)
	plan.Encryption.Initiated = plan.Initiated[kubeapiserver.EncryptionKeyName]
	return plan
}

// initiated notes when the last rotation of a credential began for the secrets of a name.
func (p *Rotation) initiated(phases *gardencorev1beta1.ShootCredentialsRotation, credential rotation.Credential,
	name string) {
	if at := rotation.Initiated(phases, credential); at != nil {
		p.Initiated[name] = at.Time
	}
}

// schemeBefore returns how objects are encrypted now if that is not as they are to be.
func schemeBefore(applied *gardencorev1beta1.EncryptionAtRest, wanted encryption.Scheme) *encryption.Scheme {
	if applied == nil {
		return nil
	}
	before := encryption.Scheme{
		Provider:  encryption.Provider(applied.Provider.Type),
		Resources: append([]string{encryptedAlways}, applied.Resources...),
	}
	if before.Equal(wanted) {
		return nil
	}
	return &before
}

// SSHKeypairName is the configuration name of the key pair with which the users of a shoot log in to its machines,
// and the suffix of its Secret in the garden.
const SSHKeypairName = "ssh-keypair"

// encryptedAlways is encrypted without being named.
const encryptedAlways = "secrets"

// EncryptionAtRest is what the status tells of a scheme.
func EncryptionAtRest(scheme encryption.Scheme) *gardencorev1beta1.EncryptionAtRest {
	return &gardencorev1beta1.EncryptionAtRest{
		Resources: slices.DeleteFunc(slices.Clone(scheme.Resources),
			func(resource string) bool { return resource == encryptedAlways }),
		Provider: gardencorev1beta1.EncryptionProviderStatus{
			Type: gardencorev1beta1.EncryptionProviderType(scheme.Provider),
		},
	}
}

// Changes tells whether objects have to be stored in another way.
func (p Encryption) Changes() bool { return p.From != nil || rotation.Introduces(p.Phase) }

// Moves tells whether the API server has to go through stages.
func (p Encryption) Moves() bool {
	return p.Changes() || p.Phase == gardencorev1beta1.RotationCompleting
}

// Stage returns the stage to begin with: the one that a run before reached, or the first one.
func (p Encryption) Stage(reached encryption.Stage) encryption.Stage {
	switch {
	case p.Changes() && reached != "":
		return reached
	case p.Changes():
		return encryption.Preparing
	case p.Phase == gardencorev1beta1.RotationPrepared:
		return encryption.Rewriting
	case p.Phase == gardencorev1beta1.RotationCompleting:
		return encryption.Completing
	}
	return ""
}

// Until returns the stage to stop at: the old key stays until the rotation is to be completed.
func (p Encryption) Until() encryption.Stage {
	if rotation.Introduces(p.Phase) {
		return encryption.Rewriting
	}
	return ""
}

// rotations returns when the credentials that the machines of a pool hold were last rotated.
func rotations(shoot *gardencorev1beta1.Shoot, pool string) []string {
	if shoot.Status.Credentials == nil {
		return nil
	}
	var times []string
	for _, held := range []struct {
		prefix     string
		credential rotation.Credential
	}{{"ca", rotation.CertificateAuthorities}, {"sa", rotation.ServiceAccountKey}} {
		if at := rotation.InitiatedFor(shoot.Status.Credentials.Rotation, held.credential, pool); at != nil {
			times = append(times, held.prefix+strconv.FormatInt(at.Unix(), 10))
		}
	}
	return times
}
