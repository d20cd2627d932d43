package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// BootstrapSeedLabel on the Secret of a bootstrap token names the only seed whose first certificate the token may
	// ask for. Without it, a token is good for nothing.
	BootstrapSeedLabel = "trellis.garden/seed"
	// BootstrapTokenNamespace holds the Secrets of bootstrap tokens.
	BootstrapTokenNamespace = "kube-system"
	// BootstrapTokenSecretPrefix, followed by a token's id, is the name of its Secret.
	BootstrapTokenSecretPrefix = "bootstrap-token-"

	bootstrapServiceAccountPrefix = "gardenlet-bootstrap-"
	bootstrapTokenIDLength        = 6
)

// BootstrapTokenID is the id of the bootstrap token for a managed seed, always the same, so that a token that was made
// by a process which ended is found again.
func BootstrapTokenID(managedSeed string) string {
	sum := sha256.Sum256([]byte(managedSeed))
	return hex.EncodeToString(sum[:])[:bootstrapTokenIDLength]
}

// BootstrapTokenSecretName is the name of the Secret of the bootstrap token for a managed seed.
func BootstrapTokenSecretName(managedSeed string) string {
	return BootstrapTokenSecretPrefix + BootstrapTokenID(managedSeed)
}

// BootstrapServiceAccountName is the name of the service account, in the namespace garden, with which the gardenlet of
// a managed seed asks for its first certificate when spec.gardenlet.bootstrap is ServiceAccount.
func BootstrapServiceAccountName(managedSeed string) string {
	return bootstrapServiceAccountPrefix + managedSeed
}

// ManagedSeedOfServiceAccount is the reverse of BootstrapServiceAccountName.
func ManagedSeedOfServiceAccount(name string) (managedSeed string, found bool) {
	managedSeed, found = strings.CutPrefix(name, bootstrapServiceAccountPrefix)
	return managedSeed, found && managedSeed != ""
}
