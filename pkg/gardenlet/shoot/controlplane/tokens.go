package controlplane

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// renewTokens has resource-manager request the tokens anew that the current key for service accounts has not signed:
// the seed's processes could not use them any more when the old key is dropped. It fails until all are renewed.
func (c *ControlPlane) renewTokens(ctx context.Context) error {
	key, found := c.Secrets.Get(kubeapiserver.ServiceAccountKeyName)
	if !found {
		return fmt.Errorf("secret %q has not been generated", kubeapiserver.ServiceAccountKeyName)
	}
	public, err := parsePublicKey(key.Data[secrets.DataKeyRSAPublicKey])
	if err != nil {
		return fmt.Errorf("Secret %s: %w", client.ObjectKeyFromObject(key), err)
	}
	list := &corev1.SecretList{}
	err = c.Seed.List(ctx, list, client.InNamespace(c.Plan.Namespace),
		client.MatchingLabels{resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest})
	if err != nil {
		return fmt.Errorf("listing the Secrets with tokens: %w", err)
	}
	var old []string
	for i := range list.Items {
		secret := &list.Items[i]
		if token := tokenOf(secret); token == "" || isSignedBy(token, public) {
			continue
		}
		old = append(old, secret.Name)
		if err := c.requestRenewal(ctx, secret); err != nil {
			return err
		}
	}
	if len(old) > 0 {
		return fmt.Errorf("tokens are not yet signed with the new key: %s; is resource-manager running?",
			strings.Join(old, ", "))
	}
	return nil
}

// requestRenewal takes away the time of the next renewal, upon which resource-manager renews the token.
func (c *ControlPlane) requestRenewal(ctx context.Context, secret *corev1.Secret) error {
	if _, waiting := secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp]; !waiting {
		return nil
	}
	patch := client.MergeFrom(secret.DeepCopy())
	delete(secret.Annotations, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp)
	if err := c.Seed.Patch(ctx, secret, patch); err != nil {
		return fmt.Errorf("requesting another token in Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// tokenOf returns the token of a Secret, which may be in a kubeconfig. Files that others name there are not read.
func tokenOf(secret *corev1.Secret) string {
	raw, found := secret.Data[secrets.DataKeyKubeconfig]
	if !found {
		return string(secret.Data[resourcesv1alpha1.DataKeyToken])
	}
	config, err := clientcmd.Load(raw)
	if err != nil || clientcmdapi.MinifyConfig(config) != nil {
		return ""
	}
	for _, user := range config.AuthInfos {
		return user.Token
	}
	return ""
}

func parsePublicKey(data []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the public key is not PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the public key is a %T, want RSA", key)
	}
	return public, nil
}

// isSignedBy tells whether a key has signed a token; kube-apiserver signs with RS256 when the key is RSA.
func isSignedBy(token string, key *rsa.PublicKey) bool {
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(token[:dot]))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
}
