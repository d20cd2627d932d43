package managedresources

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/manifests"
)

const (
	// compressedKey is the key of the Secret under which the objects stand, as a YAML stream compressed with brotli.
	compressedKey    = "data.yaml.br"
	compressedSuffix = ".br"
	// maxManifest bounds what a key may hold when it is decompressed: a Secret of 1 MiB could fill the memory.
	maxManifest = 8 << 20
)

// compression is that of brotli's own default, with a window that is enough for a Secret.
var compression = brotli.WriterOptions{Quality: brotli.DefaultCompression, LGWin: 18}

// Encode returns the data of a Secret that holds objects in the given order. Kinds are taken from the scheme.
func Encode(scheme *runtime.Scheme, objects ...client.Object) (map[string][]byte, error) {
	var compressed bytes.Buffer
	stream := brotli.NewWriterOptions(&compressed, compression)
	for _, object := range objects {
		content, err := apply.ToUnstructured(scheme, object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", apply.Describe(scheme, object), err)
		}
		document, err := yaml.Marshal(content.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", apply.Describe(scheme, object), err)
		}
		if _, err := stream.Write(append([]byte("---\n"), document...)); err != nil {
			return nil, fmt.Errorf("compressing objects: %w", err)
		}
	}
	if err := stream.Close(); err != nil {
		return nil, fmt.Errorf("compressing objects: %w", err)
	}
	return map[string][]byte{compressedKey: compressed.Bytes()}, nil
}

// Decode reads the objects of a Secret's data: every key is a YAML stream or JSON, compressed with brotli if its name
// ends in ".br". Lists are flattened. The order is that of the keys, then that of the documents.
func Decode(data map[string][]byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(data)) {
		stream, err := plain(key, data[key])
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		decoded, err := decodeStream(stream)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// plain returns what a key holds, decompressed.
func plain(key string, value []byte) ([]byte, error) {
	if !strings.HasSuffix(key, compressedSuffix) {
		return value, nil
	}
	stream, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(value)), maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if len(stream) > maxManifest {
		return nil, fmt.Errorf("holds more than %d MiB", maxManifest>>20)
	}
	return stream, nil
}

// decodeStream reads one YAML stream.
func decodeStream(stream []byte) ([]*unstructured.Unstructured, error) {
	documents, err := manifests.Decode(stream)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, document := range documents {
		flat, err := flatten(document)
		if err != nil {
			return nil, err
		}
		objects = append(objects, flat...)
	}
	return objects, nil
}

// flatten checks an object and takes lists apart.
func flatten(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if object.IsList() {
		var items []*unstructured.Unstructured
		err := object.EachListItem(func(item runtime.Object) error {
			items = append(items, item.(*unstructured.Unstructured))
			return nil
		})
		return items, err
	}
	if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
		return nil, fmt.Errorf("object %s %s %q lacks apiVersion, kind or metadata.name",
			object.GetAPIVersion(), object.GetKind(), object.GetName())
	}
	// What a server fills in must not be sent with an apply.
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
	return []*unstructured.Unstructured{object}, nil
}
