package apis_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/randfill"

	"github.com/trellis-garden/trellis/pkg/apis"
)

// What JSON says stays the same when it goes over the wire as protobuf, for every kind of the garden and every field.
func TestProtobufRoundTrip(t *testing.T) {
	scheme := apis.GardenScheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, kind := range ownKinds(scheme) {
		t.Run(kind.String(), func(t *testing.T) {
			filler := fillerFor(scheme)
			for range roundsPerKind {
				throughProtobuf(t, serializer, filled(t, scheme, kind, filler))
			}
		})
	}
}

// An object without any field goes over the wire, too.
func TestProtobufRoundTripOfNothing(t *testing.T) {
	scheme := apis.GardenScheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, kind := range ownKinds(scheme) {
		t.Run(kind.String(), func(t *testing.T) {
			object, err := scheme.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			object.GetObjectKind().SetGroupVersionKind(kind)
			throughProtobuf(t, serializer, object)
		})
	}
}

func filled(t testing.TB, scheme *runtime.Scheme, kind schema.GroupVersionKind,
	filler *randfill.Filler) runtime.Object {
	t.Helper()
	object, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}

func throughProtobuf(t *testing.T, serializer *protobuf.Serializer, object runtime.Object) {
	t.Helper()
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		t.Fatal(err)
	}
	decoded, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := plain(t, object), plain(t, decoded); !reflect.DeepEqual(before, after) {
		t.Fatalf("was %v\nbecame %v", before, after)
	}
	if !apiequality.Semantic.DeepEqual(object, decoded) {
		t.Fatalf("something is not in the protobuf of %s", marshal(t, object))
	}
}

// plain is an object as JSON without lists and maps that are empty, which protobuf does not tell from those that are
// not there.
func plain(t *testing.T, object runtime.Object) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(marshal(t, object), &value); err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(value)
}

func withoutEmpty(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, element := range typed {
			typed[key] = withoutEmpty(element)
		}
		if len(typed) == 0 {
			return nil
		}
	case []any:
		for i, element := range typed {
			typed[i] = withoutEmpty(element)
		}
		if len(typed) == 0 {
			return nil
		}
	}
	return value
}

// Every field has a number. Go's reflection sees what a generator may have left out.
func TestEveryFieldHasANumber(t *testing.T) {
	for goType := range typesOfGarden() {
		for i := range goType.NumField() {
			if field := goType.Field(i); field.Name != "TypeMeta" && field.Tag.Get("protobuf") == "" {
				t.Errorf("%s.%s has no protobuf tag: run hack/generate.sh", goType, field.Name)
			}
		}
	}
}

// What the published API says about numbers is what our types have. A wrong number would be read as another field.
func TestPublishedNumbers(t *testing.T) {
	for _, test := range []struct{ message, field, tag string }{
		{"ShootSpec", "SeedName", "bytes,14,opt,name=seedName"},
		{"ShootStatus", "TechnicalID", "bytes,10,opt,name=technicalID"},
		{"MachineImageVersion", "ExpirableVersion", "bytes,1,opt,name=expirableVersion"},
		{"MachineImageFlavor", "Capabilities", "bytes,1,rep,name=capabilities,casttype=Capabilities"},
		{"ResourceData", "CrossVersionObjectReference", "bytes,1,opt,name=ref"},
	} {
		if got := tagOf(t, test.message, test.field); got != test.tag {
			t.Errorf("%s.%s has protobuf tag %q, want %q", test.message, test.field, got, test.tag)
		}
	}
}

func tagOf(t *testing.T, message, name string) string {
	t.Helper()
	for goType := range typesOfGarden() {
		if goType.Name() != message {
			continue
		}
		if field, found := goType.FieldByName(name); found {
			return field.Tag.Get("protobuf")
		}
	}
	t.Fatalf("no type of the garden is called %s and has a field %s", message, name)
	return ""
}

// typesOfGarden are the Go types of the garden's kinds with all that they consist of.
func typesOfGarden() map[reflect.Type]bool {
	found := map[reflect.Type]bool{}
	var add func(reflect.Type)
	add = func(goType reflect.Type) {
		for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
			goType = goType.Elem()
		}
		if goType.Kind() != reflect.Struct || found[goType] ||
			!strings.Contains(goType.PkgPath(), "/trellis/pkg/apis/") {
			return
		}
		found[goType] = true
		for i := range goType.NumField() {
			add(goType.Field(i).Type)
		}
	}
	scheme := apis.GardenScheme()
	for _, kind := range ownKinds(scheme) {
		add(scheme.AllKnownTypes()[kind])
	}
	return found
}
