package script

import (
	"errors"
	"fmt"
	"strings"
)

// pattern is a compiled pattern of Lua 5.1. The matcher of the virtual machine's library is not used because nothing
// bounds how long it takes.
type pattern struct {
	anchored bool
	items    []item
	// captures is how many there are; 0 if the whole match counts as one.
	captures int
}

type itemKind int

const (
	single itemKind = iota
	openCapture
	closeCapture
	positionCapture
	balance
	frontier
	backReference
	endOfText
)

type item struct {
	kind itemKind
	set  set
	// repeat is 0 for once, or one of * + - ?
	repeat byte
	// open and shut are the characters of a balance.
	open, shut byte
	// capture is the index of a capture.
	capture int
}

// set of bytes.
type set [4]uint64

func (s *set) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *set) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *set) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

func (s *set) addAll(of func(c byte) bool) {
	for c := range 256 {
		if of(byte(c)) {
			s.add(byte(c))
		}
	}
}

const (
	maxPattern  = 1024
	maxCaptures = 32
)

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// classes by their letter; the upper case letter stands for the rest.
var classes = map[byte]func(c byte) bool{
	'a': func(c byte) bool { return isLower(c) || isUpper(c) },
	'c': func(c byte) bool { return c < ' ' || c == 0x7f },
	'd': isDigit,
	'l': isLower,
	'p': func(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) },
	's': isSpace,
	'u': isUpper,
	'w': isAlnum,
	'x': func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
	'z': func(c byte) bool { return c == 0 },
}

// escaped gives the bytes that %c stands for.
func escaped(c byte) set {
	var s set
	class, found := classes[c|0x20]
	if !found || !isLower(c) && !isUpper(c) {
		s.add(c)
		return s
	}
	s.addAll(class)
	if isUpper(c) {
		s.invert()
	}
	return s
}

var errPattern = errors.New("malformed pattern")

func malformed(why string) error { return fmt.Errorf("%w (%s)", errPattern, why) }

// compilePattern reads a pattern. A leading ^ anchors it if that is asked for, and is a character otherwise.
func compilePattern(text string, anchors bool) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, malformed(fmt.Sprintf("longer than %d bytes", maxPattern))
	}
	p := &pattern{}
	if anchors && strings.HasPrefix(text, "^") {
		p.anchored, text = true, text[1:]
	}
	var open []int
	for i := 0; i < len(text); {
		next, it, err := p.read(text, i, &open)
		if err != nil {
			return nil, err
		}
		if it.kind == single && next < len(text) && strings.IndexByte("*+-?", text[next]) >= 0 {
			it.repeat = text[next]
			next++
		}
		p.items = append(p.items, it)
		i = next
	}
	if len(open) > 0 {
		return nil, malformed("unfinished capture")
	}
	return p, nil
}

// read gives one item, and where the next one begins.
func (p *pattern) read(text string, i int, open *[]int) (int, item, error) {
	switch c := text[i]; {
	case c == '(':
		return p.readOpen(text, i, open)
	case c == ')':
		if len(*open) == 0 {
			return 0, item{}, malformed("a ) too many")
		}
		last := (*open)[len(*open)-1]
		*open = (*open)[:len(*open)-1]
		return i + 1, item{kind: closeCapture, capture: last}, nil
	case c == '$' && i == len(text)-1:
		return i + 1, item{kind: endOfText}, nil
	case c == '%' && i+1 == len(text):
		return 0, item{}, malformed("ends with %")
	case c == '%':
		return p.readEscape(text, i, *open)
	case c == '[':
		next, s, err := readSet(text, i)
		return next, item{set: s}, err
	case c == '.':
		var s set
		s.invert()
		return i + 1, item{set: s}, nil
	}
	var s set
	s.add(text[i])
	return i + 1, item{set: s}, nil
}

func (p *pattern) readOpen(text string, i int, open *[]int) (int, item, error) {
	if p.captures == maxCaptures {
		return 0, item{}, malformed("too many captures")
	}
	index := p.captures
	p.captures++
	if i+1 < len(text) && text[i+1] == ')' {
		return i + 2, item{kind: positionCapture, capture: index}, nil
	}
	*open = append(*open, index)
	return i + 1, item{kind: openCapture, capture: index}, nil
}

func (p *pattern) readEscape(text string, i int, open []int) (int, item, error) {
	switch c := text[i+1]; {
	case c == 'b':
		if i+3 >= len(text) {
			return 0, item{}, malformed("%b needs two characters")
		}
		return i + 4, item{kind: balance, open: text[i+2], shut: text[i+3]}, nil
	case c == 'f':
		if i+2 >= len(text) || text[i+2] != '[' {
			return 0, item{}, malformed("%f needs a set")
		}
		next, s, err := readSet(text, i+2)
		return next, item{kind: frontier, set: s}, err
	case c >= '1' && c <= '9':
		index := int(c - '1')
		if index >= p.captures {
			return 0, item{}, malformed("no such capture")
		}
		for _, o := range open {
			if o == index {
				return 0, item{}, malformed("capture is not closed")
			}
		}
		return i + 2, item{kind: backReference, capture: index}, nil
	}
	return i + 2, item{set: escaped(text[i+1])}, nil
}

