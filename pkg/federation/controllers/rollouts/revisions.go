package rollouts

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// templateKey is where Secrets hold the object, compressed.
const templateKey = "template.json.gz"

// largestTemplate bounds what is unpacked; API servers don't take larger objects.
const largestTemplate = 8 << 20

// revisionOf names the content of an object, as far as clusters get it, without the number of replicas.
func revisionOf(ctx context.Context, in *interpreter.Interpreter, b bindings.Binding,
	template *unstructured.Unstructured) (string, error) {
	content, err := in.Prune(ctx, template)
	if err != nil {
		return "", err
	}
	if spec := b.BindingSpec(); karmada.IsWorkload(spec) && len(spec.Components) == 0 {
		if content, err = in.Revise(ctx, content, 1); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(content.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	return shortHash(string(text)), nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// ownerOf identifies a binding in labels and names.
func ownerOf(b bindings.Binding) string { return shortHash(b.GetNamespace() + "/" + b.GetName()) }

func secretName(b bindings.Binding, revision string) string { return ownerOf(b) + "-" + revision }

// store keeps an object as a revision of its binding. One that is there already has the same content.
func (r *Rollouts) store(ctx context.Context, b bindings.Binding, revision string,
	template *unstructured.Unstructured) error {
	data, err := pack(template)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.RevisionsNamespace, Name: secretName(b, revision),
			Labels:      map[string]string{workv1alpha2.RevisionBindingLabel: ownerOf(b)},
			Annotations: map[string]string{workv1alpha2.RevisionAnnotation: revision},
		},
		Type: workv1alpha2.RevisionType, Immutable: new(true), Data: map[string][]byte{templateKey: data},
	}
	if b.GetNamespace() == "" {
		secret.Annotations[workv1alpha2.ClusterNameAnnotation] = b.GetName()
	} else {
		secret.Annotations[workv1alpha2.NamespaceAnnotation] = b.GetNamespace()
		secret.Annotations[workv1alpha2.NameAnnotation] = b.GetName()
	}
	if err := r.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing revision %s of binding %s: %w", revision, client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// load gives an object as it was. The result is the caller's own.
func (r *Rollouts) load(ctx context.Context, b bindings.Binding, revision string) (*unstructured.Unstructured, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: workv1alpha2.RevisionsNamespace, Name: secretName(b, revision)}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading revision %s of binding %s: %w", revision, client.ObjectKeyFromObject(b), err)
	}
	template, err := unpack(secret.Data[templateKey])
	if err != nil {
		return nil, fmt.Errorf("revision %s of binding %s: %w", revision, client.ObjectKeyFromObject(b), err)
	}
	return template, nil
}

// prune removes the revisions of a binding but those to keep.
func (r *Rollouts) prune(ctx context.Context, b bindings.Binding, keep sets.Set[string]) error {
	var list corev1.SecretList
	err := r.Client.List(ctx, &list, client.InNamespace(workv1alpha2.RevisionsNamespace),
		client.MatchingLabels{workv1alpha2.RevisionBindingLabel: ownerOf(b)})
	if err != nil {
		return fmt.Errorf("listing the revisions of binding %s: %w", client.ObjectKeyFromObject(b), err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Type != workv1alpha2.RevisionType || keep.Has(secret.Annotations[workv1alpha2.RevisionAnnotation]) {
			continue
		}
		if err := r.Client.Delete(ctx, secret,
			client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing revision %s: %w", secret.Name, err)
		}
	}
	return nil
}

// pack leaves out what belongs to the moment and not to the content.
func pack(template *unstructured.Unstructured) ([]byte, error) {
	object := template.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "ownerReferences", "finalizers",
		"selfLink",
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(object.Object); err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpack(data []byte) (*unstructured.Unstructured, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(reader, largestTemplate+1))
	if err != nil {
		return nil, err
	}
	if len(text) > largestTemplate {
		return nil, fmt.Errorf("larger than %d bytes", largestTemplate)
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(text)
}
