package decoding

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// hostile are bodies of a mebibyte that would cost seconds.
func hostile(t testing.TB) map[string]struct {
	format string
	body   []byte
} {
	type request = struct {
		format string
		body   []byte
	}
	workers := fmt.Sprintf(workersOfShoots, items(sizeOfHuge/3, `{}`))
	labels := inMetadata("labels", `{`+items(sizeOfHuge/12, `"%d":""`)+`}`)
	return map[string]request{
		"workers/strategic": {strategicPatch, []byte(workers)},
		"workers/apply":     {applyPatch, []byte(workers)},
		"workers/merge":     {mergePatch, []byte(workers)},
		"workers/json":      {jsonFormat, []byte(workers)},
		"workers/protobuf":  {protobufFormat, emptyMessages(t)},
		"workers/yaml": {
			yamlFormat, []byte("spec:\n provider:\n  workers:\n" + strings.Repeat("- {}\n", sizeOfHuge/5)),
		},
		"labels":      {jsonFormat, []byte(labels)},
		"annotations": {jsonFormat, []byte(strings.Replace(labels, "labels", "annotations", 1))},
		"finalizers":  {jsonFormat, []byte(inMetadata("finalizers", `[`+items(sizeOfHuge/9, `"%d"`)+`]`))},
		"managed fields": {
			jsonFormat, []byte(managedBy(`{"f:z":{},` + strings.TrimPrefix(sorted(sizeOfHuge), "{"))),
		},
		"sorted fields": {jsonFormat, []byte(managedBy(sorted(sizeOfHuge)))},
		"operations": {
			jsonPatch, []byte(`[` + items(sizeOfHuge/40, `{"op":"copy","from":"/spec","path":"/a"}`) + `]`),
		},
		"brackets":      {jsonFormat, []byte(nested(sizeOfHuge / 2))},
		"brackets/yaml": {applyPatch, []byte(strings.Repeat("[", sizeOfHuge))},
		"escapes": {
			jsonFormat, []byte(`{` + strings.TrimSuffix(strings.Repeat(`"\u0061":1,`, sizeOfHuge/11), ",") + `}`),
		},
		"quotes without end": {jsonFormat, bytes.Repeat([]byte(`"\`), sizeOfHuge/2)},
	}
}

// emptyMessages is a shoot with as many workers as there can be, of two bytes each.
func emptyMessages(t testing.TB) []byte {
	number := func(of reflect.Type, name string) protowire.Number {
		for number, f := range messageOf(of).fields {
			if f.name == name {
				return number
			}
		}
		t.Fatalf("%s has no field %s", of, name)
		return 0
	}
	empty := protowire.AppendBytes(protowire.AppendTag(nil,
		number(reflect.TypeFor[gardencorev1beta1.Provider](), "workers"), protowire.BytesType), nil)
	fields := bytes.Repeat(empty, sizeOfHuge/len(empty))
	for _, outer := range []protowire.Number{
		number(reflect.TypeFor[gardencorev1beta1.ShootSpec](), "provider"),
		number(reflect.TypeFor[gardencorev1beta1.Shoot](), "spec"),
	} {
		fields = protowire.AppendBytes(protowire.AppendTag(nil, outer, protowire.BytesType), fields)
	}
	return inEnvelope(t, fields)
}

func inEnvelope(t testing.TB, fields []byte) []byte {
	t.Helper()
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		Raw:      fields,
	}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(protobufPrefix), body...)
}

// BenchmarkHostile refuses bodies of a mebibyte that would keep a server busy for seconds. It has to take a few
// milliseconds.
func BenchmarkHostile(b *testing.B) {
	for name, request := range hostile(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				inspect(apis.GardenScheme(), request.format, request.body)
			}
		})
	}
}

func TestHostileBodiesAreRefused(t *testing.T) {
	for name, request := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			if inspect(apis.GardenScheme(), request.format, request.body) == nil {
				t.Error("accepted")
			}
		})
	}
}
