package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
)

// inOwnNamespace: an empty namespace stands for that of the policy.
var inOwnNamespace = rule{
	"!has(object.metadata.namespace) || " + orEmptyList("object.spec", "resourceSelectors") +
		".all(s, !has(s.namespace) || s.namespace == '' || s.namespace == object.metadata.namespace)",
	"spec.resourceSelectors: namespace must be that of the policy, or be left out; a cluster-wide policy reaches " +
		"other namespaces",
}

func propagationPolicies() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return whenSpecChanges(policyv1alpha1.GroupVersion.Group,
		[]string{"propagationpolicies", "clusterpropagationpolicies"}, []variable{
			{"placement", "has(object.spec.placement) ? object.spec.placement : {}"},
			{"terms", orEmptyList("variables.placement", "clusterAffinities")},
			{"scheduling", "has(variables.placement.replicaScheduling) ? variables.placement.replicaScheduling : {}"},
			{"weighting", "has(variables.scheduling.weightPreference) ? variables.scheduling.weightPreference : {}"},
			{
				"overflows", "(!has(variables.scheduling.replicaSchedulingType) || " +
					"variables.scheduling.replicaSchedulingType == 'Divided') && " +
					"(has(variables.weighting.dynamicWeight) || has(variables.scheduling.replicaDivisionPreference) " +
					"&& " +
					"variables.scheduling.replicaDivisionPreference in ['Aggregated', 'Even'])",
			},
			{"groups", "has(variables.placement.workloadAffinity) ? variables.placement.workloadAffinity : {}"},
			{"failover", "has(object.spec.failover) ? object.spec.failover : {}"},
			{"rollout", "has(object.spec.rollout) ? object.spec.rollout : {}"},
			{"preserved", "[" + ruleListOf("application") + ", " + ruleListOf("cluster") + "]"},
		}, []rule{
			inOwnNamespace,
			{
				"object.spec.resourceSelectors.all(s, " + selectorHolds("s") + ")",
				"spec.resourceSelectors: " + badSelector,
			},
			{
				"!has(variables.placement.clusterAffinity) || " + selectorHolds("variables.placement.clusterAffinity"),
				"spec.placement.clusterAffinity: " + badSelector,
			},
			{
				"variables.terms.all(t, " + selectorHolds("t") + " && " + orEmptyList("t", "overflowAffinities") +
					".all(o, " + selectorHolds("o") + "))",
				"spec.placement.clusterAffinities: " + badSelector,
			},
			{orEmptyList("variables.weighting", "staticWeightList") + ".all(w, " + selectorHolds("w.targetCluster") +
				")",
				"spec.placement.replicaScheduling.weightPreference.staticWeightList: " + badSelector},
			{
				orEmptyList("variables.scheduling", "limits") + ".all(l, !has(l.targetCluster) || " +
					selectorHolds("l.targetCluster") + ")",
				"spec.placement.replicaScheduling.limits: " + badSelector,
			},
			{
				orEmptyList("variables.rollout", "waves") + ".all(w, !has(w.clusterAffinity) || " +
					selectorHolds("w.clusterAffinity") + ")",
				"spec.rollout.waves.clusterAffinity: " + badSelector,
			},
			{
				"variables.terms.all(t, " + isLabelKey("t.affinityName") + " && " +
					orEmptyList("t", "overflowAffinities") + ".all(o, " + isLabelKey("o.affinityName") + "))",
				"spec.placement.clusterAffinities: affinityName must consist of letters, digits, '-', '_' and '.', " +
					"and " +
					"begin and end with a letter or digit",
			},
			{"!variables.terms.exists(t, has(t.overflowAffinities)) || variables.overflows",
				"spec.placement.clusterAffinities: overflowAffinities are for replicas that are divided by room: " +
					"replicaDivisionPreference Aggregated or Even, or a dynamicWeight"},
			{
				"variables.terms.all(t, !has(t.overflowAffinities) || has(t.labelSelector) || has(t.fieldSelector) " +
					"|| has(t.clusterNames) || has(t.exclude))",
				"spec.placement.clusterAffinities: a term with overflowAffinities must choose its own clusters: " +
					"labelSelector, fieldSelector, clusterNames or exclude",
			},
			{"variables.terms.all(t, " + orEmptyList("t", "overflowAffinities") +
				".all(o, o.affinityName != t.affinityName && t.overflowAffinities.exists_one(p, p.affinityName == " +
				"o.affinityName)))",
				"spec.placement.clusterAffinities: affinityName of overflowAffinities must be unique, and differ " +
					"from " +
					"that of the term"},
			{
				"['affinity', 'antiAffinity'].all(g, !(g in variables.groups) || " +
					isLabelKey("variables.groups[g].groupByLabelKey") + ")",
				"spec.placement.workloadAffinity: groupByLabelKey must be the key of a label",
			},
			{
				"!(has(variables.groups.affinity) && has(variables.groups.antiAffinity)) || " +
					"variables.groups.affinity.groupByLabelKey != variables.groups.antiAffinity.groupByLabelKey",
				"spec.placement.workloadAffinity: affinity and antiAffinity must have different groupByLabelKeys",
			},
			{
				"variables.preserved.all(l, l.all(r, " + isLabelKey("r.aliasLabelName") + " && !" +
					isOwnKey("r.aliasLabelName") + "))",
				"spec.failover: aliasLabelName of statePreservation must be the key of a label, and none of the " +
					ownKeys,
			},
		})
}

