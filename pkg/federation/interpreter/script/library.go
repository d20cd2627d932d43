package script

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// refused are basic functions that load code, reach files, or change what others rely on.
var refused = []string{
	"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module", "newproxy",
	"rawequal",
	"rawget", "rawset", "setfenv", "setmetatable", "_printregs",
}

// open gives a state the libraries that scripts may use.
func (r *run) open(state *lua.LState) {
	for _, library := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenMath, lua.OpenOs} {
		state.Push(state.NewFunction(library))
		state.Call(0, 0)
	}
	for _, name := range refused {
		state.SetGlobal(name, state.NewFunction(func(state *lua.LState) int {
			state.RaiseError("%s is not available to scripts", name)
			return 0
		}))
	}
	math := state.GetGlobal("math").(*lua.LTable)
	for _, name := range []string{"random", "randomseed"} {
		math.RawSetString(name, state.NewFunction(func(state *lua.LState) int {
			state.RaiseError("math.%s is not available to scripts: the same object must always be understood in the "+
				"same way", name)
			return 0
		}))
	}
	r.openOS(state)
	r.openStrings(state)
	state.SetFuncs(state.GetGlobal("table").(*lua.LTable),
		map[string]lua.LGFunction{"concat": r.tableConcat, "insert": r.tableInsert})
	for name, function := range r.operators() {
		state.SetGlobal(name, state.NewFunction(function))
	}
	state.SetGlobal("pcall", state.NewFunction(r.pcall))
	state.SetGlobal("print", state.NewFunction(r.print))
	state.SetGlobal("require", state.NewFunction(r.require))
	state.SetGlobal("tostring", state.NewFunction(r.tostring))
	state.SetGlobal("xpcall", state.NewFunction(r.xpcall))
}

// openOS keeps the clock only.
func (r *run) openOS(state *lua.LState) {
	all := state.GetGlobal("os").(*lua.LTable)
	date := all.RawGetString("date").(*lua.LFunction)
	kept := state.NewTable()
	for _, name := range []string{"time", "clock", "difftime"} {
		kept.RawSetString(name, all.RawGetString(name))
	}
	kept.RawSetString("date", state.NewFunction(func(state *lua.LState) int {
		if format := state.OptString(1, "%c"); len(format) > 256 {
			state.RaiseError("os.date: the format is longer than 256 bytes")
		}
		r.allocate(state, 8<<10)
		return date.GFunction(state)
	}))
	state.SetGlobal("os", kept)
}

func (r *run) openStrings(state *lua.LState) {
	library := state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{
		"byte": stringByte, "char": r.stringChar, "find": r.stringFind, "format": r.stringFormat,
		"gmatch": r.stringGmatch,
		"gsub":   r.stringGsub, "len": stringLen, "lower": r.mapped(strings.ToLower),
		"upper": r.mapped(strings.ToUpper),
		"match": r.stringMatch, "rep": r.stringRep, "reverse": r.mapped(reversed), "sub": stringSub,
	})
	state.SetGlobal("string", library)
	methods := state.NewTable()
	methods.RawSetString("__index", library)
	state.SetMetatable(lua.LString(""), methods)
}

func (r *run) print(state *lua.LState) int {
	if r.output == nil {
		return 0
	}
	words := make([]string, state.GetTop())
	for i := range words {
		words[i] = plainText(state.Get(i + 1))
	}
	fmt.Fprintln(r.output, strings.Join(words, "\t"))
	return 0
}

// plainText gives the kind of a table or function rather than its address, which differs between runs.
func plainText(value lua.LValue) string {
	switch value.Type() {
	case lua.LTTable, lua.LTFunction, lua.LTUserData, lua.LTThread, lua.LTChannel:
		return value.Type().String()
	}
	return value.String()
}

func (r *run) tostring(state *lua.LState) int {
	text := plainText(state.CheckAny(1))
	r.allocate(state, len(text))
	state.Push(lua.LString(text))
	return 1
}

func (r *run) require(state *lua.LState) int {
	name := state.CheckString(1)
	if name != "kube" {
		state.RaiseError("module %q is not available to scripts; there is kube", name)
	}
	if r.kube == nil {
		r.kube = r.kubeLibrary(state)
	}
	state.Push(r.kube)
	return 1
}

func (r *run) tableConcat(state *lua.LState) int {
	table, separator := state.CheckTable(1), state.OptString(2, "")
	first, last := state.OptInt(3, 1), state.OptInt(4, table.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		if !r.spend(1) {
			state.RaiseError("%s", r.ended)
		}
		value := table.RawGetInt(i)
		if !lua.LVCanConvToString(value) {
			state.RaiseError("invalid value (%s) at index %d in table for concat", value.Type(), i)
		}
		b.WriteString(lua.LVAsString(value))
		if i < last {
			b.WriteString(separator)
		}
		if b.Len() > MaxString {
			break
		}
	}
	r.text(state, b.Len())
	state.Push(lua.LString(b.String()))
	return 1
}

