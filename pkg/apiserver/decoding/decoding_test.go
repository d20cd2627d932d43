package decoding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	jsonFormat      = runtime.ContentTypeJSON
	yamlFormat      = runtime.ContentTypeYAML
	protobufFormat  = runtime.ContentTypeProtobuf
	jsonPatch       = string(types.JSONPatchType)
	mergePatch      = string(types.MergePatchType)
	strategicPatch  = string(types.StrategicMergePatchType)
	applyPatch      = string(types.ApplyYAMLPatchType)
	sizeOfHuge      = 1 << 20
	workersOfShoots = `{"spec":{"provider":{"workers":[%s]}}}`
)

// items returns n items with commas between them. %d in an item is its number.
func items(n int, item string) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprintf("%06d", i)))
	}
	return all.String()
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func inMetadata(field, value string) string {
	return `{"metadata":{"` + field + `":` + value + `}}`
}

func managedBy(fields string) string {
	return inMetadata("managedFields", `[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":`+fields+`}]`)
}

// sorted returns a set of about so many bytes as the server writes it.
func sorted(size int) string {
	const item = `"k:{\"name\":\"%d\"}":{".":{},"f:b":{}}`
	return `{"f:a":{".":{},` + items(size/(len(item)+len(",0000")), item) + `}}`
}

