package decoding

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// depthOfFields is how deep the set of fields lies in managedFields: it is a field of an item.
const depthOfFields = 2

// managedFields is what counts of metadata.managedFields.
type managedFields struct {
	bytes    int
	unsorted bool
}

func (m *managedFields) add(bytes int, o *order) {
	m.bytes += bytes
	m.unsorted = m.unsorted || o.broken
}

func (m *managedFields) limitError() *refusal {
	limit, detail := MaxManagedFields, ""
	if m.unsorted {
		limit, detail = MaxUnsortedManagedFields,
			fmt.Sprintf(" in another order than that of the server, or %d in that order", MaxManagedFields)
	}
	if m.bytes <= limit {
		return nil
	}
	return &refusal{field: &field.Error{
		Type: field.ErrorTypeTooLong, Field: "metadata.managedFields", BadValue: field.OmitValueType{},
		Detail: fmt.Sprintf("has %d bytes, may have at most %d%s; send what the server answered, or leave it out",
			m.bytes, limit, detail),
	}}
}

// order finds out whether sets of fields are in the order in which the server writes them.
type order struct {
	// from is the depth at which sets begin.
	from   int
	broken bool
}

func newOrder(from int) *order { return &order{from: from} }

// element is the last key of an object of a set.
type element struct {
	key    []byte
	parsed *fieldpath.PathElement
}

// see is told about each key of an object, in their order.
func (o *order) see(last *element, key []byte, depth int) {
	if o == nil || o.broken || depth <= o.from || string(key) == "." {
		return
	}
	next := element{key: key}
	if last.key != nil {
		o.broken = !last.isBefore(&next)
	}
	*last = next
}

// isBefore compares names of fields as they are, and other elements by what they mean.
func (e *element) isBefore(next *element) bool {
	if isField := []byte("f:"); bytes.HasPrefix(e.key, isField) && bytes.HasPrefix(next.key, isField) {
		return bytes.Compare(e.key, next.key) < 0
	}
	return e.parse() && next.parse() && e.parsed.Less(*next.parsed)
}

func (e *element) parse() bool {
	if e.parsed != nil {
		return true
	}
	parsed, err := fieldpath.DeserializePathElement(string(e.key))
	e.parsed = &parsed
	return err == nil
}