func (r *run) tableInsert(state *lua.LState) int {
	table := state.CheckTable(1)
	switch state.GetTop() {
	case 2:
		r.allocate(state, bytesOfValue)
		table.Append(state.Get(2))
	case 3:
		index := state.CheckInt(2)
		r.reserve(state, table, lua.LNumber(index))
		table.Insert(index, state.Get(3))
	default:
		state.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func stringLen(state *lua.LState) int {
	state.Push(lua.LNumber(len(state.CheckString(1))))
	return 1
}

// position turns an index of Lua, which may count from the end, into one that may lie outside of the text.
func position(index, length int) int {
	switch {
	case index >= 0:
		return index
	case -index > length:
		return 0
	}
	return length + index + 1
}

// part gives the bounds of a part of a text, as indices of Go.
func part(text string, first, last int) (int, int) {
	from, to := max(position(first, len(text)), 1), min(position(last, len(text)), len(text))
	if from > to {
		return 0, 0
	}
	return from - 1, to
}

func stringSub(state *lua.LState) int {
	text := state.CheckString(1)
	from, to := part(text, state.CheckInt(2), state.OptInt(3, -1))
	state.Push(lua.LString(text[from:to]))
	return 1
}

func stringByte(state *lua.LState) int {
	text := state.CheckString(1)
	first := state.OptInt(2, 1)
	from, to := part(text, first, state.OptInt(3, first))
	for _, c := range []byte(text[from:to]) {
		state.Push(lua.LNumber(c))
	}
	return to - from
}

func (r *run) stringChar(state *lua.LState) int {
	bytes := make([]byte, state.GetTop())
	for i := range bytes {
		code := state.CheckInt(i + 1)
		if code < 0 || code > 255 {
			state.ArgError(i+1, "invalid value")
		}
		bytes[i] = byte(code)
	}
	r.text(state, len(bytes))
	state.Push(lua.LString(bytes))
	return 1
}

func (r *run) mapped(change func(string) string) lua.LGFunction {
	return func(state *lua.LState) int {
		text := state.CheckString(1)
		r.text(state, len(text))
		state.Push(lua.LString(change(text)))
		return 1
	}
}

func reversed(text string) string {
	bytes := []byte(text)
	for i, j := 0, len(bytes)-1; i < j; i, j = i+1, j-1 {
		bytes[i], bytes[j] = bytes[j], bytes[i]
	}
	return string(bytes)
}

func (r *run) stringRep(state *lua.LState) int {
	text, count := state.CheckString(1), state.CheckInt(2)
	if count <= 0 || text == "" {
		state.Push(lua.LString(""))
		return 1
	}
	if count > MaxString {
		count = MaxString + 1
	}
	r.text(state, len(text)*count)
	state.Push(lua.LString(strings.Repeat(text, count)))
	return 1
}

// stringFormat knows the directives of Lua 5.1: flags, width and precision of two digits each.
func (r *run) stringFormat(state *lua.LState) int {
	format := state.CheckString(1)
	var b strings.Builder
	argument := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		end, ok := directive(format, i)
		if !ok {
			state.RaiseError("invalid option in format %q", format)
		}
		argument++
		b.WriteString(formatted(state, format[i:end], format[end], argument))
		i = end
		if b.Len() > MaxString {
			break
		}
	}
	r.text(state, b.Len())
	state.Push(lua.LString(b.String()))
	return 1
}

// directive gives where the letter of a directive is that begins with a % at i.
func directive(format string, i int) (int, bool) {
	i++
	skip := func(characters string, most int) {
		for n := 0; i < len(format) && n < most && strings.IndexByte(characters, format[i]) >= 0; n++ {
			i++
		}
	}
	const digits = "0123456789"
	skip("-+ #0", 5)
	skip(digits, 2)
	if i < len(format) && format[i] == '.' {
		i++
		skip(digits, 2)
	}
	return i, i < len(format) && strings.IndexByte("cdiouxXeEfgGqs", format[i]) >= 0
}

func formatted(state *lua.LState, flags string, letter byte, argument int) string {
	switch letter {
	case 's':
		text := plainText(state.CheckAny(argument))
		return fmt.Sprintf(flags+"s", text)
	case 'q':
		return quoted(state.CheckString(argument))
	case 'c':
		return string([]byte{byte(state.CheckInt(argument))})
	case 'e', 'E', 'f', 'g', 'G':
		return fmt.Sprintf(flags+string(letter), float64(state.CheckNumber(argument)))
	case 'i', 'u':
		letter = 'd'
	}
	number := float64(state.CheckNumber(argument))
	if math.IsNaN(number) || math.Abs(number) >= 1<<63 {
		state.ArgError(argument, "number has no integer representation")
	}
	return fmt.Sprintf(flags+string(letter), int64(number))
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`).Replace(text) + `"`
}
