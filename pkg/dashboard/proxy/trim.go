package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// errNoJSON ends an answer that has what no JSON has.
var errNoJSON = errors.New("the cluster's answer is no JSON")

// Hidden is what reaches no page of a resource, beside managedFields.
type Hidden struct {
	// lastApplied is the annotation of kubectl that repeats an object.
	lastApplied bool
	// manifests have values in what Works bring to members. That one is a Secret is said after them.
	manifests bool
}

// HiddenOf tells what reaches no page of a resource. Secrets are asked for as metadata, which have annotations.
func HiddenOf(group, resource string) Hidden {
	works := group == workv1alpha1.GroupVersion.Group && resource == "works"
	return Hidden{lastApplied: works || IsSecret(group, resource), manifests: works}
}

// trimmer leaves members out of JSON that it reads, and holds no more of it than the name of one.
type trimmer struct {
	source *bufio.Reader
	hidden Hidden
	out    bytes.Buffer
	// stack has an entry for each object and array that is open.
	stack []frame
	// inText tells that a string is being copied; escaped, that its next byte is not the end of it.
	inText, escaped bool
	err             error
}

// frame is an object or array that is open.
type frame struct {
	object bool
	// name of the member whose value it is; empty in arrays.
	name string
	// key is the name of the member whose value comes next; onKey, that a name comes next.
	key   string
	onKey bool
	// written tells that something stands in it already; pending, that a comma was read and not written yet.
	written, pending bool
}

const (
	// maxDepth bounds the memory that nesting costs; Kubernetes' own bound is 10,000.
	maxDepth   = 1000
	maxKeySize = 512
	// textStep is how much of a string is copied at a time.
	textStep = 4 << 10
)

// newTrimmer reads JSON as API servers write it. What is no JSON is passed on as far as it goes.
func newTrimmer(source io.Reader, hidden Hidden) *trimmer {
	return &trimmer{source: bufio.NewReaderSize(source, 32<<10), hidden: hidden}
}

// Read implements io.Reader.
func (t *trimmer) Read(into []byte) (int, error) {
	for t.out.Len() < len(into) && t.err == nil {
		t.err = t.step()
	}
	if t.out.Len() > 0 {
		return t.out.Read(into)
	}
	return 0, t.err
}

func (t *trimmer) top() *frame {
	if len(t.stack) == 0 {
		return &frame{}
	}
	return &t.stack[len(t.stack)-1]
}

// step reads a token or a part of a string, and writes it unless it belongs to what is left out.
func (t *trimmer) step() error {
	if t.inText {
		return t.copyText()
	}
	c, err := t.source.ReadByte()
	if err != nil {
		return err
	}
	switch c {
	case ' ', '\t', '\n', '\r':
		return nil
	case '{', '[':
		return t.push(c)
	case '}', ']':
		if len(t.stack) > 0 {
			t.stack = t.stack[:len(t.stack)-1]
		}
		return t.out.WriteByte(c)
	case ',':
		top := t.top()
		top.pending, top.onKey = top.written, top.object
		if len(t.stack) == 0 {
			return t.out.WriteByte(c)
		}
		return nil
	case '"':
		if t.top().onKey {
			return t.member()
		}
		t.separate()
		t.inText = true
	}
	t.separate()
	return t.out.WriteByte(c)
}

func (t *trimmer) push(c byte) error {
	if len(t.stack) == maxDepth {
		return io.ErrUnexpectedEOF
	}
	name := ""
	if top := t.top(); top.object {
		name = top.key
	}
	t.separate()
	t.stack = append(t.stack, frame{object: c == '{', onKey: c == '{', name: name})
	return t.out.WriteByte(c)
}

// separate writes a comma that was held back. Something is written next.
func (t *trimmer) separate() {
	top := t.top()
	if top.pending {
		t.out.WriteByte(',')
	}
	top.pending, top.written = false, true
}

// member reads the name of a member, and leaves the member out if it is not wanted. One that is too long is none of
// those.
func (t *trimmer) member() error {
	raw := []byte{'"'}
	for escaped := false; len(raw) <= maxKeySize; {
		c, err := t.source.ReadByte()
		if err != nil {
			return noEOF(err)
		}
		raw = append(raw, c)
		if c == '"' && !escaped {
			return t.named(raw)
		}
		escaped = c == '\\' && !escaped
		t.escaped = escaped
	}
	t.inText = true
	t.begin("")
	_, err := t.out.Write(raw)
	return err
}

// named goes on after the name of a member, which is given with its quotes.
func (t *trimmer) named(raw []byte) error {
	key := ""
	if json.Unmarshal(raw, &key) != nil {
		return errNoJSON
	}
	if t.isHidden(key) {
		t.top().onKey = false
		return t.skipValue()
	}
	t.begin(key)
	_, err := t.out.Write(raw)
	return err
}

// begin a member, whose name is written next.
func (t *trimmer) begin(key string) {
	top := t.top()
	top.onKey, top.key = false, key
	t.separate()
}

// isHidden tells whether a member of the innermost object reaches no page.
func (t *trimmer) isHidden(key string) bool {
	switch key {
	case "managedFields":
		return t.isIn("metadata")
	case corev1.LastAppliedConfigAnnotation:
		return t.hidden.lastApplied && t.isIn("metadata", "annotations")
	case "data", "stringData":
		return t.hidden.manifests && t.isIn("spec", "workload", "manifests", "")
	}
	return false
}

// isIn tells whether the innermost objects and arrays have these names.
func (t *trimmer) isIn(names ...string) bool {
	around := len(t.stack) - len(names)
	if around < 0 {
		return false
	}
	for i, name := range names {
		if t.stack[around+i].name != name {
			return false
		}
	}
	return t.top().object
}

// copyText copies a part of a string, with the quote at its end.
func (t *trimmer) copyText() error {
	for range textStep {
		c, err := t.source.ReadByte()
		if err != nil {
			return noEOF(err)
		}
		t.out.WriteByte(c)
		if c == '"' && !t.escaped {
			t.inText = false
			return nil
		}
		t.escaped = c == '\\' && !t.escaped
	}
	return nil
}

// skipValue reads a colon and a value up to what ends it: a comma, or the end of the object around it.
func (t *trimmer) skipValue() error {
	inText, escaped := false, false
	for depth := 0; ; {
		next, err := t.source.Peek(1)
		if err != nil {
			return noEOF(err)
		}
		c := next[0]
		if depth == 0 && !inText && (c == ',' || c == '}') {
			return nil
		}
		_, _ = t.source.Discard(1)
		switch {
		case c == '"' && !escaped:
			inText = !inText
		case inText:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
		escaped = inText && c == '\\' && !escaped
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Trim copies JSON without managedFields and what is hidden.
func Trim(into io.Writer, source io.Reader, hidden Hidden) error {
	_, err := io.Copy(into, newTrimmer(source, hidden))
	return err
}
