package gardenlet

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// issueTokens fills the Secrets that ask for tokens of shoots, as resource-manager would if their API servers ran.
func issueTokens(ctx context.Context) {
	list := &corev1.SecretList{}
	if c.List(ctx, list, client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
	}) != nil {
		return
	}
	for _, secret := range list.Items {
		if _, issued := secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp]; issued ||
			!strings.HasPrefix(secret.Namespace, "shoot--") {
			continue
		}
		token := signedToken(ctx, secret.Namespace)
		if token == "" {
			continue
		}
		patch := client.MergeFrom(secret.DeepCopy())
		secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyToken: []byte(token)}
		secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp] = time.Now().
			Add(time.Hour).Format(time.RFC3339)
		_ = c.Patch(ctx, &secret, patch)
	}
}

// signedToken is signed with the latest key for service accounts of a control plane; empty if there is none.
func signedToken(ctx context.Context, namespace string) string {
	keys := &corev1.SecretList{}
	if c.List(ctx, keys, client.InNamespace(namespace),
		client.MatchingLabels{secrets.LabelName: kubeapiserver.ServiceAccountKeyName}) != nil || len(keys.Items) == 0 {
		return ""
	}
	latest := slices.MaxFunc(keys.Items, func(a, b corev1.Secret) int {
		return strings.Compare(a.Labels[secrets.LabelRotationInitiation], b.Labels[secrets.LabelRotationInitiation])
	})
	block, _ := pem.Decode(latest.Data[secrets.DataKeyRSAPrivateKey])
	if block == nil {
		return ""
	}
	var key *rsa.PrivateKey
	if parsed, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		key = parsed
	} else if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = parsed.(*rsa.PrivateKey)
	}
	if key == nil {
		return ""
	}
	const content = "header.claims"
	sum := sha256.Sum256([]byte(content))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return ""
	}
	return content + "." + base64.RawURLEncoding.EncodeToString(signature)
}
