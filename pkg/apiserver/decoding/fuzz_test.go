package decoding

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// examples are the objects that the landscape has examples of, in JSON.
func examples(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../../../landscape/local/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			object, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object)
		}
	}
	return all
}

// FuzzDecode gives anything to the scans of whole objects. They never panic, and refuse no JSON for its form that a
// decoder accepts, nor count less than there is.
func FuzzDecode(f *testing.F) {
	for _, example := range examples(f) {
		f.Add(uint8(0), example)
		if object, kind, err := serializer.NewCodecFactory(apis.GardenScheme()).UniversalDeserializer().Decode(example,
			nil, nil); err == nil && kind.GroupVersion() == gardencorev1beta1.SchemeGroupVersion {
			f.Add(uint8(2), inProtobuf(f, object, kind.Kind))
		}
	}
	f.Add(uint8(1), []byte("a: &a\n- {b: [1]}\n? c\n: *a\n"))
	f.Add(uint8(0), []byte(managedBy(`{"f:b":{"k:{\"a\":1}":{".":{}},"v:1":{}},"f:a":{}}`)))
	formats := []string{jsonFormat, yamlFormat, protobufFormat}
	f.Fuzz(func(t *testing.T, number uint8, body []byte) {
		format := formats[int(number)%len(formats)]
		refused := inspect(apis.GardenScheme(), format, body)
		if format != jsonFormat || len(body) == 0 {
			return
		}
		requireScanned(t, body, refused)
	})
}

// FuzzPatch does the same with patches.
func FuzzPatch(f *testing.F) {
	for i, patch := range []string{
		`[{"op":"copy","from":"/spec","path":"/spec/a"},{"op":"test","path":"","value":{"a":[1]}}]`,
		`{"spec":{"provider":{"workers":[{"name":"a","$patch":"delete"}],"$setElementOrder/workers":[{"name":"b"}]}}}`,
		`{"metadata":{"labels":{"a":null},"managedFields":[{"fieldsV1":{"f:a":{}}}]}}`,
		"apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec:\n  region: a\n",
	} {
		f.Add(uint8(i), []byte(patch))
	}
	formats := []string{jsonPatch, strategicPatch, mergePatch, applyPatch}
	f.Fuzz(func(t *testing.T, number uint8, body []byte) {
		format := formats[int(number)%len(formats)]
		refused := inspect(apis.GardenScheme(), format, body)
		if format != applyPatch && len(body) > 0 {
			requireScanned(t, body, refused)
		}
	})
}

// requireScanned compares a scan with the decoder of Go, which is as strict as those of requests.
func requireScanned(t *testing.T, body []byte, refused *refusal) {
	t.Helper()
	if !json.Valid(body) {
		return
	}
	if refused != nil && refused.syntax {
		t.Fatalf("JSON is refused for its form: %v", refused)
	}
	if refused != nil {
		return
	}
	c := &counter{maxItems: MaxItems}
	if r := scanJSON(body, c, nil); r != nil {
		t.Fatal(r)
	}
	var decoded any
	if err := json.Unmarshal(body, &decoded); err != nil {
		t.Fatal(err)
	}
	if there := valuesOf(decoded); c.values < there {
		t.Fatalf("counted %d values, there are %d", c.values, there)
	}
}

func valuesOf(value any) int {
	values := 1
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			values += valuesOf(v)
		}
	case []any:
		for _, v := range value {
			values += valuesOf(v)
		}
	}
	return values
}

// The examples are accepted in every format that they can be sent in.
func TestExamplesAreAccepted(t *testing.T) {
	for _, example := range examples(t) {
		for _, format := range []string{jsonFormat, yamlFormat, mergePatch, strategicPatch, applyPatch} {
			if r := inspect(apis.GardenScheme(), format, example); r != nil {
				t.Errorf("%s %.80s: %v", format, example, r)
			}
		}
	}
}
