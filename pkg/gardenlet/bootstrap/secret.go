package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

const kubeconfigKey = "kubeconfig"

// ErrRenewed ends the process after its certificate was renewed: the next one starts with the new certificate.
var ErrRenewed = errors.New("the client certificate for the garden was renewed; starting again with it")

// GardenConfig returns gardenlet's access to the garden. It is in the Secret connection.kubeconfigSecret of the seed;
// if that is missing, expired or for another seed, a certificate is requested with the bootstrap kubeconfig and stored
// there.
func GardenConfig(ctx context.Context, seed client.Client, connection config.GardenClientConnection,
	seedName string) (*rest.Config, error) {
	if connection.Kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", connection.Kubeconfig)
	}
	own := &corev1.Secret{}
	err := seed.Get(ctx, key(*connection.KubeconfigSecret), own)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading gardenlet's kubeconfig: %w", err)
	}
	if restConfig, ok := usable(own, seedName, time.Now()); ok {
		return restConfig, nil
	}

	ctrl.Log.Info("Requesting a client certificate for the garden", "user", UserName(seedName))
	with, err := bootstrapConfig(ctx, seed, connection)
	if err != nil {
		return nil, err
	}
	return obtain(ctx, seed, with, connection, seedName)
}

// HasAccess says whether gardenlet has, in a seed, a kubeconfig of its own that it can use; then it needs no bootstrap
// kubeconfig.
func HasAccess(ctx context.Context, seed client.Client, connection config.GardenClientConnection,
	seedName string) (bool, error) {
	own := &corev1.Secret{}
	if err := seed.Get(ctx, key(*connection.KubeconfigSecret), own); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	_, ok := usable(own, seedName, time.Now())
	return ok, nil
}

// bootstrapConfig reads the bootstrap kubeconfig.
func bootstrapConfig(ctx context.Context, seed client.Client,
	connection config.GardenClientConnection) (*rest.Config, error) {
	secret := &corev1.Secret{}
	ref := *connection.BootstrapKubeconfig
	if err := seed.Get(ctx, key(ref), secret); err != nil {
		return nil, fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	restConfig, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("key %q of Secret %s/%s: %w", kubeconfigKey, ref.Namespace, ref.Name, err)
	}
	return restConfig, nil
}

// obtain requests a certificate and stores the kubeconfig.
func obtain(ctx context.Context, seed client.Client, with *rest.Config, connection config.GardenClientConnection,
	seedName string) (*rest.Config, error) {
	certificate, err := Request(ctx, with, seedName)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := Kubeconfig(with, seedName, certificate)
	if err != nil {
		return nil, err
	}
	ref := *connection.KubeconfigSecret
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	_, err = ctrl.CreateOrUpdate(ctx, seed, secret, func() error {
		secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("storing gardenlet's kubeconfig: %w", err)
	}
	return clientcmd.RESTConfigFromKubeConfig(kubeconfig)
}

// Renewer renews the certificate when it is due. It implements manager.Runnable.
//
// All replicas of a gardenlet have one, also those that stand by: each has read the certificate when it began, and one
// that stood by beyond its end could not take over.
type Renewer struct {
	// Seed is a client of the seed, Garden the access that is to be renewed.
	Seed   client.Client
	Garden *rest.Config
	// Connection says where the kubeconfig is stored.
	Connection config.GardenClientConnection
	// SeedName is the name of the seed.
	SeedName string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Renewer) NeedLeaderElection() bool { return false }

// Start waits until the certificate is due, renews it unless another replica has done so, and returns ErrRenewed.
func (r *Renewer) Start(ctx context.Context) error {
	if r.Connection.Kubeconfig != "" {
		return nil
	}
	renew, end, err := Expiry(r.Garden)
	if err != nil {
		return err
	}
	renew = renew.Add(apart(end.Sub(renew)))
	log := ctrl.Log.WithName("certificate").WithValues("user", UserName(r.SeedName))
	log.Info("Client certificate for the garden", "renewal", renew, "expires", end)
	for wait := time.Until(renew); ; wait = time.Minute {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(wait, 0)):
		}
		if err := r.renew(ctx); err != nil {
			log.Error(err, "Renewing the client certificate failed; trying again in a minute")
			continue
		}
		return ErrRenewed
	}
}

// apart is a random part of the time that is left for a renewal, so that replicas which have begun together do not
// renew, and end, together.
func apart(left time.Duration) time.Duration { return rand.N(max(left/4, 1)) }

// renew stores a new certificate, unless the stored one is another than the own, and is not due itself.
func (r *Renewer) renew(ctx context.Context) error {
	stored := &corev1.Secret{}
	if err := r.Seed.Get(ctx, key(*r.Connection.KubeconfigSecret), stored); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading gardenlet's kubeconfig: %w", err)
	}
	if other, ok := usable(stored, r.SeedName, time.Now()); ok && !bytes.Equal(other.CertData, r.Garden.CertData) {
		if due, _, err := Expiry(other); err == nil && time.Now().Before(due) {
			return nil
		}
	}
	_, err := obtain(ctx, r.Seed, r.Garden, r.Connection, r.SeedName)
	return err
}

// key converts a reference.
func key(ref config.SecretReference) client.ObjectKey {
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}
