package managedseed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

const (
	// firstAccessLifetime is how long a bootstrap token, or a token of a bootstrap service account, is good for.
	firstAccessLifetime = 24 * time.Hour
	// renewBefore is how long before its end it is made anew, should gardenlet still need it.
	renewBefore = time.Hour

	tokenIDKey, tokenSecretKey, tokenExpirationKey = "token-id", "token-secret", "expiration"
)

// firstAccess returns the kubeconfig with which the gardenlet of a managed seed asks for its first certificate; nothing
// when it has its certificate, or is given a kubeconfig by its configuration. What is not needed any more is taken
// away.
func (r *Reconciler) firstAccess(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shootTarget *target, parsed *config.Configuration) ([]byte, error) {
	how := ptr.Deref(managedSeed.Spec.Gardenlet.Bootstrap, seedmanagementv1alpha1.BootstrapToken)
	if how == seedmanagementv1alpha1.BootstrapNone {
		return nil, nil
	}
	usable, err := hasAccess(ctx, shootTarget, parsed)
	if err != nil {
		return nil, err
	}
	if usable {
		return nil, r.removeFirstAccess(ctx, managedSeed.Name)
	}
	if how == seedmanagementv1alpha1.BootstrapServiceAccount {
		return r.accountKubeconfig(ctx, managedSeed, shootTarget, parsed)
	}
	token, err := r.bootstrapToken(ctx, managedSeed.Name)
	if err != nil {
		return nil, err
	}
	return r.kubeconfig(token)
}

// bootstrapToken returns the bootstrap token of a managed seed; it is made when there is none, or it is about to end.
func (r *Reconciler) bootstrapToken(ctx context.Context, managedSeed string) (string, error) {
	secret := tokenSecret(managedSeed)
	err := r.Garden.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the bootstrap token of seed %s: %w", managedSeed, err)
	}
	if err == nil && lasts(secret, time.Now()) {
		return tokenOf(secret), nil
	}
	if err == nil {
		if err := client.IgnoreNotFound(r.Garden.Delete(ctx, secret)); err != nil {
			return "", fmt.Errorf("deleting the bootstrap token of seed %s, which ends: %w", managedSeed, err)
		}
	}
	if secret, err = newToken(managedSeed, time.Now()); err != nil {
		return "", err
	}
	if err := r.Garden.Create(ctx, secret); err != nil {
		return "", fmt.Errorf("creating a bootstrap token for seed %s: %w", managedSeed, err)
	}
	return tokenOf(secret), nil
}

func tokenSecret(managedSeed string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: seedmanagementv1alpha1.BootstrapTokenNamespace,
		Name:      seedmanagementv1alpha1.BootstrapTokenSecretName(managedSeed),
	}}
}

// newToken returns a bootstrap token that is good for the certificate of one seed.
func newToken(managedSeed string, now time.Time) (*corev1.Secret, error) {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	secret := tokenSecret(managedSeed)
	secret.Labels = map[string]string{seedmanagementv1alpha1.BootstrapSeedLabel: managedSeed}
	secret.Type = corev1.SecretTypeBootstrapToken
	secret.Data = map[string][]byte{
		"description":                    []byte("First access of the gardenlet of managed seed " + managedSeed),
		"usage-bootstrap-authentication": []byte("true"),
		tokenIDKey:                       []byte(seedmanagementv1alpha1.BootstrapTokenID(managedSeed)),
		tokenSecretKey:                   []byte(hex.EncodeToString(random)),
		tokenExpirationKey:               []byte(now.Add(firstAccessLifetime).UTC().Format(time.RFC3339)),
	}
	return secret, nil
}

func tokenOf(secret *corev1.Secret) string {
	return string(secret.Data[tokenIDKey]) + "." + string(secret.Data[tokenSecretKey])
}

// lasts says whether a bootstrap token is good for some time yet.
func lasts(secret *corev1.Secret, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, string(secret.Data[tokenExpirationKey]))
	return err == nil && now.Before(end.Add(-renewBefore))
}

// accountKubeconfig returns a kubeconfig with a token of a service account that is made for the managed seed. The one
// that was installed before is kept while it lasts.
func (r *Reconciler) accountKubeconfig(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shootTarget *target, parsed *config.Configuration) ([]byte, error) {
	account := bootstrapAccount(managedSeed.Name)
	err := r.Garden.Get(ctx, client.ObjectKeyFromObject(account), account)
	if err == nil {
		if present := installedAccess(ctx, shootTarget, parsed, account); present != nil {
			return present, nil
		}
	}
	if apierrors.IsNotFound(err) {
		err = r.Garden.Create(ctx, account)
	}
	if err != nil {
		return nil, fmt.Errorf("bootstrap service account of seed %s: %w", managedSeed.Name, err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(firstAccessLifetime.Seconds()))},
	}
	if err := r.Garden.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return r.kubeconfig(request.Status.Token)
}

func bootstrapAccount(managedSeed string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: gardencorev1beta1.GardenNamespace,
		Name:      seedmanagementv1alpha1.BootstrapServiceAccountName(managedSeed),
	}}
}

// installedAccess returns the bootstrap kubeconfig that is in the shoot, unless it is as old as its service account or
// is about to end.
func installedAccess(ctx context.Context, shootTarget *target, parsed *config.Configuration,
	account *corev1.ServiceAccount) []byte {
	ref := parsed.GardenClientConnection.BootstrapKubeconfig
	secret := &corev1.Secret{}
	if err := shootTarget.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name},
		secret); err != nil {
		return nil
	}
	made := secret.CreationTimestamp
	if made.Before(&account.CreationTimestamp) || time.Since(made.Time) > firstAccessLifetime-renewBefore {
		return nil
	}
	return secret.Data[clientcmdKey]
}

// clientcmdKey is the key of the kubeconfig in the Secret that the chart makes.
const clientcmdKey = "kubeconfig"

// kubeconfig returns a kubeconfig of the garden with a token.
func (r *Reconciler) kubeconfig(token string) ([]byte, error) {
	server := r.GardenConfig.Host
	if address := r.Config.GardenClientConnection.GardenClusterAddress; address != "" {
		server = address
	}
	const name = "garden"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: server, CertificateAuthorityData: r.GardenConfig.CAData, TLSServerName: r.GardenConfig.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: "bootstrap"}},
		CurrentContext: name,
	})
}

// removeFirstAccess takes away what a gardenlet asked for its certificate with.
func (r *Reconciler) removeFirstAccess(ctx context.Context, managedSeed string) error {
	for _, object := range []client.Object{tokenSecret(managedSeed), bootstrapAccount(managedSeed)} {
		err := r.Garden.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			err = r.Garden.Delete(ctx, object)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("first access of the gardenlet of seed %s: %w", managedSeed, err)
		}
	}
	return nil
}
