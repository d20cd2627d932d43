package decoding

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// counter is told by a scan about every value of a body, in the order of the body, and counts. The first list or map
// that has too many items is remembered and counted to its end, so that the refusal can say how many there are.
type counter struct {
	// maxItems is the limit of lists and maps without one of their own.
	maxItems int
	// maxValues is the limit of all values.
	maxValues int
	// areOperations says that the body is a list of the operations of a JSON patch.
	areOperations bool
	// within and depth say where the body is, if it is in another.
	within string
	depth  int

	values int
	// stack has what the scan is in, the outermost first.
	stack []frame

	exceeded *excess
}

// frame is an object or list that a scan is in.
type frame struct {
	// name is that of the field, or of the key, that the scan is at.
	name   []byte
	isList bool
	items  int
	limit  int
}

// excess is a list or map with too many items.
type excess struct {
	path         string
	depth        int
	items, limit int
}

// metadataLists are the fields of metadata that are limited to MaxMetadata.
var metadataLists = map[string]bool{
	"labels": true, "annotations": true, "finalizers": true, "ownerReferences": true, "managedFields": true,
}

// begin is called where an object or a list begins.
func (c *counter) begin(isList bool) *refusal {
	if c.depth+len(c.stack) >= MaxDepth {
		return tooDeep(c.path())
	}
	c.stack = append(c.stack, frame{isList: isList, limit: c.limit()})
	return nil
}

// limit returns the most items of the list or map that begins.
func (c *counter) limit() int {
	n := len(c.stack)
	switch {
	case n == 0 && c.areOperations:
		return MaxOperations
	case n >= 2 && string(c.stack[n-2].name) == "metadata" && metadataLists[string(c.stack[n-1].name)]:
		return min(c.maxItems, MaxMetadata)
	}
	return c.maxItems
}

// end is called where the innermost object or list ends.
func (c *counter) end() {
	if c.exceeded != nil && c.exceeded.depth == len(c.stack) {
		c.exceeded.items, c.exceeded.depth = c.stack[len(c.stack)-1].items, 0
	}
	c.stack = c.stack[:len(c.stack)-1]
}

// item is called before each item of a list and, with its key, of an object.
func (c *counter) item(key []byte) {
	top := &c.stack[len(c.stack)-1]
	top.name = key
	top.items++
	if top.items > top.limit && c.exceeded == nil {
		c.exceeded = &excess{path: c.pathOf(c.stack[:len(c.stack)-1]), depth: len(c.stack), limit: top.limit}
	}
}

// value is called for each value, whatever it is.
func (c *counter) value() { c.values++ }

// limitError is the limit that the body exceeds; nil if there is none. It is known at the end of the body.
func (c *counter) limitError() *refusal {
	if e := c.exceeded; e != nil && e.path == body && c.areOperations {
		return tooLarge("the JSON patch has %d operations, at most %d are allowed", e.items, e.limit)
	}
	if c.exceeded != nil {
		return &refusal{field: tooMany(c.exceeded.path, c.exceeded.items, c.exceeded.limit)}
	}
	if c.values > c.maxValues {
		return tooLarge("the body of the request has %d values, at most %d are allowed", c.values, c.maxValues)
	}
	return nil
}

func tooMany(path string, items, limit int) *field.Error {
	err := field.TooMany(nil, items, limit)
	err.Field = path
	return err
}

// inMetadata tells whether the scan is in the metadata of the object itself, at a field of that name.
func (c *counter) inMetadata(name string) bool {
	return len(c.stack) == 2 && string(c.stack[0].name) == "metadata" && string(c.stack[1].name) == name
}

// path is where the scan is.
func (c *counter) path() string { return c.pathOf(c.stack) }

// body is the path of what everything is in.
const body = "body"

func (c *counter) pathOf(stack []frame) string {
	if len(stack) == 0 && c.within == "" {
		return body
	}
	var path strings.Builder
	path.WriteString(c.within)
	for _, at := range stack {
		switch {
		case at.isList:
			path.WriteString("[" + strconv.Itoa(at.items-1) + "]")
		case path.Len() == 0:
			path.WriteString(shortened(at.name))
		default:
			path.WriteString("." + shortened(at.name))
		}
	}
	return path.String()
}

// maxName is how much of a name is told; names are the client's.
const maxName = 64

func shortened(name []byte) string {
	if len(name) <= maxName {
		return strings.ToValidUTF8(string(name), "")
	}
	return strings.ToValidUTF8(string(name[:maxName]), "") + "…"
}
