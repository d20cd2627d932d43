package shoot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// secretPrefix begins the names of the Secrets of ManagedResources.
const secretPrefix = "managedresource-"

// deployManagedResource has resource-manager keep exactly these objects in the shoot.
func (o *Operation) deployManagedResource(ctx context.Context, name string, objects ...client.Object) error {
	manifests, err := render(o.Seed.Scheme(), objects)
	if err != nil {
		return fmt.Errorf("ManagedResource %s: %w", name, err)
	}
	secret := &corev1.Secret{ObjectMeta: o.meta(secretPrefix + name), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"objects.yaml": manifests}}
	resource := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: o.meta(name),
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			SecretRefs: []corev1.LocalObjectReference{{Name: secret.Name}}, InjectLabels: map[string]string{gardencorev1beta1.ShootNoCleanup: "true"},
			KeepObjects: ptr.To(false),
		},
	}
	return o.apply(ctx, secret, resource)
}

// removeManagedResource has resource-manager delete the objects in the shoot, and waits for that. Only then may their Secret go.
func (o *Operation) removeManagedResource(ctx context.Context, name string) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: o.meta(name)}
	if err := component.Delete(ctx, o.Seed, resource); err != nil {
		return err
	}
	if err := component.WaitUntilGone(ctx, o.Seed, resource); err != nil {
		return err
	}
	return component.Delete(ctx, o.Seed, &corev1.Secret{ObjectMeta: o.meta(secretPrefix + name)})
}

// render writes objects as a YAML stream.
func render(scheme *runtime.Scheme, objects []client.Object) ([]byte, error) {
	var stream bytes.Buffer
	for _, object := range objects {
		content, err := component.ToUnstructured(scheme, object)
		if err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(content.Object)
		if err != nil {
			return nil, err
		}
		stream.WriteString("---\n")
		stream.Write(document)
	}
	return stream.Bytes(), nil
}

// compact returns raw JSON without insignificant space and with sorted keys, as the API server stores it; specifications
// are compared by bytes.
func compact(raw *runtime.RawExtension) *runtime.RawExtension {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return raw
	}
	data, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return &runtime.RawExtension{Raw: data}
}
