package federation

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/admission"
)

// Rules that ValidatingAdmissionPolicies and schemas of the fleet's API enforce: what breaks one is refused with a
// message that names the field, and what keeps to it is accepted.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	const (
		selectors = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`
		divided   = `replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`
		failover  = `propagateDeps: true, failover: {application: {decisionConditions: {}`
	)
	policy := func(spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, spec: {` + spec + `}}`
	}
	clusterPolicy := func(spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, spec: {` + spec + `}}`
	}
	placed := func(placement string) string { return policy(selectors + `, placement: {` + placement + `}`) }
	override := func(spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, spec: {` + spec + `}}`
	}
	rules := func(overriders string) string { return override(`overrideRules: [{overriders: {` + overriders + `}}]`) }
	taints := func(spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, spec: {` + spec + `}}`
	}
	quota := func(spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, spec: {` + spec + `}}`
	}
	cluster := func(spec string) string {
		return `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, spec: {syncMode: Push, ` + spec + `}}`
	}
	webhook := func(hook string) string {
		return `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, webhooks: [{interpreterContextVersions: [v1alpha1], ` + hook + `}]}`
	}
	hpa := func(spec string) string {
		return `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, ` + spec + `}}`
	}
	metric := func(m string) string { return hpa(`maxReplicas: 3, metrics: [` + m + `]`) }
	behavior := func(b string) string { return hpa(`maxReplicas: 3, behavior: {` + b + `}`) }
	clock := func(target, rule string) string {
		return `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, spec: {scaleTargetRef: {` +
			target + `, name: web}, rules: [{name: a, schedule: "0 8 * * *", ` + rule + `}]}}`
	}
	const limits = `apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA`
	const url = `clientConfig: {url: "https://a.example.com"}`
	const anyKind = `apiGroups: ["*"], apiVersions: ["*"], kinds: ["*"]`
	tests := map[string]struct {
		good, bad, want string
	}{
		"namespace of a selector": {
			policy(`resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: ` + namespace +
				`}, {apiVersion: v1, kind: Secret, namespace: ""}]`),
			policy(`resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: elsewhere}]`),
			"spec.resourceSelectors: namespace must be that of the policy",
		},
		"namespace of an override's selector": {
			override(`overriders: {}, resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: ` + namespace +
				`}]`),
			override(`overriders: {}, resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: elsewhere}]`),
			"spec.resourceSelectors: namespace must be that of the policy",
		},
		"namespaces of a cluster-wide policy": {
			clusterPolicy(`resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: elsewhere}]`), "", "",
		},
		"operator of a label selector": {
			policy(`resourceSelectors: [{apiVersion: v1, kind: Secret, labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: app, operator: Exists}, {key: a/b, operator: NotIn, values: [c]}]}}]`),
			policy(`resourceSelectors: [{apiVersion: v1, kind: Secret, labelSelector: {matchExpressions: [{key: app, operator: Like, values: [a]}]}}]`), "spec.resourceSelectors: a labelSelector cannot be understood",
		},
		"selector of a wave": {
			policy(selectors +
				`, rollout: {waves: [{name: a}, {name: b, clusterAffinity: {clusterNames: [m]}}, {name: c, clusterAffinity: {labelSelector: {matchLabels: {a/b: c}}}}]}`),
			policy(selectors +
				`, rollout: {waves: [{name: a}, {name: b, clusterAffinity: {labelSelector: {matchLabels: {a: "b c"}}}}]}`), "spec.rollout.waves.clusterAffinity: a labelSelector",
		},
		"values of a label selector": {
			"", placed(`clusterAffinity: {labelSelector: {matchExpressions: [{key: app, operator: In}]}}`),
			"spec.placement.clusterAffinity: a labelSelector",
		},
		"labels of a label selector": {
			"", placed(`clusterAffinity: {labelSelector: {matchLabels: {"a b": c}}}`),
			"spec.placement.clusterAffinity: a labelSelector",
		},
		"selector of an affinity term": {
			"", placed(`clusterAffinities: [{affinityName: a, labelSelector: {matchLabels: {a: "b c"}}}]`),
			"spec.placement.clusterAffinities: a labelSelector",
		},
		"selector of a weight": {
			"",
			placed(`replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {labelSelector: {matchLabels: {"": b}}}, weight: 1}]}}`), "staticWeightList: a labelSelector",
		},
		"selector of a limit": {
			"",
			placed(`replicaScheduling: {limits: [{maxReplicas: 1, targetCluster: {labelSelector: {matchLabels: {"": b}}}}]}`), "limits: a labelSelector",
		},
		"operator in a wave": {
			"",
			policy(selectors +
				`, rollout: {waves: [{name: a, clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}}]}`), "spec.rollout.waves.clusterAffinity: a labelSelector",
		},
		"selector of a rule": {
			"", override(`overrideRules: [{overriders: {}, targetCluster: {labelSelector: {matchLabels: {"": b}}}}]`),
			"targetCluster: a labelSelector",
		},
		"selector of the older form": {
			"", override(`overriders: {}, targetCluster: {labelSelector: {matchLabels: {"": b}}}`),
			"targetCluster: a labelSelector",
		},
		"name of an affinity": {
			placed(`clusterAffinities: [{affinityName: first-one}]`),
			placed(`clusterAffinities: [{affinityName: "first one"}]`), "affinityName must consist of",
		},
		"overflow without room": {
			placed(`clusterAffinities: [{affinityName: a, clusterNames: [m], overflowAffinities: [{affinityName: b}]}], ` + divided), placed(`clusterAffinities: [{affinityName: a, clusterNames: [m], overflowAffinities: [{affinityName: b}]}]`), "overflowAffinities are for replicas that are divided by room",
		},
		"overflow of nothing": {
			"", placed(`clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: b}]}], ` + divided),
			"must choose its own clusters",
		},
		"overflow of the same name": {
			"",
			placed(`clusterAffinities: [{affinityName: a, clusterNames: [m], overflowAffinities: [{affinityName: a}]}], ` + divided), "must be unique",
		},
		"overflow, twice the same": {
			"",
			placed(`clusterAffinities: [{affinityName: a, clusterNames: [m], overflowAffinities: [{affinityName: b}, {affinityName: b}]}], ` + divided), "must be unique",
		},
		"groups": {
			placed(`workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: b}}`),
			placed(`workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}`),
			"different groupByLabelKeys",
		},
		"key of a group": {
			"", placed(`workloadAffinity: {antiAffinity: {groupByLabelKey: "a b"}}`), "must be the key of a label",
		},
		"label of a preserved state": {
			policy(selectors + `, ` + failover +
				`, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.b}"}]}}}`),
			policy(selectors + `, ` + failover +
				`, statePreservation: {rules: [{aliasLabelName: "a b", jsonPath: "{.b}"}]}}}`), "aliasLabelName",
		},
		"fleet's label as such a state": {
			policy(selectors + `, ` + failover +
				`, statePreservation: {rules: [{aliasLabelName: karmada.example/a, jsonPath: "{.b}"}]}}}`),
			policy(selectors + `, ` + failover +
				`, statePreservation: {rules: [{aliasLabelName: karmada.io/managed, jsonPath: "{.b}"}]}}}`),
			"aliasLabelName",
		},
		"grace period": {
			policy(selectors + `, ` + failover + `, gracePeriodSeconds: 1}}`),
			policy(selectors + `, ` + failover + `, gracePeriodSeconds: 0}}`), "gracePeriodSeconds",
		},
		"suspension": {
			policy(selectors + `, suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [a]}}`),
			policy(selectors + `, suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}`),
			"give either dispatching or",
		},
		"labels": {
			rules(`labelsOverrider: [{operator: add, value: {a/b: c}}]`),
			rules(`labelsOverrider: [{operator: add, value: {a: "b c"}}]`), "labelsOverrider",
		},
		"labels of the older form": {
			"", override(`overriders: {labelsOverrider: [{operator: add, value: {"a b": c}}]}`), "labelsOverrider",
		},
		"annotations": {
			rules(`annotationsOverrider: [{operator: add, value: {A/b: "any text"}}]`),
			rules(`annotationsOverrider: [{operator: add, value: {"a b": c}}]`), "annotationsOverrider",
		},
		"path of an image": {
			rules(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: /spec/image}}]`),
			rules(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: spec.image}}]`),
			"predicate.path",
		},
		"path of a field": {
			rules(`fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /b, operator: add, value: {c: 1}}]}]`),
			rules(`fieldOverrider: [{fieldPath: data.a, yaml: [{subPath: /b, operator: add, value: 1}]}]`), "fieldPath",
		},
		"path in a field": {
			rules(`fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /b, operator: remove}]}]`),
			rules(`fieldOverrider: [{fieldPath: /data/a, json: [{subPath: b, operator: remove}]}]`), "subPath",
		},
		"path of plaintext": {
			rules(`plaintext: [{path: /metadata/labels/a~1b, operator: remove}, {path: /data/~0~1, operator: add, value: a}]`),
			override(`overrideRules: [{overriders: {}}, {overriders: {plaintext: [{path: /a, operator: remove}, {path: /data/~2, operator: add, value: a}]}}]`),
			`spec.overrideRules[1].overriders.plaintext[1].path "/data/~2": a path must be a JSON pointer`,
		},
		"path of the older form": {
			"", override(`overriders: {plaintext: [{path: data~, operator: remove}]}`),
			`spec.overriders.plaintext[0].path "data~": a path must be`,
		},
		"path of nothing": {
			"", rules(`plaintext: [{path: "", operator: remove}]`),
			`spec.overrideRules[0].overriders.plaintext[0].path "": a path must lead to`,
		},
		"path with line breaks": {
			"", rules(`plaintext: [{path: "/data/~\n", operator: remove}]`),
			"overriders: a path must be a JSON pointer",
		},
		"several paths": {
			"",
			rules(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: ""}}], fieldOverrider: [{fieldPath: /kind, json: []}]`),
			`imageOverrider[0].predicate.path "", spec.overrideRules[0].overriders.fieldOverrider[0].fieldPath "/kind": a path must lead to`,
		},
		"escape in a field": {
			"",
			rules(`fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /b, operator: remove}, {subPath: /~, operator: remove}]}]`), `fieldOverrider[0].yaml[1].subPath "/~": a path`,
		},
		"removal of a field": {
			rules(`fieldOverrider: [{fieldPath: /data/a, json: [{subPath: "", operator: replace, value: {}}]}]`),
			rules(`fieldOverrider: [{fieldPath: /data/a, json: [{subPath: "", operator: remove}]}]`),
			`json[0].subPath "": operator remove needs a subPath`,
		},
		"value of a field": {
			"", rules(`fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /b, operator: replace}]}]`),
			"operators add and replace need a value",
		},
		"value of nothing": {
			"", rules(`fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /b, operator: remove, value: 1}]}]`),
			"operators add and replace need a value",
		},
		"taints of a policy": {
			taints(`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]`),
			taints(`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule, value: b}]`),
			"spec.taints: a taint is told by key and effect",
		},
		"keys of taints": {
			"", taints(`taints: [{key: "a b", effect: NoSchedule}]`), "spec.taints: key and value",
		},
		"targets of a taint policy": {
			"",
			taints(`targetClusters: {labelSelector: {matchLabels: {"": b}}}, taints: [{key: a, effect: NoSchedule}]`),
			"spec.targetClusters: a labelSelector",
		},
		"sum of assignments": {
			quota(`overall: {cpu: 300m, pods: 3}, staticAssignments: [{clusterName: a, hard: {cpu: 100m, pods: 1}}, {clusterName: b, hard: {cpu: 200m}}]`), quota(`overall: {cpu: 300m}, staticAssignments: [{clusterName: a, hard: {cpu: 100m}}, {clusterName: b, hard: {cpu: 201m}}]`), "spec.overall: must not be less",
		},
		"assigned and not limited": {
			"", quota(`overall: {cpu: 1}, staticAssignments: [{clusterName: a, hard: {memory: 1Gi}}]`),
			"must be in spec.overall",
		},
		"a negative amount": {
			"", quota(`overall: {cpu: -1}`), "spec.overall: amounts must not be negative",
		},
		"a negative assignment": {
			"", quota(`overall: {cpu: 1}, staticAssignments: [{clusterName: a, hard: {cpu: "-1"}}]`),
			"spec.staticAssignments: hard: amounts must not be negative",
		},
		"cluster of an assignment": {
			"", quota(`overall: {cpu: 1}, staticAssignments: [{clusterName: A.b, hard: {cpu: 1}}]`),
			"must be the name of a cluster",
		},
		"endpoint": {
			cluster(`apiEndpoint: "https://10.0.0.1:6443"`), cluster(`apiEndpoint: "10.0.0.1:6443"`),
			"spec.apiEndpoint",
		},
		"endpoint with a user": {"", cluster(`apiEndpoint: "https://a:b@10.0.0.1:6443"`), "spec.apiEndpoint"},
		"proxy": {
			cluster(`proxyURL: "socks5://proxy:1080"`), cluster(`proxyURL: "ftp://proxy"`), "spec.proxyURL",
		},
		"region": {
			cluster(`region: eu-1, zones: [a, b]`), cluster(`region: "a b"`), "must have the form of values of labels",
		},
		"zone": {cluster(`zone: a`), cluster(`zone: a, zones: [b]`), "spec.zone"},
		"taints": {
			cluster(`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]`),
			cluster(`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]`), "spec.taints",
		},
		"effect of a taint": {"", cluster(`taints: [{key: a, effect: Never}]`), "effect must be"},
		"models": {
			cluster(`resourceModels: [{grade: 1, ranges: [{name: cpu, min: "1", max: "9223372036854775807"}]}, {grade: 0, ranges: [{name: cpu, min: 0, max: 1000m}]}]`), cluster(`resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}, {grade: 1, ranges: [{name: cpu, min: 2, max: "9223372036854775807"}]}]`), "must follow on each other",
		},
		"models that end": {
			"", cluster(`resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}]`),
			"must follow on each other",
		},
		"models of different resources": {
			"",
			cluster(`resourceModels: [{grade: 0, ranges: [{name: cpu, min: 0, max: 1}]}, {grade: 1, ranges: [{name: memory, min: 1, max: "9223372036854775807"}]}]`), "all grades must have ranges",
		},
		"name of a webhook": {
			webhook(`name: a.example.com, ` + url), webhook(`name: example, ` + url), "webhooks: name must be unique",
		},
		"target of a webhook": {
			"",
			webhook(`name: a.example.com, clientConfig: {url: "https://a.example.com", service: {namespace: a, name: b}}`), "a url or a service",
		},
		"operations of a webhook": {
			webhook(`name: a.example.com, ` + url + `, rules: [{operations: ["*"], ` + anyKind + `}]`),
			webhook(`name: a.example.com, ` + url + `, rules: [{operations: ["*", Retain], ` + anyKind + `}]`),
			"'*' stands alone",
		},
		"limits of replicas": {
			hpa(`minReplicas: 3, maxReplicas: 3`), hpa(`minReplicas: 4, maxReplicas: 3`),
			"must not be less than minReplicas",
		},
		"least replicas by default": {hpa(`maxReplicas: 1`), hpa(`maxReplicas: 0`), "maxReplicas"},
		"what is scaled": {
			"",
			`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: a}}}`, "spec.scaleTargetRef: must be an object that has pods",
		},
		"scaled without a name": {
			"",
			`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, spec: {maxReplicas: 1, scaleTargetRef: {kind: Deployment, name: ""}}}`, "needs kind and name",
		},
		"type of a metric": {
			metric(`{type: ContainerResource, containerResource: {name: memory, container: a, target: {type: AverageValue, averageValue: 1Gi}}}`), metric(`{type: Resource, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}}`), "exactly the field of that name",
		},
		"target of a resource": {
			metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}`),
			metric(`{type: Resource, resource: {name: cpu, target: {type: Value, value: 80}}}`),
			"one of averageUtilization and averageValue",
		},
		"target of pods": {
			metric(`{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1500m}}}`),
			metric(`{type: Pods, pods: {metric: {name: a}, target: {type: Value, value: 1}}}`),
			"the target of pods must have averageValue",
		},
		"target of an object": {
			metric(`{type: Object, object: {describedObject: {kind: Service, name: a}, metric: {name: a}, target: {type: Value, value: "1"}}}`), metric(`{type: External, external: {metric: {name: a}, target: {type: Value}}}`), "one of value and averageValue",
		},
		"amount of a target": {
			"", metric(`{type: External, external: {metric: {name: a}, target: {type: Value, value: 0}}}`),
			"its amount above 0",
		},
		"percentage of a target": {
			"", metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}}`),
			"its amount above 0",
		},
		"name of a container": {
			"",
			metric(`{type: ContainerResource, containerResource: {name: cpu, container: "", target: {type: Utilization, averageUtilization: 80}}}`), "the latter a container",
		},
		"name of a metric": {
			metric(`{type: External, external: {metric: {name: "queue:length"}, target: {type: Value, value: 1}}}`),
			metric(`{type: External, external: {metric: {name: "../../../../api/v1/secrets"}, target: {type: Value, value: 1}}}`), "names of metrics",
		},
		"name of an object": {
			"",
			metric(`{type: Object, object: {describedObject: {kind: Service, name: ".."}, metric: {name: a}, target: {type: Value, value: 1}}}`), "names of metrics and of described objects",
		},
		"windows": {
			behavior(`scaleUp: {stabilizationWindowSeconds: 3600}`),
			behavior(`scaleDown: {stabilizationWindowSeconds: 3601}`), "between 0 and 3600",
		},
		"choice of a policy": {
			behavior(`scaleUp: {selectPolicy: Disabled}`), behavior(`scaleDown: {selectPolicy: Any}`),
			"selectPolicy must be",
		},
		"tolerance": {
			behavior(`scaleUp: {tolerance: 0}, scaleDown: {tolerance: "0.05"}`),
			behavior(`scaleDown: {tolerance: "-0.1"}`), "tolerance must not be below 0",
		},
		"policies of scaling": {
			behavior(`scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1800}]}`),
			behavior(`scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 60}]}`), "policies have type",
		},
		"limits by the clock": {
			clock(limits, `targetMinReplicas: 2, targetMaxReplicas: 2`),
			clock(limits, `targetMinReplicas: 3, targetMaxReplicas: 2`), "must not be more than targetMaxReplicas",
		},
		"one limit by the clock": {
			clock(limits, `targetMaxReplicas: 2`), clock(limits, `targetReplicas: 2`),
			"need targetMinReplicas, targetMaxReplicas or both",
		},
		"limits of a Deployment": {
			"", clock(`apiVersion: apps/v1, kind: Deployment`, `targetReplicas: 1, targetMinReplicas: 1`),
			"targetMinReplicas and targetMaxReplicas are limits of a FederatedHPA",
		},
		"replicas of limits": {
			"", clock(limits, `targetReplicas: 2, targetMaxReplicas: 2`), "leave it out for a FederatedHPA",
		},
		"limits of something else": {
			clock(`apiVersion: apps/v1, kind: Deployment`, `targetReplicas: 0`),
			clock(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA`, `targetMinReplicas: 3`),
			"only a FederatedHPA can be scaled",
		},
		"kinds of a webhook": {
			"", webhook(`name: a.example.com, ` + url +
				`, rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], kinds: []}]`),
			"rules need apiGroups",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.bad != "" {
				if err := w.tried(t, namespace, tc.bad); !apierrors.IsInvalid(err) ||
					!strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want it refused because of %q", err, tc.want)
				}
			}
			if tc.good != "" {
				if err := w.tried(t, namespace, tc.good); err != nil {
					t.Error(err)
				}
			}
		})
	}
	long := strings.ReplaceAll(cluster(`provider: a`), "kind: Cluster",
		`kind: Cluster, metadata: {name: `+strings.Repeat("a", 53)+`}`)
	if err := w.tried(t, namespace, long); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("a name of 53 characters: got %v", err)
	}
}

