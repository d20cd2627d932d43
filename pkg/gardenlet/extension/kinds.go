package extension

import (
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

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
