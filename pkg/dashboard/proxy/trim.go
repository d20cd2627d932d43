package proxy

import (
	"bufio"
	"bytes"
	"io"
)

// trimmer leaves managedFields out of JSON that it reads, without holding more of it than a string.
type trimmer struct {
	source *bufio.Reader
	out    bytes.Buffer
	// stack has an entry for each object and array that is open.
	stack []frame
	err   error
}

// frame is an object or array that is open.
type frame struct {
	object bool
	// metadata tells that the object is the value of a member of that name.
	metadata bool
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
)

// newTrimmer reads JSON as API servers write it. What is no JSON is passed on as far as it goes.
func newTrimmer(source io.Reader) *trimmer {
	return &trimmer{source: bufio.NewReaderSize(source, 32<<10)}
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

// step reads a token, and writes it unless it belongs to what is left out.
func (t *trimmer) step() error {
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
		t.out.WriteByte(c)
		return t.copyString(&t.out)
	}
	t.separate()
	return t.out.WriteByte(c)
}

func (t *trimmer) push(c byte) error {
	if len(t.stack) == maxDepth {
		return io.ErrUnexpectedEOF
	}
	metadata := t.top().object && t.top().key == "metadata"
	t.separate()
	t.stack = append(t.stack, frame{object: c == '{', onKey: c == '{', metadata: c == '{' && metadata})
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

// member reads the name of a member, and leaves the member out if it is not wanted.
func (t *trimmer) member() error {
	var name bytes.Buffer
	if err := t.copyString(&name); err != nil {
		return err
	}
	top := t.top()
	key := string(name.Bytes()[:name.Len()-1])
	top.onKey = false
	if top.key = key; len(key) > maxKeySize {
		top.key = ""
	}
	if top.metadata && key == "managedFields" {
		return t.skipValue()
	}
	t.separate()
	t.out.WriteByte('"')
	t.out.Write(name.Bytes())
	return nil
}

// copyString copies the rest of a string, with the quote at its end.
func (t *trimmer) copyString(into *bytes.Buffer) error {
	for {
		c, err := t.source.ReadByte()
		if err != nil {
			return noEOF(err)
		}
		into.WriteByte(c)
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = t.source.ReadByte(); err != nil {
				return noEOF(err)
			}
			into.WriteByte(c)
		}
	}
}

// skipValue reads a colon and a value up to what ends it: a comma, or the end of the object around it.
func (t *trimmer) skipValue() error {
	var unused bytes.Buffer
	for depth := 0; ; {
		next, err := t.source.Peek(1)
		if err != nil {
			return noEOF(err)
		}
		if depth == 0 && (next[0] == ',' || next[0] == '}') {
			return nil
		}
		_, _ = t.source.Discard(1)
		switch next[0] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			unused.Reset()
			if err := t.copyString(&unused); err != nil {
				return err
			}
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Trim copies JSON without managedFields.
func Trim(into io.Writer, source io.Reader) error {
	_, err := io.Copy(into, newTrimmer(source))
	return err
}
