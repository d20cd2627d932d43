package managedresources

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/trellis-garden/trellis/pkg/apply"
)

const twoDocuments = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  creationTimestamp: null
status: {}
---
# nothing here
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: b, namespace: x}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: c, namespace: x}
  spec: {template: {metadata: {labels: {app: c}}}}
`

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		name string
		data map[string][]byte
		want []string
		err  string
	}{
		{"nothing", nil, nil, ""},
		{
			"streams and lists", map[string][]byte{"all.yaml": []byte(twoDocuments)},
			[]string{"ConfigMap a", "Secret x/b", "Deployment x/c"}, "",
		},
		{"keys in order", map[string][]byte{
			"b": []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"second"}}`),
			"a": []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: first}"),
		}, []string{"Namespace first", "Namespace second"}, ""},
		{"not YAML", map[string][]byte{"x": []byte("a: [")}, nil, `key "x": document 1`},
		{
			"no name", map[string][]byte{"x": []byte("apiVersion: v1\nkind: Pod")}, nil,
			"lacks apiVersion, kind or metadata.name",
		},
		{
			"compressed", map[string][]byte{"data.yaml.br": compressed(t, twoDocuments)},
			[]string{"ConfigMap a", "Secret x/b", "Deployment x/c"}, "",
		},
		{
			"not compressed", map[string][]byte{"data.yaml.br": []byte(twoDocuments)}, nil,
			`key "data.yaml.br": decompressing`,
		},
		{
			"a bomb", map[string][]byte{"data.yaml.br": compressed(t, strings.Repeat("#", 2*maxManifest))}, nil,
			"holds more than 8 MiB",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects, err := Decode(test.data)
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, apply.Describe(clientgoscheme.Scheme, object))
				if _, found := object.Object["status"]; found {
					t.Errorf("%s still has a status", apply.Describe(clientgoscheme.Scheme, object))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// compressed is what other writers of ManagedResources make of a text.
func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := brotli.NewWriter(&buffer)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	a := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "a"}, Data: map[string]string{"b": "---\nc"},
	}
	b := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	data, err := Encode(clientgoscheme.Scheme, a, b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(clientgoscheme.Scheme, a, b)
	if err != nil || len(data) != 1 || !bytes.Equal(data[compressedKey], again[compressedKey]) {
		t.Errorf("encoded twice: %q and %q, error %v", data, again, err)
	}
	objects, err := Decode(data)
	if err != nil || len(objects) != 2 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	if objects[0].Object["data"].(map[string]any)["b"] != "---\nc" || objects[1].GetKind() != "Namespace" ||
		objects[1].Object["status"] != nil {
		t.Errorf("objects %v", objects)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("x", []byte(twoDocuments))
	f.Add(compressedKey, []byte{0x0b, 0x02, 0x80, 'a', ':', ' ', 'b', 0x03})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		objects, err := Decode(map[string][]byte{key: value})
		if err != nil && objects != nil {
			t.Errorf("objects %v with error %v", objects, err)
		}
	})
}
