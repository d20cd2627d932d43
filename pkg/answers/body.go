package answers

import "io"

// limitedBody fails once more than left bytes were read.
type limitedBody struct {
	io.ReadCloser
	left int64
	fail func() error
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.fail()
	}
	return n, err
}

// limitedStream fails also when one JSON value is larger than most. Framed formats bound their events themselves.
type limitedStream struct {
	limitedBody
	framed   bool
	most     int64
	tooLarge func() error

	value           int64
	depth           int64
	inText, escaped bool
}

// Read implements io.Reader.
func (s *limitedStream) Read(p []byte) (int, error) {
	n, err := s.limitedBody.Read(p)
	if s.framed {
		return n, err
	}
	for _, c := range p[:n] {
		s.scan(c)
		if s.value > s.most {
			return 0, s.tooLarge()
		}
	}
	return n, err
}

// scan counts the bytes of the outermost value.
func (s *limitedStream) scan(c byte) {
	s.value++
	switch {
	case s.escaped:
		s.escaped = false
	case s.inText:
		s.escaped, s.inText = c == '\\', c != '"'
	case c == '"':
		s.inText = true
	case c == '{' || c == '[':
		s.depth++
	case c == '}' || c == ']':
		if s.depth--; s.depth <= 0 {
			s.value, s.depth = 0, 0
		}
	}
}
