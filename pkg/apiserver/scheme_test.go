package apiserver

import (
	"bytes"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// protobufMagic is what Kubernetes' protobuf begins with.
const protobufMagic = "k8s\x00"

const storedJSON = `{"kind":"Project","apiVersion":"core.gardener.cloud/v1beta1","metadata":{"name":"demo","uid":"1"},"spec":{"namespace":"garden-demo","purpose":"p"}}`

// What is stored becomes protobuf, and what earlier versions stored as JSON is read as before.
func TestStorageCodec(t *testing.T) {
	codec := newStorageCodec()
	fromJSON, err := runtime.Decode(codec, []byte(storedJSON))
	if err != nil {
		t.Fatal(err)
	}
	project, ok := fromJSON.(*gardencorev1beta1.Project)
	if !ok || project.Name != "demo" || *project.Spec.Namespace != "garden-demo" {
		t.Fatalf("JSON is read as %#v", fromJSON)
	}

	stored, err := runtime.Encode(codec, project)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(stored, []byte(protobufMagic)) || bytes.Contains(stored, []byte(`"spec"`)) {
		t.Errorf("what is stored is not protobuf: %q", stored)
	}
	fromProtobuf, err := runtime.Decode(codec, stored)
	if err != nil {
		t.Fatal(err)
	}
	if !apiequality.Semantic.DeepEqual(fromProtobuf, fromJSON) {
		t.Errorf("protobuf is read as %#v, want %#v", fromProtobuf, fromJSON)
	}
}

// Every stored kind has a protobuf form; the server could not store it otherwise.
func TestEveryStoredKindIsProtobuf(t *testing.T) {
	codec := newStorageCodec()
	for _, version := range storedVersions {
		for kind := range Scheme.KnownTypes(version) {
			object, err := Scheme.New(version.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := object.(metav1.Object); !ok {
				continue // options and lists
			}
			if _, err := runtime.Encode(codec, object); err != nil {
				t.Errorf("%s cannot be stored: %v", version.WithKind(kind), err)
			}
		}
	}
}
