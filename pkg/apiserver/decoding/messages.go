package decoding

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// message says what the fields of a message are.
type message struct {
	fields map[protowire.Number]*wireField
}

// wireField is a field of a message.
type wireField struct {
	name string
	// isRepeated tells lists and maps, which have a limit.
	isRepeated bool
	limit      int
	// isPacked tells lists of numbers, of which a text can hold many.
	isPacked bool
	// isJSON tells that the contents are JSON.
	isJSON bool
	// contents returns what the field's messages have; nil for texts and numbers.
	contents func() *message
}

// itemsIn returns how many items are in a value.
func (f *wireField) itemsIn(value []byte) int {
	if f.isPacked {
		return len(value)
	}
	return 1
}

// messages has the messages of types that were asked for.
var messages sync.Map

var (
	objectMetaType   = reflect.TypeFor[metav1.ObjectMeta]()
	rawExtensionType = reflect.TypeFor[runtime.RawExtension]()
	fieldsType       = reflect.TypeFor[metav1.FieldsV1]()
)

// messageOf returns the message of a type by the tags that its code was generated from.
func messageOf(t reflect.Type) *message {
	if known, ok := messages.Load(t); ok {
		return known.(*message)
	}
	m := &message{fields: map[protowire.Number]*wireField{}}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			addField(m, t, t.Field(i))
		}
	} else { // a list with a name is a message with items
		m.fields[1] = newField("items", t, MaxItems)
	}
	known, _ := messages.LoadOrStore(t, m)
	return known.(*message)
}

func addField(m *message, of reflect.Type, f reflect.StructField) {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		return
	}
	number, err := strconv.ParseInt(tag[1], 10, 32)
	if err != nil {
		return
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",") // none where it is inlined
	if name == "-" {
		name = ""
	}
	limit := MaxItems
	if of == objectMetaType && metadataLists[name] {
		limit = MaxMetadata
	}
	field := newField(name, f.Type, limit)
	field.isJSON = of == rawExtensionType || of == fieldsType
	m.fields[protowire.Number(number)] = field
}

func newField(name string, t reflect.Type, limit int) *wireField {
	f := &wireField{name: name, limit: limit}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map:
		f.isRepeated = true
		f.contents = sync.OnceValue(func() *message { return entryOf(t) })
	case isList(t):
		f.isRepeated = true
		item := t.Elem()
		f.isPacked = isNumber(item)
		f.contents = contentsOf(item)
	default:
		f.contents = contentsOf(t)
	}
	return f
}

// contentsOf returns the messages of single values of a type.
func contentsOf(t reflect.Type) func() *message {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct || isList(t) {
		return func() *message { return messageOf(t) }
	}
	return nil
}

// entryOf returns the message of an entry of a map.
func entryOf(t reflect.Type) *message {
	return &message{fields: map[protowire.Number]*wireField{
		1: {name: "key"}, 2: {name: "value", contents: contentsOf(t.Elem())},
	}}
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

func isNumber(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float32,
		reflect.Float64:
		return true
	}
	return false
}
