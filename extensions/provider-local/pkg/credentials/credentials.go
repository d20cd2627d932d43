// Package credentials finds the local cloud and the token for it: in the Secret of the user who owns a shoot or a
// domain, or else what the operator gave the extension.
package credentials

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// Keys of Secrets with credentials.
const (
	KeyEndpoint = "endpoint"
	KeyToken    = "token"
)

// Source finds credentials.
type Source struct {
	// Reader reads Secrets of the seed.
	Reader client.Reader
	// Endpoint is that of the operator's cloud.
	Endpoint string
	// Secret is the operator's: its key token is for Endpoint.
	Secret client.ObjectKey
}

// Client returns a client for the cloud of the Secret. A Secret without a token, or none, means the operator's cloud;
// so does one with a token of the garden: the local cloud has tokens of its own. Only an error that says that there is
// no token tells the user to act.
func (s Source) Client(ctx context.Context, ref corev1.SecretReference) (*api.Client, error) {
	secret, err := s.read(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return nil, err
	}
	if secret.Labels[securityv1alpha1.LabelPurpose] == securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor {
		secret = &corev1.Secret{}
	}
	result := &api.Client{Endpoint: s.Endpoint, Token: string(secret.Data[KeyToken])}
	if endpoint := string(secret.Data[KeyEndpoint]); endpoint != "" {
		result.Endpoint = endpoint
	}
	if result.Token != "" {
		return result, nil
	}
	secret, err = s.read(ctx, s.Secret)
	if err != nil {
		return nil, err
	}
	// The operator's token goes to the operator's cloud only.
	result = &api.Client{Endpoint: s.Endpoint, Token: string(secret.Data[KeyToken])}
	if result.Token == "" {
		err := fmt.Errorf("no token for the local cloud: Secret %s/%s has no key %s, and neither has %s", ref.Namespace,
			ref.Name, KeyToken, s.Secret)
		return nil, extension.WithCodes(err, gardencorev1beta1.ErrorInfraUnauthenticated)
	}
	return result, nil
}

// read treats a missing Secret as an empty one.
func (s Source) read(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if key.Name == "" {
		return secret, nil
	}
	if err := s.Reader.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the credentials %s: %w", key, err)
	}
	return secret, nil
}
