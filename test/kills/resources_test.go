package kills

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/managedresources"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// keepResources plays resource-manager with a ManagedResource. Of what is kept in the shoot only the configurations of
// node-agents are of interest.
func (w *world) keepResources(ctx context.Context, m *resourcesv1alpha1.ManagedResource) {
	if m.DeletionTimestamp != nil {
		m.Finalizers = nil
		_ = w.seedClient.Update(ctx, m)
		return
	}
	secret := &corev1.Secret{}
	if len(m.Spec.SecretRefs) == 0 || w.seedClient.Get(ctx,
		client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.SecretRefs[0].Name}, secret) != nil {
		return
	}
	sum := checksumOf(secret.Data)
	if m.Status.SecretsDataChecksum != nil && *m.Status.SecretsDataChecksum == sum &&
		m.Status.ObservedGeneration == m.Generation {
		return
	}
	objects, err := managedresources.Decode(secret.Data)
	if err != nil {
		return
	}
	m.Finalizers = []string{finalizer}
	if w.seedClient.Update(ctx, m) != nil {
		return
	}
	m.Status.Resources = nil
	for _, kept := range objects {
		m.Status.Resources = append(m.Status.Resources, resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{
				APIVersion: kept.GetAPIVersion(), Kind: kept.GetKind(), Namespace: kept.GetNamespace(),
				Name: kept.GetName(),
			},
		})
	}
	w.configureNodes(objects)
	m.Status.SecretsDataChecksum, m.Status.ObservedGeneration = &sum, m.Generation
	_ = w.seedClient.Status().Update(ctx, m)
}

func checksumOf(data map[string][]byte) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		sum.Write(data[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// configureNodes gives node-agents what is in a ManagedResource for them.
func (w *world) configureNodes(objects []*unstructured.Unstructured) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, kept := range objects {
		pool := kept.GetLabels()[gardencorev1beta1.LabelWorkerPool]
		encoded, _, _ := unstructured.NestedString(kept.Object, "data", extensionsv1alpha1.NodeAgentSecretDataKey)
		configuration, err := base64.StdEncoding.DecodeString(encoded)
		if kept.GetKind() != "Secret" || pool == "" || err != nil {
			continue
		}
		w.cluster.put(path{"/api/v1", "secrets", metav1.NamespaceSystem, "configuration-of-" + pool}, object{
			"kind": "Secret", "apiVersion": "v1", "metadata": object{"name": "configuration-of-" + pool},
			"pool": pool, "configuration": configuration,
		})
		node := path{"/api/v1", "nodes", "", pool + "-0"}
		if found, exists := w.cluster.objects[node]; exists {
			w.cluster.put(node, withAnnotation(found, checksumAnnotation, w.configurationOf(pool)))
		}
	}
}

// withAnnotation is a copy of an object with an annotation set.
func withAnnotation(found object, name, value string) object {
	copied, metadata := maps.Clone(found), maps.Clone(found["metadata"].(object))
	metadata["annotations"] = object{name: value}
	copied["metadata"] = metadata
	return copied
}

// issueToken fills a Secret that asks for a token of the shoot, as resource-manager would.
func (w *world) issueToken(ctx context.Context, secret *corev1.Secret) {
	_, issued := secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp]
	asked := secret.Labels[resourcesv1alpha1.ResourceManagerPurpose] == resourcesv1alpha1.LabelPurposeTokenRequest
	if issued || !asked {
		return
	}
	key := w.serviceAccountKey(secret.Namespace)
	if key == nil {
		return
	}
	const content = "header.claims"
	sum := sha256.Sum256([]byte(content))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return
	}
	secret.Data = map[string][]byte{
		resourcesv1alpha1.DataKeyToken: []byte(content + "." + base64.RawURLEncoding.EncodeToString(signature)),
	}
	secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp] = time.Now().Add(24 * time.Hour).
		UTC().Format(time.RFC3339)
	_ = w.seedClient.Update(ctx, secret)
}

// serviceAccountKey is the latest key of a control plane; nil if there is none.
func (w *world) serviceAccountKey(namespace string) *rsa.PrivateKey {
	var latest *corev1.Secret
	for _, stored := range w.stored() {
		secret, ok := stored.(*corev1.Secret)
		if !ok || secret.Namespace != namespace ||
			secret.Labels[secrets.LabelName] != kubeapiserver.ServiceAccountKeyName {
			continue
		}
		if latest == nil || strings.Compare(secret.Labels[secrets.LabelRotationInitiation],
			latest.Labels[secrets.LabelRotationInitiation]) > 0 {
			latest = secret
		}
	}
	if latest == nil {
		return nil
	}
	return parseKey(latest.Data[secrets.DataKeyRSAPrivateKey])
}

func parseKey(data []byte) *rsa.PrivateKey {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*rsa.PrivateKey)
	return key
}
