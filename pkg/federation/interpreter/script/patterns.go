package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// matcher gives one for the text and pattern that a function was called with.
func (r *run) matcher(state *lua.LState, anchors bool) *matcher {
	compiled, err := compilePattern(state.CheckString(2), anchors)
	if err != nil {
		state.RaiseError("%s", err)
	}
	r.allocate(state, len(compiled.items)*64)
	return &matcher{pattern: compiled, text: state.CheckString(1), spend: r.spend}
}

// next finds a match, and raises an error if that took too long.
func (r *run) next(state *lua.LState, m *matcher, position int) (start, end int, ok bool) {
	start, end, ok = m.from(position)
	if r.ended != nil {
		state.RaiseError("%s", r.ended)
	}
	return start, end, ok
}

// captured gives the captures of a match, or the whole match if there are none.
func (m *matcher) captured(start, end int) []lua.LValue {
	if m.captures == 0 {
		return []lua.LValue{lua.LString(m.text[start:end])}
	}
	values := make([]lua.LValue, m.captures)
	for i := range values {
		values[i] = m.value(i)
	}
	return values
}

func (m *matcher) value(i int) lua.LValue {
	c := m.found[i]
	if c.end < 0 {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.text[c.start:c.end])
}

func pushAll(state *lua.LState, values []lua.LValue) int {
	for _, value := range values {
		state.Push(value)
	}
	return len(values)
}

// start is where the third argument says that a search begins, as an index of Go.
func start(state *lua.LState, text string) (int, bool) {
	from := max(position(state.OptInt(3, 1), len(text)), 1) - 1
	return from, from <= len(text)
}

func (r *run) stringFind(state *lua.LState) int {
	text, wanted := state.CheckString(1), state.CheckString(2)
	from, ok := start(state, text)
	if !ok {
		state.Push(lua.LNil)
		return 1
	}
	if lua.LVAsBool(state.Get(4)) || !strings.ContainsAny(wanted, "^$*+?.([%-") {
		at := strings.Index(text[from:], wanted)
		if at < 0 {
			state.Push(lua.LNil)
			return 1
		}
		return pushAll(state, []lua.LValue{lua.LNumber(from + at + 1), lua.LNumber(from + at + len(wanted))})
	}
	m := r.matcher(state, true)
	begin, end, found := r.next(state, m, from)
	if !found {
		state.Push(lua.LNil)
		return 1
	}
	values := []lua.LValue{lua.LNumber(begin + 1), lua.LNumber(end)}
	if m.captures > 0 {
		values = append(values, m.captured(begin, end)...)
	}
	return pushAll(state, values)
}

func (r *run) stringMatch(state *lua.LState) int {
	m := r.matcher(state, true)
	if from, ok := start(state, m.text); ok {
		if begin, end, found := r.next(state, m, from); found {
			return pushAll(state, m.captured(begin, end))
		}
	}
	state.Push(lua.LNil)
	return 1
}

func (r *run) stringGmatch(state *lua.LState) int {
	m := r.matcher(state, false)
	at := 0
	r.allocate(state, bytesOfTable)
	state.Push(state.NewFunction(func(state *lua.LState) int {
		begin, end, found := r.next(state, m, at)
		if !found {
			at = len(m.text) + 1
			state.Push(lua.LNil)
			return 1
		}
		at = max(end, begin+1)
		if end > begin {
			at = end
		}
		return pushAll(state, m.captured(begin, end))
	}))
	return 1
}

func (r *run) stringGsub(state *lua.LState) int {
	m := r.matcher(state, true)
	replacement := state.CheckAny(3)
	most := state.OptInt(4, len(m.text)+1)
	var b strings.Builder
	at, count := 0, 0
	for count < most && at <= len(m.text) {
		begin, end, found := r.next(state, m, at)
		if !found {
			break
		}
		count++
		b.WriteString(m.text[at:begin])
		b.WriteString(r.replaced(state, m, begin, end, replacement))
		at = end
		if end == begin {
			b.WriteString(m.text[begin:min(begin+1, len(m.text))])
			at = begin + 1
		}
		if b.Len() > MaxString || m.anchored {
			break
		}
	}
	if at < len(m.text) {
		b.WriteString(m.text[at:])
	}
	r.text(state, b.Len())
	return pushAll(state, []lua.LValue{lua.LString(b.String()), lua.LNumber(count)})
}

// replaced gives what a match is replaced by: itself, if a function or table has nothing for it.
func (r *run) replaced(state *lua.LState, m *matcher, begin, end int, replacement lua.LValue) string {
	var value lua.LValue
	switch by := replacement.(type) {
	case lua.LString, lua.LNumber:
		return r.expanded(state, m, begin, end, by.String())
	case *lua.LTable:
		value = state.GetTable(by, m.captured(begin, end)[0])
	case *lua.LFunction:
		found := m.found
		state.Push(by)
		state.Call(pushAll(state, m.captured(begin, end)), 1)
		value = state.Get(-1)
		state.Pop(1)
		m.found = found
	default:
		state.ArgError(3, "string, number, table or function expected")
	}
	if lua.LVIsFalse(value) {
		return m.text[begin:end]
	}
	if !lua.LVCanConvToString(value) {
		state.RaiseError("invalid replacement value (a %s)", value.Type())
	}
	return lua.LVAsString(value)
}

// expanded puts captures into a replacement: %0 is the whole match.
func (r *run) expanded(state *lua.LState, m *matcher, begin, end int, template string) string {
	var b strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '%' || i+1 == len(template) {
			b.WriteByte(template[i])
			continue
		}
		i++
		switch c := template[i]; {
		case c == '0', c == '1' && m.captures == 0:
			b.WriteString(m.text[begin:end])
		case isDigit(c):
			if int(c-'1') >= m.captures {
				state.RaiseError("invalid capture index in replacement")
			}
			b.WriteString(m.value(int(c - '1')).String())
		default:
			b.WriteByte(c)
		}
		if b.Len() > MaxString {
			break
		}
	}
	r.allocate(state, b.Len())
	return b.String()
}