// readSet reads from a [ to its ].
func readSet(text string, i int) (int, set, error) {
	var s set
	i++
	inverted := i < len(text) && text[i] == '^'
	if inverted {
		i++
	}
	for first := true; ; first = false {
		switch {
		case i >= len(text), text[i] == '%' && i+1 >= len(text):
			return 0, s, malformed("missing ]")
		case text[i] == ']' && !first:
			if inverted {
				s.invert()
			}
			return i + 1, s, nil
		case text[i] == '%':
			more := escaped(text[i+1])
			for j := range s {
				s[j] |= more[j]
			}
			i += 2
		case i+2 < len(text) && text[i+1] == '-' && text[i+2] != ']':
			for c := int(text[i]); c <= int(text[i+2]); c++ {
				s.add(byte(c))
			}
			i += 3
		default:
			s.add(text[i])
			i++
		}
	}
}

// matcher tries a pattern against a text.
type matcher struct {
	*pattern
	text string
	// spend takes steps, and tells whether there were enough.
	spend func(steps int) bool
	found [maxCaptures]capture
}

// capture is a part of the text; end is -1 for a position.
type capture struct{ start, end int }

// at matches from a position on, and gives the end of the match, or -1.
func (m *matcher) at(position int) int { return m.match(0, position) }

// match tries the items from index i on. Its depth is at most the number of items.
func (m *matcher) match(i, at int) int {
	for ; i < len(m.items); i++ {
		if !m.spend(1) {
			return -1
		}
		it := &m.items[i]
		switch it.kind {
		case single:
			if it.repeat != 0 {
				return m.repeated(it, i, at)
			}
			if at >= len(m.text) || !it.set.has(m.text[at]) {
				return -1
			}
			at++
		case openCapture:
			before := m.found[it.capture]
			m.found[it.capture] = capture{at, at}
			end := m.match(i+1, at)
			if end < 0 {
				m.found[it.capture] = before
			}
			return end
		case closeCapture:
			before := m.found[it.capture]
			m.found[it.capture].end = at
			end := m.match(i+1, at)
			if end < 0 {
				m.found[it.capture] = before
			}
			return end
		case positionCapture:
			m.found[it.capture] = capture{at, -1}
		case balance:
			if at = m.balanced(it, at); at < 0 {
				return -1
			}
		case frontier:
			if it.set.has(m.byteAt(at-1)) || !it.set.has(m.byteAt(at)) {
				return -1
			}
		case backReference:
			c := m.found[it.capture]
			if c.end < 0 || !strings.HasPrefix(m.text[at:], m.text[c.start:c.end]) {
				return -1
			}
			at += c.end - c.start
		case endOfText:
			if at != len(m.text) {
				return -1
			}
		}
	}
	return at
}

// byteAt gives 0 before and after the text.
func (m *matcher) byteAt(i int) byte {
	if i < 0 || i >= len(m.text) {
		return 0
	}
	return m.text[i]
}

func (m *matcher) repeated(it *item, i, at int) int {
	fits := func(at int) bool { return at < len(m.text) && it.set.has(m.text[at]) }
	if it.repeat == '-' {
		for m.spend(1) {
			if end := m.match(i+1, at); end >= 0 {
				return end
			}
			if !fits(at) {
				return -1
			}
			at++
		}
		return -1
	}
	most := at
	for fits(most) && (it.repeat != '?' || most == at) {
		most++
	}
	least := at
	if it.repeat == '+' {
		least++
	}
	if !m.spend(1 + (most-at)/16) {
		return -1
	}
	for ; most >= least && m.spend(1); most-- {
		if end := m.match(i+1, most); end >= 0 {
			return end
		}
	}
	return -1
}

func (m *matcher) balanced(it *item, at int) int {
	if m.byteAt(at) != it.open || at >= len(m.text) {
		return -1
	}
	depth := 1
	for at++; at < len(m.text) && m.spend(1); at++ {
		switch m.text[at] {
		case it.shut:
			if depth--; depth == 0 {
				return at + 1
			}
		case it.open:
			depth++
		}
	}
	return -1
}

// from finds the first match at or after a position.
func (m *matcher) from(position int) (start, end int, ok bool) {
	for start = position; start <= len(m.text); start++ {
		if !m.spend(1) {
			return 0, 0, false
		}
		if end = m.at(start); end >= 0 {
			return start, end, true
		}
		if m.anchored {
			break
		}
	}
	return 0, 0, false
}