// ruleListOf gives the rules of state preservation of one kind of failover.
func ruleListOf(kind string) string {
	return fmt.Sprintf("has(variables.failover.%[1]s) && has(variables.failover.%[1]s.statePreservation) ? "+
		"variables.failover.%[1]s.statePreservation.rules : []", kind)
}

func overridePolicies() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	each := func(list, check string) string {
		return "variables.rules.all(r, !has(r.overriders) || " + orEmptyList("r.overriders", list) + ".all(o, " +
			check + "))"
	}
	operations := func(form string) string {
		return orEmptyList("o", form) + ".all(p, p.operator == 'remove' ? !has(p.value) : has(p.value))"
	}
	keys := func(list, check string) string { return each(list, "!has(o.value) || o.value.all(k, "+check+")") }
	return withPathRules(whenSpecChanges(policyv1alpha1.GroupVersion.Group,
		[]string{"overridepolicies", "clusteroverridepolicies"}, []variable{
			// The older form has the fields of one rule in the spec itself.
			{"rules", orEmptyList("object.spec", "overrideRules") + " + [object.spec]"},
			{"selectors", orEmptyList("object.spec", "resourceSelectors")},
			{"clusterWide", "!has(object.metadata.namespace)"},
		}, []rule{
			inOwnNamespace,
			{
				each("plaintext", "!(o.path in ['/metadata/labels', '/metadata/annotations']) || !has(o.value) || "+
					"type(o.value) != map || o.value.all(k, !"+isOwnKey("k")+" && "+mayName("k")+")"),
				"overriders.plaintext: value must not hold " + ownKeys + ", nor, in an OverridePolicy, annotation " +
					overrides.AccountAnnotation,
			},
			{keys("labelsOverrider", "!"+isOwnKey("k")), "overriders.labelsOverrider: value must not hold " + ownKeys},
			{
				keys("annotationsOverrider", "!"+isOwnKey("k")),
				"overriders.annotationsOverrider: value must not hold " + ownKeys,
			},
			{"variables.clusterWide || variables.selectors.all(s, !(" + isOthersKind("s") + "))",
				"spec.resourceSelectors: an OverridePolicy changes no objects that give or limit rights (of " +
					othersKindNames() + "); a ClusterOverridePolicy may"},
			{
				"variables.clusterWide || size(variables.selectors) > 0 && !variables.selectors.exists(s, s.kind == " +
					"'Secret' && s.apiVersion == 'v1') || " +
					each("plaintext", "o.path != '/type'"),
				"overriders.plaintext: path must not be /type: an OverridePolicy does not change the type of " +
					"Secrets; a ClusterOverridePolicy may",
			},
			{keys("annotationsOverrider", mayName("k")) + " && " +
				each("plaintext", mayName("o.path.replace('~1', '/').replace('/metadata/annotations/', '')")),
				"overriders: annotation " + overrides.AccountAnnotation +
					" of Secrets is changed by a ClusterOverridePolicy only"},
			{"variables.selectors.all(s, " + selectorHolds("s") + ")", "spec.resourceSelectors: " + badSelector},
			{
				"variables.rules.all(r, !has(r.targetCluster) || " + selectorHolds("r.targetCluster") + ")",
				"targetCluster: " + badSelector,
			},
			{
				each("labelsOverrider", "!has(o.value) || o.value.all(k, "+isLabelKey("k")+" && "+
					isLabelValue("o.value[k]")+")"),
				"overriders.labelsOverrider: value must hold keys and values of labels",
			},
			{each("annotationsOverrider", "!has(o.value) || o.value.all(k, "+isLabelKey("k.lowerAscii()")+")"),
				"overriders.annotationsOverrider: value must hold keys of annotations"},
			{each("fieldOverrider", operations("json")+" && "+operations("yaml")),
				"overriders.fieldOverrider: operators add and replace need a value, and remove has none"},
		}))
}

