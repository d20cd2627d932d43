package decoding

import (
	"bytes"
	"encoding/json"
	"strings"
)

// scanner goes through JSON. It accepts all that the decoders accept, and some more.
type scanner struct {
	data    []byte
	at      int
	counter *counter
	// managed collects metadata.managedFields; nil where they mean nothing.
	managed *managedFields
	// order is told about the keys of fields' sets; nil where there are none.
	order *order
}

// scanJSON counts the values of a JSON document.
func scanJSON(data []byte, c *counter, managed *managedFields) *refusal {
	s := scanner{data: data, counter: c, managed: managed}
	if r := s.value(); r != nil {
		return r
	}
	if s.space(); s.at < len(s.data) {
		return s.unexpected("the end")
	}
	return nil
}

func (s *scanner) value() *refusal {
	s.space()
	s.counter.value()
	switch s.peek() {
	case '{':
		return s.object()
	case '[':
		return s.list()
	case '"':
		_, r := s.text()
		return r
	default:
		return s.literal()
	}
}

func (s *scanner) object() *refusal {
	if r := s.counter.begin(false); r != nil {
		return r
	}
	defer s.counter.end()
	var last element
	return s.items('}', func() *refusal {
		quoted, r := s.text()
		if r != nil {
			return r
		}
		key, r := unquote(quoted)
		if r != nil {
			return r
		}
		s.order.see(&last, key, len(s.counter.stack))
		s.counter.item(key)
		if s.space(); s.peek() != ':' {
			return s.unexpected("a colon")
		}
		s.at++
		if s.managed != nil && s.counter.inMetadata("managedFields") {
			return s.managedFields()
		}
		return s.value()
	})
}

func (s *scanner) list() *refusal {
	if r := s.counter.begin(true); r != nil {
		return r
	}
	defer s.counter.end()
	return s.items(']', func() *refusal {
		s.counter.item(nil)
		return s.value()
	})
}

// items reads items that are separated by commas, and what encloses them.
func (s *scanner) items(closing byte, item func() *refusal) *refusal {
	s.at++
	if s.space(); s.peek() == closing {
		s.at++
		return nil
	}
	for {
		s.space()
		if r := item(); r != nil {
			return r
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
		case closing:
			s.at++
			return nil
		default:
			return s.unexpected("a comma or " + string(closing))
		}
	}
}

// managedFields reads them apart: their values do not count, but their size and order do.
func (s *scanner) managedFields() *refusal {
	s.space()
	apart := &counter{maxItems: len(s.data), stack: s.counter.stack}
	own := scanner{data: s.data, at: s.at, counter: apart, order: newOrder(len(apart.stack) + depthOfFields)}
	if r := own.value(); r != nil {
		return r
	}
	if s.counter.exceeded == nil {
		s.counter.exceeded = apart.exceeded
	}
	s.managed.add(own.at-s.at, own.order)
	s.at = own.at
	return nil
}

// text reads a string, and returns it with its quotes and all that is escaped.
func (s *scanner) text() ([]byte, *refusal) {
	if s.peek() != '"' {
		return nil, s.unexpected("a string")
	}
	begin := s.at
	for s.at++; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.data[begin:s.at], nil
		}
	}
	return nil, malformed("the JSON ends within a string")
}

// unquote returns what a string says. Most have nothing escaped, and are not copied.
func unquote(quoted []byte) ([]byte, *refusal) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return nil, malformed("%q: %v", shortened(quoted), err)
	}
	return []byte(text), nil
}

// literal reads a number, true, false or null; whether it is one, the decoder finds out.
func (s *scanner) literal() *refusal {
	begin := s.at
	for s.at < len(s.data) && strings.IndexByte("{}[],:\" \t\r\n", s.data[s.at]) < 0 {
		s.at++
	}
	if s.at == begin {
		return s.unexpected("a value")
	}
	return nil
}

func (s *scanner) space() {
	for s.at < len(s.data) && (s.data[s.at] == ' ' || s.data[s.at] == '\n' || s.data[s.at] == '\t' ||
		s.data[s.at] == '\r') {
		s.at++
	}
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) unexpected(wanted string) *refusal {
	if s.at >= len(s.data) {
		return malformed("the JSON ends where %s was expected", wanted)
	}
	return malformed("byte %d of the JSON is %q, expected %s", s.at, s.data[s.at], wanted)
}
