package apis_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/trellis-garden/trellis/pkg/apis"
)

// wired is what can be sent as protobuf.
type wired interface {
	runtime.ProtobufMarshaller
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// FuzzProtobufFields gives anything to the decoder of a kind. It never panics, and what it understood it understands
// again when it is written.
func FuzzProtobufFields(f *testing.F) {
	scheme := apis.GardenScheme()
	kinds := sortedKinds(scheme)
	for i, kind := range kinds {
		f.Add(uint8(i), encodedFields(f, scheme, kind))
	}
	f.Fuzz(func(t *testing.T, number uint8, data []byte) {
		kind := kinds[int(number)%len(kinds)]
		first, second := newWired(t, scheme, kind), newWired(t, scheme, kind)
		if first.Unmarshal(data) != nil {
			return
		}
		written := marshalWired(t, first)
		if err := second.Unmarshal(written); err != nil {
			t.Fatalf("%s: what was written is not understood: %v", kind, err)
		}
		if again := marshalWired(t, second); !bytes.Equal(written, again) {
			t.Fatalf("%s was\n%q\nbecame\n%q", kind, written, again)
		}
	})
}

// FuzzProtobufObject gives anything to the decoder that requests go through, which finds out the kind first.
func FuzzProtobufObject(f *testing.F) {
	scheme := apis.GardenScheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, kind := range sortedKinds(scheme) {
		var encoded bytes.Buffer
		if err := serializer.Encode(filled(f, scheme, kind, fillerFor(scheme)), &encoded); err != nil {
			f.Fatal(err)
		}
		f.Add(encoded.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object, kind, err := serializer.Decode(data, nil, nil)
		if err != nil {
			return
		}
		object.GetObjectKind().SetGroupVersionKind(*kind)
		var written bytes.Buffer
		if err := serializer.Encode(object, &written); err != nil {
			t.Fatal(err)
		}
		if _, _, err := serializer.Decode(written.Bytes(), nil, nil); err != nil {
			t.Fatalf("%s: what was written is not understood: %v", kind, err)
		}
	})
}

// sortedKinds are the garden's kinds in an order that stays.
func sortedKinds(scheme *runtime.Scheme) []schema.GroupVersionKind {
	kinds := ownKinds(scheme)
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return kinds
}

func encodedFields(t testing.TB, scheme *runtime.Scheme, kind schema.GroupVersionKind) []byte {
	t.Helper()
	object, ok := filled(t, scheme, kind, fillerFor(scheme)).(wired)
	if !ok {
		t.Fatalf("%s has no protobuf form", kind)
	}
	return marshalWired(t, object)
}

func newWired(t testing.TB, scheme *runtime.Scheme, kind schema.GroupVersionKind) wired {
	t.Helper()
	object, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	return object.(wired)
}

func marshalWired(t testing.TB, object wired) []byte {
	t.Helper()
	data, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
