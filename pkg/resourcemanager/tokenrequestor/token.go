// Package tokenrequestor fills `shoot-access-*` Secrets in the seed with tokens of service accounts in the shoot, and
// renews them before they expire. Control plane components mount these Secrets.
package tokenrequestor

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// ServiceAccountLabels holds labels for the service account as a JSON object.
	ServiceAccountLabels = "serviceaccount.resources.gardener.cloud/labels"
	// ServiceAccountUID is the service account that the token belongs to. If it was recreated, so is the token.
	ServiceAccountUID = "trellis.garden/service-account-uid"

	// DefaultExpiration is the validity of tokens.
	DefaultExpiration = 12 * time.Hour
	// minimumExpiration is the least that kube-apiserver accepts.
	minimumExpiration = 10 * time.Minute
	// renewAt is the part of the validity after which a token is renewed.
	renewAt = 0.8

	kubeconfigKey = "kubeconfig"
)

// account is what a Secret asks for.
type account struct {
	namespace, name string
	expiration      time.Duration
}

// accountOf reads the annotations of a Secret.
func accountOf(secret *corev1.Secret) (account, error) {
	a := account{
		namespace:  secret.Annotations[resourcesv1alpha1.ServiceAccountNamespace],
		name:       secret.Annotations[resourcesv1alpha1.ServiceAccountName],
		expiration: DefaultExpiration,
	}
	if a.name == "" || a.namespace == "" {
		return a, fmt.Errorf("annotations %s and %s must name a service account", resourcesv1alpha1.ServiceAccountName,
			resourcesv1alpha1.ServiceAccountNamespace)
	}
	if value, ok := secret.Annotations[resourcesv1alpha1.ServiceAccountTokenExpirationDuration]; ok {
		expiration, err := time.ParseDuration(value)
		if err != nil {
			return a, fmt.Errorf("annotation %s: %w", resourcesv1alpha1.ServiceAccountTokenExpirationDuration, err)
		}
		a.expiration = max(expiration, minimumExpiration)
	}
	return a, nil
}

// due says how long the token of a Secret may still be used; zero means that it must be renewed now.
func due(secret *corev1.Secret, now time.Time) time.Duration {
	if !hasToken(secret) {
		return 0
	}
	at, err := time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	if err != nil || !at.After(now) {
		return 0
	}
	return at.Sub(now)
}

// hasToken says whether the Secret holds a token, in a kubeconfig if it has one.
func hasToken(secret *corev1.Secret) bool {
	raw, ok := secret.Data[kubeconfigKey]
	if !ok {
		return len(secret.Data[resourcesv1alpha1.DataKeyToken]) > 0
	}
	user, _, err := userOf(raw)
	return err == nil && user.Token != ""
}

// renewTime is when a token issued now must be renewed.
func renewTime(now, expires time.Time) time.Time {
	return now.Add(time.Duration(float64(expires.Sub(now)) * renewAt))
}

// fill puts a token into the Secret: into its kubeconfig if it has one, else under the key `token`.
func fill(secret *corev1.Secret, token string, renew time.Time, uid string) error {
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp] = renew.UTC().Format(time.RFC3339)
	secret.Annotations[ServiceAccountUID] = uid
	raw, ok := secret.Data[kubeconfigKey]
	if !ok {
		secret.Data[resourcesv1alpha1.DataKeyToken] = []byte(token)
		return nil
	}
	user, config, err := userOf(raw)
	if err != nil {
		return err
	}
	user.Token = token
	if raw, err = clientcmd.Write(*config); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	secret.Data[kubeconfigKey] = raw
	return nil
}

// userOf returns the user of a kubeconfig's current context.
func userOf(raw []byte) (*clientcmdapi.AuthInfo, *clientcmdapi.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("key %q: %w", kubeconfigKey, err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, nil, errors.New("the kubeconfig has no current context")
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return nil, nil, fmt.Errorf("the kubeconfig has no user %q", current.AuthInfo)
	}
	return user, config, nil
}
