package controllerinstallation

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// GardenKubeconfigSecret is the Secret in an extension's namespace with a kubeconfig for the garden.
	GardenKubeconfigSecret = "generic-garden-kubeconfig"

	kubeconfigKey = "kubeconfig"
	// renewAnnotation says when the token in the kubeconfig is to be renewed.
	renewAnnotation = "trellis.garden/token-renew-timestamp"
	tokenLifetime   = 12 * time.Hour
)

// Garden is what extensions are told about the garden.
type Garden struct {
	// ClusterIdentity of the garden.
	ClusterIdentity string
	// Config is gardenlet's own access; extensions get its server and CA, and a token of their own.
	Config *rest.Config
	// Address replaces the server if not empty.
	Address string
}

// access gives extensions access to the garden.
type access struct {
	garden   client.Client
	seed     client.Client
	info     Garden
	seedName string
}

// serviceAccountFor returns the extension's identity in the garden. It may see what belongs to the seed, by its
// namespace.
func (a access) serviceAccountFor(installation string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: gardencorev1beta1.SeedNamespaceNamePrefix + a.seedName, Name: "extension-" + installation,
	}}
}

// ensure writes the kubeconfig into the extension's namespace if there is none, or its token is to be renewed; it
// returns when that will be.
func (a access) ensure(ctx context.Context, installation, namespace string) (time.Time, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: GardenKubeconfigSecret}}
	err := a.seed.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, err
	}
	if renew, err := time.Parse(time.RFC3339, secret.Annotations[renewAnnotation]); err == nil &&
		time.Now().Before(renew) {
		return renew, nil
	}
	token, expires, err := a.token(ctx, installation)
	if err != nil {
		return time.Time{}, fmt.Errorf("access of extension %s to the garden: %w", installation, err)
	}
	kubeconfig, err := a.kubeconfig(token)
	if err != nil {
		return time.Time{}, err
	}
	renew := time.Now().Add(time.Until(expires) * 8 / 10)
	_, err = ctrl.CreateOrUpdate(ctx, a.seed, secret, func() error {
		secret.Annotations = map[string]string{renewAnnotation: renew.UTC().Format(time.RFC3339)}
		secret.Data = map[string][]byte{kubeconfigKey: kubeconfig, "token": []byte(token)}
		return nil
	})
	return renew, err
}

// token creates the service account if need be and requests a token.
func (a access) token(ctx context.Context, installation string) (string, time.Time, error) {
	account := a.serviceAccountFor(installation)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: account.Namespace, Labels: map[string]string{
			gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleSeed,
		},
	}}
	for _, object := range []client.Object{namespace, account} {
		err := a.garden.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			err = a.garden.Create(ctx, object)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", time.Time{}, err
		}
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime.Seconds()))},
	}
	if err := a.garden.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, fmt.Errorf("requesting a token of ServiceAccount %s: %w",
			client.ObjectKeyFromObject(account), err)
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}

// kubeconfig renders the access.
func (a access) kubeconfig(token string) ([]byte, error) {
	server := a.info.Config.Host
	if a.info.Address != "" {
		server = a.info.Address
	}
	const name = "garden"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {
				Server: server, CertificateAuthorityData: a.info.Config.CAData, TLSServerName: a.info.Config.ServerName,
			},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"extension": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: "extension"}},
		CurrentContext: name,
	})
}

// remove deletes the extension's identity in the garden.
func (a access) remove(ctx context.Context, installation string) error {
	return client.IgnoreNotFound(a.garden.Delete(ctx, a.serviceAccountFor(installation)))
}
