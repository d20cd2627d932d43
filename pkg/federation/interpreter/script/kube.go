package script

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// kubeLibrary is what require("kube") gives:
//
//	resourceAdd(q1, q2, …)                 the sum of quantities; nil counts as none
//	getResourceQuantity(q)                 a quantity as a number
//	accuratePodRequirements(template)      what a pod of the template needs, as GetReplicas returns it
//	getPodDependencies(template, namespace) what a pod of the template refers to, as GetDependencies returns it
func (r *run) kubeLibrary(state *lua.LState) *lua.LTable {
	return state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{
		"resourceAdd":             r.resourceAdd,
		"getResourceQuantity":     resourceQuantity,
		"accuratePodRequirements": r.podRequirements,
		"getPodDependencies":      r.podDependencies,
	})
}

// quantity reads an argument. Numbers are quantities, too.
func quantity(state *lua.LState, argument int) resource.Quantity {
	value := state.Get(argument)
	if value == lua.LNil {
		return resource.Quantity{}
	}
	if !lua.LVCanConvToString(value) {
		state.TypeError(argument, lua.LTString)
	}
	q, err := resource.ParseQuantity(lua.LVAsString(value))
	if err != nil {
		state.ArgError(argument, "not a quantity: "+err.Error())
	}
	return q
}

func (r *run) resourceAdd(state *lua.LState) int {
	var sum resource.Quantity
	for i := 1; i <= state.GetTop(); i++ {
		sum.Add(quantity(state, i))
	}
	text := sum.String()
	r.text(state, len(text))
	state.Push(lua.LString(text))
	return 1
}

func resourceQuantity(state *lua.LState) int {
	q := quantity(state, 1)
	if q.Sign() < 0 {
		state.ArgError(1, "a negative quantity")
	}
	state.Push(lua.LNumber(q.AsApproximateFloat64()))
	return 1
}

// template reads a pod template.
func (r *run) template(state *lua.LState, argument int) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	if !r.spend(1000) {
		state.RaiseError("%s", r.ended)
	}
	if err := r.into(state.CheckTable(argument), template); err != nil {
		state.ArgError(argument, "not a pod template: "+err.Error())
	}
	return template
}

// push gives a value of Go to the script, by way of JSON.
func (r *run) push(state *lua.LState, value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		state.RaiseError("%s", err)
	}
	r.allocate(state, 10*len(data))
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		state.RaiseError("%s", err)
	}
	state.Push(r.toLua(state, decoded))
	return 1
}

func (r *run) podRequirements(state *lua.LState) int {
	template := r.template(state, 1)
	return r.push(state, interpreter.Requirements(&template.Spec, template.Namespace))
}

func (r *run) podDependencies(state *lua.LState) int {
	template := r.template(state, 1)
	namespace := state.OptString(2, "default")
	references := interpreter.PodDependencies(&template.Spec, namespace)
	if len(references) == 0 {
		table := state.NewTable()
		r.shapes[table] = list
		state.Push(table)
		return 1
	}
	return r.push(state, references)
}
