package decoding

import (
	"bytes"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobufPrefix is what Kubernetes' protobuf begins with.
var protobufPrefix = []byte("k8s\x00")

// scanProtobuf counts the values of an object in Kubernetes' protobuf. What its fields are, the scheme's type of the
// kind says. Clients leave the kind out of what they post to subresources, which is small.
func scanProtobuf(data []byte, scheme *runtime.Scheme, c *counter, managed *managedFields) *refusal {
	object, isPrefixed := bytes.CutPrefix(data, protobufPrefix)
	if !isPrefixed {
		return malformed("protobuf begins with %q", protobufPrefix)
	}
	envelope := runtime.Unknown{}
	if err := envelope.Unmarshal(object); err != nil {
		return malformed("%v", err)
	}
	kind := envelope.GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" {
		if len(envelope.Raw) > MaxWithoutKind {
			return tooLarge("the protobuf has %d bytes and does not say of which kind it is, at most %d are allowed",
				len(envelope.Raw), MaxWithoutKind)
		}
		return nil
	}
	goType, known := scheme.AllKnownTypes()[kind]
	if !known {
		return malformed("the protobuf says that it is a %s, which is not served", kind)
	}
	w := wire{counter: c, managed: managed}
	if r := w.message(envelope.Raw, messageOf(goType), &occurrences{}); r != nil {
		return r
	}
	if w.tooMany != nil {
		c.exceeded = &excess{path: w.tooManyPath, items: *w.tooMany, limit: w.tooManyLimit}
	}
	return nil
}

// wire goes through messages.
type wire struct {
	counter *counter
	managed *managedFields
	// path leads to the message that the scan is in.
	path []string

	// tooMany counts the items of the first list or map that has more than its limit.
	tooMany      *int
	tooManyPath  string
	tooManyLimit int
}

// occurrences are the fields that a message has had so far, by their number. A message may come in parts, which are put
// together.
type occurrences struct {
	items map[protowire.Number]*int
	parts map[protowire.Number]*occurrences
}

// message counts the fields of a message and of the messages in it.
func (w *wire) message(data []byte, m *message, seen *occurrences) *refusal {
	w.counter.value()
	if len(w.path) >= MaxDepth {
		return tooDeep(strings.Join(w.path, "."))
	}
	for len(data) > 0 {
		number, wireType, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return malformed("%s: %v", w.at(), protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(number, wireType, data[tag:])
		if size < 0 {
			return malformed("%s: %v", w.at(), protowire.ParseError(size))
		}
		value := data[tag : tag+size]
		data = data[tag+size:]
		f := m.fields[number]
		if f == nil || wireType != protowire.BytesType {
			w.counter.value()
			continue // unknown, or a number
		}
		text, _ := protowire.ConsumeBytes(value)
		if r := w.field(number, text, f, seen); r != nil {
			return r
		}
	}
	return nil
}

// field counts a field with a length: a text, a message, or an item of a list or map.
func (w *wire) field(number protowire.Number, value []byte, f *wireField, seen *occurrences) *refusal {
	name := f.name
	if f.isRepeated {
		items := f.itemsIn(value)
		name += "[" + strconv.Itoa(w.count(number, items, f, seen)) + "]"
	}
	if f.contents == nil && !f.isJSON {
		w.counter.values += f.itemsIn(value)
		return nil
	}
	if name != "" {
		w.path = append(w.path, name)
		defer func() { w.path = w.path[:len(w.path)-1] }()
	}
	if f.isJSON {
		return w.json(value)
	}
	return w.message(value, f.contents(), seen.of(number, f))
}

// count counts items of a list or map and returns how many there were before.
func (w *wire) count(number protowire.Number, items int, f *wireField, seen *occurrences) int {
	if seen.items == nil {
		seen.items = map[protowire.Number]*int{}
	}
	if seen.items[number] == nil {
		seen.items[number] = new(int)
	}
	count := seen.items[number]
	before := *count
	*count += items
	if limit := min(f.limit, w.counter.maxItems); *count > limit && w.tooMany == nil {
		w.tooMany, w.tooManyPath, w.tooManyLimit = count, strings.Join(append(w.path, f.name), "."), limit
	}
	return before
}

// of returns the occurrences in a field's message: those of before, unless it is an item.
func (o *occurrences) of(number protowire.Number, f *wireField) *occurrences {
	if f.isRepeated {
		return &occurrences{}
	}
	if o.parts == nil {
		o.parts = map[protowire.Number]*occurrences{}
	}
	if o.parts[number] == nil {
		o.parts[number] = &occurrences{}
	}
	return o.parts[number]
}

// json counts the values of JSON in a message. What is not JSON is refused by whoever reads it.
func (w *wire) json(data []byte) *refusal {
	sub := &counter{maxItems: w.counter.maxItems, within: w.at(), depth: len(w.path)}
	var order *order
	if w.managed != nil && len(w.path) >= 2 && w.path[0] == "metadata" &&
		strings.HasPrefix(w.path[1], "managedFields[") {
		order = newOrder(0)
		sub.maxItems = len(data)
	}
	s := scanner{data: data, counter: sub, order: order}
	r := s.value()
	if order != nil {
		w.managed.add(len(data), order)
	} else {
		w.counter.values += sub.values
	}
	if w.counter.exceeded == nil {
		w.counter.exceeded = sub.exceeded
	}
	if r != nil && r.syntax {
		return nil
	}
	return r
}

func (w *wire) at() string {
	if len(w.path) == 0 {
		return body
	}
	return strings.Join(w.path, ".")
}
