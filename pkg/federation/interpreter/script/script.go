package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Script is a compiled script that defines one function. It may run in several goroutines at once.
type Script struct {
	name     string
	function string
	proto    *lua.FunctionProto
	// broken is why the script cannot run; every call gives it.
	broken error
}

// Compile reads a script that must define a function. name is part of errors, which also tell the line.
func Compile(ctx context.Context, name, function, source string) (script *Script, err error) {
	if len(source) > MaxScript {
		return nil, fmt.Errorf("%s: the script has %d bytes; at most %d are possible", name, len(source), MaxScript)
	}
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("%s: the script cannot be compiled: %v", name, recovered)
		}
	}()
	statements, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, readable(err, name))
	}
	rewrite(statements)
	proto, err := lua.Compile(statements, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, readable(err, name))
	}
	script = &Script{name: name, function: function, proto: proto}
	return script, script.do(ctx, nil, func(*run, *lua.LState, *lua.LFunction) error { return nil })
}

// readable brings a message of the parser or compiler into the form of others: one line that begins with the place.
func readable(err error, name string) error {
	message := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), name)), " ")
	message = strings.NewReplacer("line:", "line ", "(column:", ", column ", ") near", " near").Replace(message)
	return errors.New(message)
}

// run is one run of a script.
type run struct {
	*budget
	shapes map[*lua.LTable]shape
	kube   *lua.LTable
	// protected is how many calls of pcall are within each other.
	protected int
	// output gets what the script prints; nil drops it.
	output io.Writer
}

// running bounds how many scripts run at once, and so the memory that all of them take.
var running = make(chan struct{}, runtime.GOMAXPROCS(0))

// do runs the script in a new state, and then what is done with the function that it defines.
func (s *Script) do(ctx context.Context, output io.Writer,
	then func(*run, *lua.LState, *lua.LFunction) error) (err error) {
	if s.broken != nil {
		return s.broken
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", s.name, ctx.Err())
	}
	state := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: MaxCalls, MinimizeStackMemory: true,
		RegistrySize: 256, RegistryGrowStep: 256, RegistryMaxSize: maxValues,
	})
	defer state.Close()
	r := &run{budget: newBudget(ctx), shapes: map[*lua.LTable]shape{}, output: output}
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("%s: %v", s.name, recovered)
		}
	}()
	r.open(state)
	state.SetContext(r)
	if err := s.call(r, state, state.NewFunctionFromProto(s.proto), 0); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	function, ok := state.GetGlobal(s.function).(*lua.LFunction)
	if !ok {
		return fmt.Errorf("%s: the script does not define the function %s", s.name, s.function)
	}
	if err := then(r, state, function); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// maxMessage is the length of an error's text that a script may choose.
const maxMessage = 512

// call calls a function; results are left on the stack.
func (s *Script) call(r *run, state *lua.LState, function *lua.LFunction, results int, arguments ...lua.LValue) error {
	err := state.CallByParam(lua.P{Fn: function, NRet: results, Protect: true}, arguments...)
	if err == nil {
		return nil
	}
	message := err.Error()
	var failure *lua.ApiError
	if errors.As(err, &failure) && failure.Object != nil {
		message = plainText(failure.Object)
	}
	if r.ended != nil && !strings.Contains(message, r.ended.Error()) {
		message = r.ended.Error()
	}
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return errors.New(s.located(strings.ToValidUTF8(message, "?")))
}

// located writes the place of a message, which the virtual machine puts in front as name:line:, in words.
func (s *Script) located(message string) string {
	rest, found := strings.CutPrefix(message, s.name+":")
	if !found {
		return message
	}
	return "line " + rest
}

// Call calls the function with arguments as they come from JSON, and reads its results in a callback.
func (s *Script) Call(ctx context.Context, output io.Writer, arguments []any, results int,
	read func(Results) error) error {
	return s.do(ctx, output, func(r *run, state *lua.LState, function *lua.LFunction) error {
		values := make([]lua.LValue, len(arguments))
		for i, argument := range arguments {
			values[i] = r.toLua(state, argument)
		}
		if err := s.call(r, state, function, results, values...); err != nil {
			return err
		}
		return read(Results{run: r, state: state, count: results})
	})
}

// Results are what a function returned.
type Results struct {
	run   *run
	state *lua.LState
	count int
}

func (r Results) at(i int) lua.LValue { return r.state.Get(i - r.count) }

// Type of the i-th result, beginning at 0, in the words of Lua.
func (r Results) Type(i int) string { return r.at(i).Type().String() }

// Value reads the i-th result. like is an argument that the result resembles.
func (r Results) Value(i int, like any) (any, error) { return r.run.value(r.at(i), like) }

// Into reads the i-th result into a value of Go.
func (r Results) Into(i int, target any) error { return r.run.into(r.at(i), target) }
