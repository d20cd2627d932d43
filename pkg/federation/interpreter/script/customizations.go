package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// Customizations are the compiled scripts of a fleet.
type Customizations struct {
	rules map[question]rules
}

var _ interpreter.Source = (*Customizations)(nil)

// question is an operation on a kind.
type question struct {
	kind      schema.GroupVersionKind
	operation configv1alpha1.InterpreterOperation
}

// RulesFor implements interpreter.Source.
func (c *Customizations) RulesFor(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpreter.Rules {
	if found, ok := c.rules[question{kind, operation}]; ok {
		return found
	}
	return nil
}

// Compiler compiles customizations, and keeps what did not change between two times. The zero value is ready.
type Compiler struct {
	// Output gets what scripts print; nil drops it.
	Output   io.Writer
	compiled map[types.UID]compiledCustomization
}

type compiledCustomization struct {
	resourceVersion string
	scripts         map[configv1alpha1.InterpreterOperation]*Script
	err             error
}

// Compile gives the scripts of all customizations, and errors by the name of the customization. A script with an error
// is one that answers with this error: its operation must not be answered by something else instead. Of several scripts
// for the same operation on the same kind, that of the first customization by name is taken; the others have an error
// that says so.
func (c *Compiler) Compile(ctx context.Context,
	customizations []configv1alpha1.ResourceInterpreterCustomization) (*Customizations, map[string]error) {
	sorted := slices.Clone(customizations)
	slices.SortFunc(sorted, func(a, b configv1alpha1.ResourceInterpreterCustomization) int {
		return strings.Compare(a.Name, b.Name)
	})
	result := &Customizations{rules: map[question]rules{}}
	failures := map[string]error{}
	owners := map[question]string{}
	compiled := map[types.UID]compiledCustomization{}
	for i := range sorted {
		customization := &sorted[i]
		one := c.compiled[customization.UID]
		if customization.UID == "" || one.resourceVersion != customization.ResourceVersion {
			one = compileCustomization(ctx, customization)
		}
		compiled[customization.UID] = one
		if one.err != nil {
			failures[customization.Name] = one.err
		}
		kind := schema.FromAPIVersionAndKind(customization.Spec.Target.APIVersion, customization.Spec.Target.Kind)
		for _, operation := range slices.Sorted(maps.Keys(one.scripts)) {
			asked := question{kind, operation}
			if owner, taken := owners[asked]; taken {
				failures[customization.Name] = errors.Join(failures[customization.Name],
					fmt.Errorf("%s of %s is answered by customization %s already: remove one of the two scripts",
						operation, kind.Kind, owner))
				continue
			}
			owners[asked] = customization.Name
			result.rules[asked] = rules{Script: one.scripts[operation], output: c.Output}
		}
	}
	c.compiled = compiled
	return result, failures
}

func compileCustomization(ctx context.Context,
	customization *configv1alpha1.ResourceInterpreterCustomization) compiledCustomization {
	result := compiledCustomization{
		resourceVersion: customization.ResourceVersion, scripts: map[configv1alpha1.InterpreterOperation]*Script{},
	}
	var failures []string
	for operation, source := range Sources(&customization.Spec.Customizations) {
		name := fmt.Sprintf("customization %s, %s", customization.Name, operation)
		script, err := Compile(ctx, name, functions[operation], source)
		if err != nil {
			failures = append(failures, err.Error())
			script = &Script{name: name, broken: err}
		}
		result.scripts[operation] = script
	}
	if len(failures) > 0 {
		slices.Sort(failures)
		result.err = fmt.Errorf("%s", strings.Join(failures, "; "))
	}
	return result
}

// Sources gives the scripts of a customization by the operation that they answer.
func Sources(c *configv1alpha1.CustomizationRules) map[configv1alpha1.InterpreterOperation]string {
	result := map[configv1alpha1.InterpreterOperation]string{}
	if c.Retention != nil {
		result[configv1alpha1.InterpreterOperationRetain] = c.Retention.LuaScript
	}
	if c.ReplicaResource != nil {
		result[configv1alpha1.InterpreterOperationInterpretReplica] = c.ReplicaResource.LuaScript
	}
	if c.ComponentResource != nil {
		result[configv1alpha1.InterpreterOperationInterpretComponent] = c.ComponentResource.LuaScript
	}
	if c.ReplicaRevision != nil {
		result[configv1alpha1.InterpreterOperationReviseReplica] = c.ReplicaRevision.LuaScript
	}
	if c.StatusReflection != nil {
		result[configv1alpha1.InterpreterOperationInterpretStatus] = c.StatusReflection.LuaScript
	}
	if c.StatusAggregation != nil {
		result[configv1alpha1.InterpreterOperationAggregateStatus] = c.StatusAggregation.LuaScript
	}
	if c.HealthInterpretation != nil {
		result[configv1alpha1.InterpreterOperationInterpretHealth] = c.HealthInterpretation.LuaScript
	}
	if c.DependencyInterpretation != nil {
		result[configv1alpha1.InterpreterOperationInterpretDependency] = c.DependencyInterpretation.LuaScript
	}
	return result
}
