package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// shape tells what an empty table stands for: Lua has the same tables for lists and objects.
type shape int

const (
	unknown shape = iota
	list
	object
)

// toLua gives a value as scripts see it. Tables remember what they were made from, so that they are the same when they
// come back empty. Nulls are left out: Lua cannot hold them.
func (r *run) toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, child := range v {
			if child != nil {
				table.RawSetString(key, r.toLua(state, child))
			}
		}
		r.shapes[table] = object
		return table
	case []any:
		table := state.NewTable()
		for _, child := range v {
			if child != nil {
				table.Append(r.toLua(state, child))
			}
		}
		r.shapes[table] = list
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case int32:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

// fromLua reads what a script returned.
type fromLua struct {
	run    *run
	values int
	bytes  int
}

// errEmpty is an empty table of which nothing tells whether it is a list or an object.
var errEmpty = errors.New("an empty table")

// read gives a value, with numbers as int64 if they are whole. like is a value of the same place in an argument, or
// nil: it tells what an empty table stands for that the script made.
func (f *fromLua) read(value lua.LValue, like any, path string, depth int) (any, error) {
	if f.values++; f.values > MaxResultValues {
		return nil, fmt.Errorf("%s: the result has more than %d values", path, MaxResultValues)
	}
	if depth > MaxResultDepth {
		return nil, fmt.Errorf("%s: the result is nested more than %d levels deep; a table may contain itself", path,
			MaxResultDepth)
	}
	switch v := value.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LString:
		return string(v), f.count(len(v), path)
	case lua.LNumber:
		return number(v, path)
	case *lua.LTable:
		return f.readTable(v, like, path, depth)
	}
	return nil, fmt.Errorf("%s: a %s cannot be in a result", path, value.Type())
}

func (f *fromLua) count(bytes int, path string) error {
	if f.bytes += bytes; f.bytes > MaxResultBytes {
		return fmt.Errorf("%s: the result has more than %d bytes", path, MaxResultBytes)
	}
	return nil
}

func number(n lua.LNumber, path string) (any, error) {
	switch f := float64(n); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%s: %v is no number that an object can hold", path, f)
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return int64(f), nil
	default:
		return f, nil
	}
}

func (f *fromLua) readTable(table *lua.LTable, like any, path string, depth int) (any, error) {
	length := table.Len()
	key, first := table.Next(lua.LNil)
	switch {
	case key == lua.LNil:
		return f.empty(table, like)
	case length > 0:
		return f.readList(table, length, like, path, depth)
	case key.Type() == lua.LTNumber:
		return nil, fmt.Errorf("%s: a list with holes: its first index is %v", path, key)
	}
	likeObject, _ := like.(map[string]any)
	result := map[string]any{}
	for ; key != lua.LNil; key, first = table.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			return nil, fmt.Errorf("%s: a table with both names and other keys (%s)", path, plainText(key))
		}
		if err := f.count(len(name), path); err != nil {
			return nil, err
		}
		child, err := f.read(first, likeObject[string(name)], path+"."+string(name), depth+1)
		switch {
		case errors.Is(err, errEmpty):
		case err != nil:
			return nil, err
		case child != nil:
			result[string(name)] = child
		}
	}
	return result, nil
}

// readList reads a table that has values at 1, 2, … and nothing else.
func (f *fromLua) readList(table *lua.LTable, length int, like any, path string, depth int) (any, error) {
	likeList, _ := like.([]any)
	result := make([]any, 0, min(length, MaxResultValues))
	count := 0
	for key, _ := table.Next(lua.LNil); key != lua.LNil; key, _ = table.Next(key) {
		if count++; key.Type() != lua.LTNumber {
			return nil, fmt.Errorf("%s: a table with both indices and names (%s)", path, plainText(key))
		}
	}
	if count != length {
		return nil, fmt.Errorf("%s: a list with holes: %d values, and the last index is %d", path, count, length)
	}
	for i := 1; i <= length; i++ {
		var likeItem any
		if i <= len(likeList) {
			likeItem = likeList[i-1]
		}
		child, err := f.read(table.RawGetInt(i), likeItem, path+"["+strconv.Itoa(i)+"]", depth+1)
		if errors.Is(err, errEmpty) {
			child, err = map[string]any{}, nil
		}
		if err != nil {
			return nil, err
		}
		result = append(result, child)
	}
	return result, nil
}

// empty keeps what an argument was. Of a new table, its place in the arguments tells, or nothing does.
func (f *fromLua) empty(table *lua.LTable, like any) (any, error) {
	switch f.run.shapes[table] {
	case list:
		return []any{}, nil
	case object:
		return map[string]any{}, nil
	}
	switch like.(type) {
	case []any:
		return []any{}, nil
	case map[string]any:
		return map[string]any{}, nil
	}
	return nil, errEmpty
}

// value reads a result.
func (r *run) value(value lua.LValue, like any) (any, error) {
	f := &fromLua{run: r}
	result, err := f.read(value, like, "result", 0)
	if errors.Is(err, errEmpty) {
		return nil, nil
	}
	return result, err
}

// into reads a result into a value of Go, by way of JSON. A table that is empty or absent leaves it as it is.
func (r *run) into(value lua.LValue, target any) error {
	decoded, err := r.value(value, nil)
	if err != nil || decoded == nil {
		return err
	}
	data, err := json.Marshal(decoded)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, target); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}