// What schemas refuse is told with the field and in words, not with a regular expression or without a field.
func TestErrorsOfSchemasAreReadable(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	const (
		wave   = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], rollout: {waves: [%s]}}}`
		cron   = `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, rules: [{name: a, targetReplicas: 1, schedule: %q}]}}`
		quota  = `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {name: %s}, spec: {overall: {cpu: 1}}}`
		growth = `{apiVersion: fleet.trellis.garden/v1alpha1, kind: FleetGrowth, spec: {machines: [{type: a, capacity: {cpu: 1, memory: 1Gi}}], limits: {machines: 1}, shoots: {maximum: 1, namePrefix: %s, template: {spec: {}}}}}`
		limits = `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, spec: {overall: {cpu: %s}, staticAssignments: [{clusterName: a, hard: {cpu: %s}}]}}`
		costs  = `{apiVersion: fleet.trellis.garden/v1alpha1, kind: FleetGrowth, spec: {machines: [{type: a, capacity: {cpu: 1, memory: %s}, costPerHour: %s}], limits: {machines: 1, costPerHour: %s}}}`
		metric = `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: %s}}}]}}`
		grades = `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, spec: {syncMode: Push, resourceModels: [{grade: 0, ranges: [{name: cpu, min: %s, max: "9223372036854775807"}]}]}}`
	)
	for name, tc := range map[string]struct{ good, bad, want string }{
		"name of a wave": {
			fmt.Sprintf(wave, `{name: a-1}`), fmt.Sprintf(wave, `{name: a}, {name: A}`),
			`spec.rollout.waves[1].name: Invalid value: "A": must consist of small letters`,
		},
		"share of a wave": {
			fmt.Sprintf(wave, `{name: a, maxClusters: 25%}`), fmt.Sprintf(wave, `{name: a, maxClusters: 101%}`),
			`spec.rollout.waves[0].maxClusters: Invalid value: "101%": must be a number from 1`,
		},
		"number of a wave": {
			fmt.Sprintf(wave, `{name: a, maxClusters: 1}`), fmt.Sprintf(wave, `{name: a, maxClusters: 0}`),
			`spec.rollout.waves[0].maxClusters: Invalid value: 0: must be a number from 1`,
		},
		"schedule": {
			fmt.Sprintf(cron, "  */5 8-18 * *\t1 "), fmt.Sprintf(cron, "0 8 * *"),
			`spec.rules[0].schedule: Invalid value: "0 8 * *": must have five fields`,
		},
		"named schedule": {
			fmt.Sprintf(cron, "@daily"), fmt.Sprintf(cron, "@never"),
			`spec.rules[0].schedule: Invalid value: "@never": must have five fields`,
		},
		"time zone": {
			strings.Replace(fmt.Sprintf(cron, "@daily"), "name: a, targetReplicas",
				"name: a, timeZone: Europe/Berlin, targetReplicas", 1),
			strings.Replace(fmt.Sprintf(cron, "@daily"), "name: a, targetReplicas",
				"name: a, timeZone: Mars/X, targetReplicas", 1), "must be a time zone such as Europe/Berlin",
		},
		"name of a quota": {
			fmt.Sprintf(quota, strings.Repeat("a", 63)), fmt.Sprintf(quota, strings.Repeat("a", 64)),
			`metadata: Invalid value: name must not be longer than 63 characters`,
		},
		"prefix of a growth": {
			fmt.Sprintf(growth, "a-1"), fmt.Sprintf(growth, "a-"),
			`spec.shoots.namePrefix: Invalid value: "a-": must consist of small letters`,
		},
		"limit of a quota": {
			fmt.Sprintf(limits, `"2"`, `500m`), fmt.Sprintf(limits, `abc`, `1`),
			`spec.overall[cpu]: Invalid value: "abc": must be a quantity`,
		},
		"limit of a cluster": {
			fmt.Sprintf(limits, `2`, `0`), fmt.Sprintf(limits, `2`, `1.5gi`),
			`spec.staticAssignments[0].hard[cpu]: Invalid value: "1.5gi": must be a quantity`,
		},
		"capacity of a machine": {
			fmt.Sprintf(costs, `1.5Gi`, `100m`, `1`), fmt.Sprintf(costs, `lots`, `100m`, `1`),
			`spec.machines[0].capacity[memory]: Invalid value: "lots": must be a quantity`,
		},
		"cost of a machine": {
			fmt.Sprintf(costs, `1e9`, `1`, `0`), fmt.Sprintf(costs, `1Gi`, `cheap`, `1`),
			`spec.machines[0].costPerHour: Invalid value: "cheap": must be a quantity`,
		},
		"limit of costs": {
			fmt.Sprintf(costs, `1024`, `"0.5"`, `"10.25"`), fmt.Sprintf(costs, `1Gi`, `1`, `10€`),
			`spec.limits.costPerHour: Invalid value: "10€": must be a quantity`,
		},
		"target of a metric": {
			fmt.Sprintf(metric, `100Mi`), fmt.Sprintf(metric, `100MB`),
			`spec.metrics[0].resource.target.averageValue: Invalid value: "100MB": must be a quantity`,
		},
		"grade of nodes": {
			fmt.Sprintf(grades, `0`), fmt.Sprintf(grades, `none`),
			`spec.resourceModels[0].ranges[0].min: Invalid value: "none": must be a quantity`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.tried(t, namespace, tc.bad)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), "<nil>") || strings.Contains(err.Error(), "should match") {
				t.Errorf("got %v, want it refused with %s", err, tc.want)
			}
			if err := w.tried(t, namespace, tc.good); err != nil {
				t.Error(err)
			}
		})
	}
}

// tried creates an object for no more than an answer.
func (w *world) tried(t *testing.T, namespace, text string) error {
	t.Helper()
	object := parse(t, text)[0]
	if object.GetName() == "" {
		object.SetName("tried")
	}
	object.SetNamespace(namespace)
	namespaced, err := w.fleet.IsObjectNamespaced(object)
	if err != nil {
		t.Fatal(err)
	}
	if !namespaced {
		object.SetNamespace("")
	}
	return client.WithFieldValidation(w.fleet, "Strict").Create(ctx, object, client.DryRunAll)
}

func TestDeletionProtection(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	protected :=
		parse(t,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, labels: {resourcetemplate.karmada.io/deletion-protected: Always}}}`)[0]
	apply(t, w.fleet, namespace, protected)
	protected.SetNamespace(namespace)
	if err := w.fleet.Delete(ctx, protected, client.DryRunAll); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "resourcetemplate.karmada.io/deletion-protected") {
		t.Errorf("its deletion: got %v", err)
	}
	if err := w.fleet.DeleteAllOf(ctx, parse(t, `{apiVersion: v1, kind: ConfigMap}`)[0],
		client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of all: got %v", err)
	}
	if _, err := get(w.fleet, "v1", "ConfigMap", namespace, "kept"); err != nil {
		t.Fatal(err)
	}
	protected.SetLabels(map[string]string{"resourcetemplate.karmada.io/deletion-protected": "Never"})
	apply(t, w.fleet, namespace, protected)
	remove(t, w.fleet, protected)
}

// What is installed a second time stays as it is.
func TestAdmissionIsInstalledOnce(t *testing.T) {
	w := newWorld(t)
	versions := func() map[string]string {
		result := map[string]string{}
		for name := range admission.Policies() {
			for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
				object, err := get(w.fleet, "admissionregistration.k8s.io/v1", kind, "", name)
				if err != nil {
					t.Fatal(err)
				}
				result[kind+name] = fmt.Sprint(object.GetGeneration())
			}
		}
		return result
	}
	before := versions()
	if err := admission.Install(ctx, w.fleet); err != nil {
		t.Fatal(err)
	}
	if after := versions(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("before %v, after %v", before, after)
	}
}