const (
	ownKeys = "keys of karmada.io and trellis.garden, which are the fleet's own"
	badPath = "a path must lead to what the object holds, or to a label or annotation in metadata.labels or " +
		"metadata.annotations that is not the fleet's own (karmada.io, trellis.garden): " +
		"apiVersion, kind, the rest of metadata, and the object as a whole are what it is"
)

// mayName tells whether the policy may change an annotation of that key.
func mayName(key string) string {
	return fmt.Sprintf("(variables.clusterWide || %s != '%s')", key, overrides.AccountAnnotation)
}

// isOthersKind tells whether a selector names a kind that OverridePolicies don't change.
func isOthersKind(selector string) string {
	var conditions []string
	for _, group := range slices.Sorted(maps.Keys(overrides.OthersKinds)) {
		condition := selector + ".apiVersion.startsWith('" + group + "/')"
		if group == "" {
			condition = "!" + selector + ".apiVersion.contains('/')"
		}
		if kinds := overrides.OthersKinds[group]; kinds != nil {
			condition += " && " + selector + ".kind in ['" + strings.Join(kinds, "', '") + "']"
		}
		conditions = append(conditions, condition)
	}
	return strings.Join(conditions, " || ")
}

// othersKindNames lists them for people.
func othersKindNames() string {
	var names []string
	for _, group := range slices.Sorted(maps.Keys(overrides.OthersKinds)) {
		if kinds := overrides.OthersKinds[group]; kinds != nil {
			names = append(names, kinds...)
		} else {
			names = append(names, group)
		}
	}
	return strings.Join(names, ", ")
}

func clusterTaintPolicies() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return whenSpecChanges(policyv1alpha1.GroupVersion.Group, []string{"clustertaintpolicies"}, nil, []rule{
		{
			"object.spec.taints.all(t, object.spec.taints.exists_one(u, u.key == t.key && u.effect == t.effect))",
			"spec.taints: a taint is told by key and effect, and may be listed once",
		},
		{taintsHold("object.spec.taints"), badTaint},
		{
			"!has(object.spec.targetClusters) || " + selectorHolds("object.spec.targetClusters"),
			"spec.targetClusters: " + badSelector,
		},
	})
}

// taintsHold tells whether keys and values can be those of taints.
func taintsHold(list string) string {
	return fmt.Sprintf("%s.all(t, %s && (!has(t.value) || %s))", list, isLabelKey("t.key"), isLabelValue("t.value"))
}

const badTaint = "spec.taints: key and value must have the form of those of labels"

// quotas compares amounts as numbers of limited precision, and grants that much.
func quotas() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	amounts := func(list string) string {
		return list + ".all(k, quantity(string(" + list + "[k])).compareTo(quantity('0')) >= 0)"
	}
	return whenSpecChanges(policyv1alpha1.GroupVersion.Group, []string{"federatedresourcequotas"}, []variable{
		{"assignments", orEmptyList("object.spec", "staticAssignments")},
	}, []rule{
		{amounts("object.spec.overall"), "spec.overall: amounts must not be negative"},
		{
			"variables.assignments.all(a, " + amounts("a.hard") + ")",
			"spec.staticAssignments: hard: amounts must not be negative",
		},
		{
			"variables.assignments.all(a, size(a.clusterName) <= 52 && " + isDNSLabel("a.clusterName") + ")",
			"spec.staticAssignments: clusterName must be the name of a cluster",
		},
		{
			"variables.assignments.all(a, a.hard.all(k, k in object.spec.overall))",
			"spec.staticAssignments: every resource that is assigned must be in spec.overall",
		},
		{
			"object.spec.overall.all(k, variables.assignments.filter(a, k in a.hard).map(a, " +
				"quantity(string(a.hard[k])).asApproximateFloat()).sum() " +
				"<= quantity(string(object.spec.overall[k])).asApproximateFloat() * 1.000000001)",
			"spec.overall: must not be less than what is assigned to clusters together",
		},
	})
}
