package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

const (
	// MaxProtected is how many calls of pcall and xpcall may be within each other. Each takes a part of the stack of
	// the process.
	MaxProtected = 16
	// caughtCost is how many bytes are made of an error that is caught: a traceback of the whole stack.
	caughtCost = 32 << 10
)

// pcall is that of the basic library, but for what it costs: a script that calls it within itself, and catches one
// error after the other at the bottom of a deep stack, would make gigabytes of tracebacks with the steps that it has,
// and take long to come to an end.
func (r *run) pcall(state *lua.LState) int {
	if value := state.CheckAny(1); value.Type() != lua.LTFunction {
		state.Push(lua.LFalse)
		state.Push(lua.LString("attempt to call a " + value.Type().String() + " value"))
		return 2
	}
	if err := r.protect(state, state.GetTop()-1, nil); err != nil {
		return r.caught(state, err)
	}
	state.Insert(lua.LTrue, 1)
	return state.GetTop()
}

// xpcall is that of the basic library, in the same way.
func (r *run) xpcall(state *lua.LState) int {
	function, handler := state.CheckFunction(1), state.CheckFunction(2)
	top := state.GetTop()
	state.Push(function)
	if err := r.protect(state, 0, handler); err != nil {
		return r.caught(state, err)
	}
	state.Insert(lua.LTrue, top+1)
	return state.GetTop() - top
}

func (r *run) protect(state *lua.LState, arguments int, handler *lua.LFunction) error {
	if r.protected++; r.protected > MaxProtected {
		r.protected--
		state.RaiseError("more than %d calls of pcall within each other", MaxProtected)
	}
	defer func() { r.protected-- }()
	return state.PCall(arguments, lua.MultRet, handler)
}

// caught gives a script the error that it has caught.
func (r *run) caught(state *lua.LState, err error) int {
	state.Push(lua.LFalse)
	r.allocate(state, caughtCost)
	raised := (*lua.ApiError)(nil)
	if !errors.As(err, &raised) {
		state.Push(lua.LString(err.Error()))
		return 2
	}
	state.Push(raised.Object)
	return 2
}