func TestLimits(t *testing.T) {
	unsorted := `{"f:z":{},` + strings.TrimPrefix(sorted(MaxUnsortedManagedFields), "{")
	for _, test := range []struct {
		name, format, body, want string // part of the refusal; none when accepted
	}{
		{"ordinary", jsonFormat, `{"apiVersion":"v1","a":[1,true,null,"x\"y",{"b":-1.5e3}], "c" : {} }`, ""},
		{"items", jsonFormat, fmt.Sprintf(workersOfShoots, items(MaxItems, `{}`)), ""},
		{
			"too many items", jsonFormat, fmt.Sprintf(workersOfShoots, items(MaxItems+7, `{}`)),
			"spec.provider.workers: Too many: 5007: must have at most 5000 items",
		},
		{
			"too many in a list in a list", jsonFormat, `{"a":[{},{"b":[` + items(MaxItems+1, `1`) + `]}]}`,
			"a[1].b: Too many: 5001",
		},
		{"too many keys", jsonFormat, `{"data":{` + items(MaxItems+1, `"%d":1`) + `}}`, "data: Too many: 5001"},
		{
			"values", jsonFormat, `{` + items(14, `"%d":[`+items(4000, `1`)+`]`) + `}`,
			"the body of the request has 56015 values, at most 50000 are allowed",
		},
		{"depth", jsonFormat, `{"a":` + nested(MaxDepth-1) + `}`, ""},
		{"too deep", jsonFormat, `{"a":` + nested(MaxDepth) + `}`, "a[0][0]"},
		{"far too deep", jsonFormat, nested(sizeOfHuge / 2), "nested deeper than 64"},
		{"labels", jsonFormat, inMetadata("labels", `{`+items(MaxMetadata, `"%d":""`)+`}`), ""},
		{
			"too many labels", jsonFormat, inMetadata("labels", `{`+items(MaxMetadata+1, `"%d":""`)+`}`),
			"metadata.labels: Too many: 1001: must have at most 1000 items",
		},
		{
			"too many labels, in disguise", jsonFormat,
			inMetadata(`l\u0061bels`, `{`+items(MaxMetadata+1, `"%d":""`)+`}`), "metadata.labels: Too many: 1001",
		},
		{
			"too many annotations", mergePatch, inMetadata("annotations", `{`+items(MaxMetadata+1, `"%d":""`)+`}`),
			"metadata.annotations: Too many: 1001",
		},
		{
			"too many finalizers", jsonFormat, inMetadata("finalizers", `[`+items(MaxMetadata+1, `"a"`)+`]`),
			"metadata.finalizers: Too many: 1001",
		},
		{
			"too many owners", jsonFormat, inMetadata("ownerReferences", `[`+items(MaxMetadata+1, `{}`)+`]`),
			"metadata.ownerReferences: Too many: 1001",
		},
		{
			"too many labels of a template", jsonFormat,
			`{"spec":{"template":` + inMetadata("labels", `{`+items(MaxMetadata+1, `"%d":""`)+`}`) + `}}`,
			"spec.template.metadata.labels: Too many: 1001",
		},
		{
			"too many managers", jsonFormat, inMetadata("managedFields", `[`+items(MaxMetadata+1, `{}`)+`]`),
			"metadata.managedFields: Too many: 1001",
		},
		{"managed fields", jsonFormat, managedBy(sorted(MaxManagedFields - 1000)), ""},
		{
			"large managed fields", jsonFormat, managedBy(sorted(MaxManagedFields + 100)),
			"metadata.managedFields: Too long: has",
		},
		{
			"managed fields in another order", jsonFormat, managedBy(unsorted),
			"in another order than that of the server",
		},
		{"a few managed fields in another order", jsonFormat, managedBy(`{"f:b":{},"f:a":{}}`), ""},

		{
			"too many merged", strategicPatch, fmt.Sprintf(workersOfShoots, items(MaxMergedItems+1, `{}`)),
			"spec.provider.workers: Too many: 1001: must have at most 1000 items",
		},
		{
			"merged in another case", strategicPatch,
			`{"spec":{"provider":{"Workers":[` + items(MaxMergedItems+1, `{}`) + `]}}}`,
			"spec.provider.Workers: Too many: 1001",
		},
		{
			"too many removed", strategicPatch,
			inMetadata("$deleteFromPrimitiveList/finalizers", `[`+items(MaxMergedItems+1, `"a"`)+`]`), "Too many: 1001",
		},
		{
			"too many values merged", strategicPatch, `{` + items(30, `"%d":[`+items(900, `1`)+`]`) + `}`,
			"has 27031 values, at most 20000",
		},
		{
			"too many applied", applyPatch, fmt.Sprintf(workersOfShoots, items(MaxMergedItems+1, `{}`)),
			"spec.provider.workers: Too many: 1001",
		},
		{"replaced", mergePatch, fmt.Sprintf(workersOfShoots, items(MaxMergedItems+1, `{}`)), ""},
		{"too many replaced", mergePatch, fmt.Sprintf(workersOfShoots, items(MaxItems+1, `{}`)), "Too many: 5001"},
		{"operations", jsonPatch, `[` + items(MaxOperations, `{"op":"remove","path":"/a"}`) + `]`, ""},
		{
			"too many operations", jsonPatch,
			`[` + items(MaxOperations+1, `{"op":"copy","from":"/spec","path":"/a"}`) + `]`,
			"the JSON patch has 1001 operations, at most 1000 are allowed",
		},
		{
			"large value of an operation", jsonPatch,
			`[{"op":"add","path":"/metadata/labels","value":{` + items(MaxMergedItems+1, `"%d":""`) + `}}]`,
			"[0].value: Too many: 1001",
		},

		{"YAML", yamlFormat, "metadata:\n  name: a\nspec:\n- a: 1\n", ""},
		{
			"YAML with many items", applyPatch, "spec:\n  workers:\n" + strings.Repeat("  - {}\n", MaxMergedItems+1),
			"spec.workers: Too many: 1001",
		},
		{"YAML with very many items", applyPatch, "spec:\n" + strings.Repeat("- {}\n", sizeOfHuge/5), "send JSON"},
		{"YAML with many lists", yamlFormat, strings.Repeat("- ", sizeOfHuge/2), "send JSON"},
		{"deep YAML", yamlFormat, "a: " + nested(MaxDepth) + "\n", "nested deeper"},
		{"anchors", yamlFormat, "a: &a [1,2]\nb: *a\n", "byte 3 of the YAML is an anchor"},
		{"no YAML", yamlFormat, "a: [", "cannot be read"},
		{"JSON as YAML", applyPatch, `{"a":1}`, ""},

		{"no JSON", jsonFormat, `{"a" 1}`, "byte 5 of the JSON is '1', expected a colon"},
		{"half a JSON", jsonFormat, `{"a":[1,`, "the JSON ends"},
		{"half a string", jsonFormat, `{"a\`, "the JSON ends within a string"},
		{"no value", jsonFormat, `{"a":}`, "expected a value"},
		{"more than JSON", jsonFormat, `{} {}`, "expected the end"},
		{"a wrong name", jsonFormat, `{"\x":1}`, "invalid character"},
		{"another format", "text/plain", `{"a":`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { requireRefusal(t, test.format, []byte(test.body), test.want) })
	}
}

// requireRefusal fails unless a body is refused with a message, or accepted if there is none.
func requireRefusal(t *testing.T, format string, body []byte, want string) {
	t.Helper()
	refused := inspect(apis.GardenScheme(), format, body)
	switch {
	case refused == nil && want != "":
		t.Errorf("accepted, want it refused with %q", want)
	case refused != nil && want == "":
		t.Errorf("refused: %v", refused)
	case refused != nil:
		message := refused.status(gardencorev1beta1.Resource("shoots"), "a").Error()
		if !strings.Contains(message, want) {
			t.Errorf("refused with %q, want %q", message, want)
		}
	}
}

// inProtobuf writes an object as clients do.
func inProtobuf(t testing.TB, object runtime.Object, kind string) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
	var body bytes.Buffer
	if err := protobuf.NewSerializer(apis.GardenScheme(), apis.GardenScheme()).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

func TestLimitsOfProtobuf(t *testing.T) {
	many := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint(i)] = ""
		}
		return all
	}
	for _, test := range []struct {
		name   string
		change func(*gardencorev1beta1.Shoot)
		want   string
	}{
		{"ordinary", func(*gardencorev1beta1.Shoot) {}, ""},
		{"empty workers", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers = make([]gardencorev1beta1.Worker, MaxItems+2)
		}, "spec.provider.workers: Too many: 5002: must have at most 5000 items"},
		{"empty zones", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{}, {Zones: make([]string, MaxItems+1)}}
		}, "spec.provider.workers[1].zones: Too many: 5001"},
		{"values", func(s *gardencorev1beta1.Shoot) {
			for range 30 {
				s.Spec.Provider.Workers = append(s.Spec.Provider.Workers,
					gardencorev1beta1.Worker{Zones: make([]string, 2000)})
			}
		}, "at most 50000 are allowed"},
		{"labels", func(s *gardencorev1beta1.Shoot) { s.Labels = many(MaxMetadata) }, ""},
		{
			"too many labels", func(s *gardencorev1beta1.Shoot) { s.Labels = many(MaxMetadata + 1) },
			"metadata.labels: Too many: 1001",
		},
		{
			"too many finalizers", func(s *gardencorev1beta1.Shoot) { s.Finalizers = make([]string, MaxMetadata+1) },
			"metadata.finalizers: Too many: 1001",
		},
		{"too many labels of a pool", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Labels: many(MaxItems + 1)}}
		}, "spec.provider.workers[0].labels: Too many: 5001"},
		{"a raw extension", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.ControlPlaneConfig = &runtime.RawExtension{
				Raw: []byte(`{"a":[` + items(MaxItems+1, "1") + `]}`),
			}
		}, "spec.provider.controlPlaneConfig.a: Too many: 5001"},
		{"a deep raw extension", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.ControlPlaneConfig = &runtime.RawExtension{Raw: []byte(nested(MaxDepth))}
		}, "nested deeper"},
		{
			"managed fields", func(s *gardencorev1beta1.Shoot) {
				s.ManagedFields = entries(sorted(MaxManagedFields - 1000))
			}, "",
		},
		{
			"large managed fields", func(s *gardencorev1beta1.Shoot) {
				s.ManagedFields = entries(sorted(MaxManagedFields + 100))
			}, "metadata.managedFields: Too long",
		},
		{"unsorted managed fields", func(s *gardencorev1beta1.Shoot) {
			s.ManagedFields = entries(`{"f:z":{},` + strings.TrimPrefix(sorted(MaxUnsortedManagedFields), "{"))
		}, "in another order"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			test.change(shoot)
			requireRefusal(t, protobufFormat, inProtobuf(t, shoot, "Shoot"), test.want)
		})
	}
}

func entries(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{
		{Manager: "m", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}},
	}
}

// What comes in parts is put together by the decoder, so it is counted together.
func TestPartsOfMessages(t *testing.T) {
	half := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, MaxMetadata/2+1)}}
	fields, err := half.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	requireRefusal(t, protobufFormat, inEnvelope(t, append(fields, fields...)), "metadata.finalizers: Too many: 1002")
}

func TestMalformedProtobuf(t *testing.T) {
	whole := inProtobuf(t, &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "Shoot")
	unknown := inProtobuf(t, &gardencorev1beta1.Shoot{}, "Shoot")
	kindless := func(size int) []byte {
		body, err := (&runtime.Unknown{Raw: make([]byte, size)}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append(bytes.Clone(protobufPrefix), body...)
	}
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"no prefix":      {whole[4:], "protobuf begins with"},
		"half":           {whole[:len(whole)-3], "cannot be read"},
		"no kind, small": {kindless(MaxWithoutKind), ""},
		"no kind, large": {kindless(MaxWithoutKind + 1), "does not say of which kind it is"},
		"unknown kind": {
			bytes.Replace(unknown, []byte("Shoot"), []byte("Shxxt"), 1), "Kind=Shxxt, which is not served",
		},
	} {
		t.Run(name, func(t *testing.T) { requireRefusal(t, protobufFormat, test.body, test.want) })
	}
}

// The same object has as many values in protobuf as in JSON, but for what the formats leave out.
func TestFormatsAgree(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	for i := range 200 {
		shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers,
			gardencorev1beta1.Worker{Name: fmt.Sprint(i), Zones: make([]string, 100)})
	}
	written, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, asProtobuf := &counter{maxItems: MaxItems}, &counter{maxItems: MaxItems}
	if r := scanJSON(written, asJSON, &managedFields{}); r != nil {
		t.Fatal(r)
	}
	if r := scanProtobuf(inProtobuf(t, shoot, "Shoot"), apis.GardenScheme(), asProtobuf, &managedFields{}); r != nil {
		t.Fatal(r)
	}
	if asJSON.values < 20_000 || asProtobuf.values < asJSON.values*9/10 {
		t.Errorf("%d values in JSON, %d in protobuf", asJSON.values, asProtobuf.values)
	}
}
