package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
)

// autoscalers have metrics and rules in the shape of autoscaling/v2, whose schema says little about what fits together.
func autoscalers() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	// eachSource has an expression about a field of a metric that says where it comes from: m[f].
	eachSource := func(fields, expression string) string {
		return "variables.metrics.all(m, [" + fields + "].all(f, !(f in m) || " + expression + "))"
	}
	const all = "'resource', 'containerResource', 'pods', 'object', 'external'"
	// eachRules has an expression about the rules of one direction: r.
	eachRules := func(expression string) string {
		return "['scaleUp', 'scaleDown'].all(d, !(d in variables.behavior) || [variables.behavior[d]].all(r, " +
			expression + "))"
	}
	return whenSpecChanges(autoscalingv1alpha1.GroupVersion.Group, []string{"federatedhpas"}, []variable{
		{"metrics", orEmptyList("object.spec", "metrics")},
		{"behavior", "has(object.spec.behavior) ? object.spec.behavior : {}"},
	}, []rule{
		{
			"!has(object.spec.scaleTargetRef.apiVersion) || " +
				"!object.spec.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/')",
			"spec.scaleTargetRef: must be an object that has pods",
		},
		{
			"variables.metrics.all(m, m.type in ['Resource', 'ContainerResource', 'Pods', 'Object', 'External'] && [" +
				all + "].all(f, (f in m) == (f.lowerAscii() == m.type.lowerAscii())))",
			"spec.metrics: type must be Resource, ContainerResource, Pods, Object or External, and exactly the " +
				"field of that name must be there",
		},
		{eachSource("'resource', 'containerResource'",
			"has(m[f].target.averageUtilization) != has(m[f].target.averageValue) && !has(m[f].target.value)"),
			"spec.metrics: the target of resource and containerResource must have one of averageUtilization and " +
				"averageValue"},
		{
			eachSource("'pods'", "has(m[f].target.averageValue) && !has(m[f].target.value) && "+
				"!has(m[f].target.averageUtilization)"),
			"spec.metrics: the target of pods must have averageValue, and nothing else",
		},
		{eachSource("'object', 'external'",
			"has(m[f].target.value) != has(m[f].target.averageValue) && !has(m[f].target.averageUtilization)"),
			"spec.metrics: the target of object and external must have one of value and averageValue"},
		{
			eachSource(all, "m[f].target.type in ['Utilization', 'Value', 'AverageValue'] && ['value', "+
				"'averageValue'].all(v, !(v in m[f].target) || "+isPositive("m[f].target[v]")+
				") && (!has(m[f].target.averageUtilization) || m[f].target.averageUtilization > 0)"),
			"spec.metrics: type of a target must be Utilization, Value or AverageValue, and its amount above 0",
		},
		{eachSource("'resource', 'containerResource'",
			"size(m[f].name) > 0 && (f != 'containerResource' || size(m[f].container) > 0)"),
			"spec.metrics: resource and containerResource need a name, and the latter a container"},
		{eachSource("'pods', 'object', 'external'",
			isPathSegment("m[f].metric.name")+" && (f != 'object' || size(m[f].describedObject.kind) > 0 && "+
				isPathSegment("m[f].describedObject.name")+")"),
			"spec.metrics: names of metrics and of described objects must be there, without '/' and '%', and a " +
				"described object needs a kind"},
		{
			eachRules("!has(r.stabilizationWindowSeconds) || r.stabilizationWindowSeconds >= 0 && " +
				"r.stabilizationWindowSeconds <= 3600"),
			"spec.behavior: stabilizationWindowSeconds must be between 0 and 3600",
		},
		{
			eachRules("!has(r.selectPolicy) || r.selectPolicy in ['Max', 'Min', 'Disabled']"),
			"spec.behavior: selectPolicy must be Max, Min or Disabled",
		},
		{
			eachRules("!has(r.tolerance) || quantity(string(r.tolerance)).compareTo(quantity('0')) >= 0"),
			"spec.behavior: tolerance must not be below 0",
		},
		{
			eachRules(orEmptyList("r", "policies") +
				".all(p, p.type in ['Pods', 'Percent'] && p.value > 0 && p.periodSeconds > 0 && p.periodSeconds <= " +
				"1800)"),
			"spec.behavior: policies have type Pods or Percent, a value above 0, and a period of 1 to 1800 seconds",
		},
	})
}

// isPositive tells whether a quantity is above 0.
func isPositive(amount string) string {
	return "quantity(string(" + amount + ")).compareTo(quantity('0')) > 0"
}

// isPathSegment tells whether a name may stand between two slashes of a path.
func isPathSegment(name string) string {
	return fmt.Sprintf("size(%[1]s) > 0 && %[1]s != '.' && %[1]s != '..' && !%[1]s.contains('/') && "+
		"!%[1]s.contains('%%')", name)
}
