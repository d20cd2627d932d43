package extension

import (
	"context"
	"fmt"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// ListOfShoot lists the objects of all kinds in the namespace of a shoot.
func ListOfShoot(ctx context.Context, c client.Reader, namespace string) ([]Object, error) {
	var found []Object
	for _, list := range []client.ObjectList{
		&extensionsv1alpha1.InfrastructureList{}, &extensionsv1alpha1.ControlPlaneList{},
		&extensionsv1alpha1.WorkerList{}, &extensionsv1alpha1.NetworkList{},
		&extensionsv1alpha1.OperatingSystemConfigList{}, &extensionsv1alpha1.ContainerRuntimeList{},
		&extensionsv1alpha1.ExtensionList{}, &extensionsv1alpha1.DNSRecordList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			found = append(found, item.(Object))
		}
	}
	return found, nil
}

// kindOf returns the name of the object's Go type, which is its kind.
func kindOf(object any) string {
	t := reflect.TypeOf(object)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// sameSpec compares the specifications of two objects of one kind. What is embedded as raw JSON is compared as bytes.
func sameSpec(a, b any) bool {
	return apiequality.Semantic.DeepEqual(specOf(a), specOf(b))
}

// specOf returns the field Spec of a pointer to a struct.
func specOf(object any) any {
	return reflect.ValueOf(object).Elem().FieldByName("Spec").Interface()
}
