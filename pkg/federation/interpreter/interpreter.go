// Package interpreter knows what the objects of a fleet mean: how many replicas they want, how their status is
// collected from the members and added up, when they are healthy, and what must not be sent to a member. It knows the
// workloads and services of Kubernetes itself; other kinds are treated alike. All functions are pure.
package interpreter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Health of an object in a member.
type Health string

// Values of Health.
const (
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
	Unknown   Health = "Unknown"
)

// kind is what is known of one kind of object.
type kind struct {
	// replicas is the field with the number of replicas; none if the object has no such number.
	replicas []string
	// pods is the field with the pod template, or that of the pod itself.
	pods []string
	// sums are the fields of the status that are added up over the members.
	sums []string
	// healthy judges an object whose status is up to date.
	healthy func(spec, status fields) bool
	// aggregate adds what sums alone don't say.
	aggregate func(template *unstructured.Unstructured, items []Item, status map[string]any)
	// prune removes what belongs to the API server that the object comes from.
	prune func(object *unstructured.Unstructured)
}

var kinds = map[schema.GroupKind]kind{
	{Group: "apps", Kind: "Deployment"}: {
		replicas: []string{"spec", "replicas"},
		pods:     []string{"spec", "template"},
		sums:     []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"},
		healthy: func(spec, status fields) bool {
			wanted := spec.numberOr("replicas", 1)
			return status.number("updatedReplicas") == wanted && status.number("availableReplicas") == wanted
		},
	},
	{Group: "apps", Kind: "StatefulSet"}: {
		replicas: []string{"spec", "replicas"},
		pods:     []string{"spec", "template"},
		sums:     []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"},
		healthy: func(spec, status fields) bool {
			wanted := spec.numberOr("replicas", 1)
			return status.number("updatedReplicas") == wanted && status.number("availableReplicas") == wanted
		},
	},
	{Group: "apps", Kind: "ReplicaSet"}: {
		replicas: []string{"spec", "replicas"},
		pods:     []string{"spec", "template"},
		sums:     []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
		healthy: func(spec, status fields) bool {
			return status.number("availableReplicas") == spec.numberOr("replicas", 1)
		},
	},
	{Group: "apps", Kind: "DaemonSet"}: {
		sums: []string{
			"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady",
			"updatedNumberScheduled", "numberUnavailable",
		},
		healthy: func(_, status fields) bool {
			wanted := status.number("desiredNumberScheduled")
			return status.number("updatedNumberScheduled") == wanted && status.number("numberAvailable") == wanted
		},
	},
	{Group: "batch", Kind: "Job"}: {
		replicas:  []string{"spec", "parallelism"},
		pods:      []string{"spec", "template"},
		sums:      []string{"active", "succeeded", "failed"},
		healthy:   func(_, status fields) bool { return !status.condition("Failed") },
		aggregate: aggregateJob,
		prune:     pruneJob,
	},
	{Kind: "Pod"}: {
		pods:      []string{},
		healthy:   podHealthy,
		aggregate: aggregatePod,
		prune:     prunePod,
	},
	{Kind: "Service"}: {
		healthy:   loadBalancerHealthy,
		aggregate: aggregateLoadBalancer,
		prune:     pruneService,
	},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {
		aggregate: aggregateLoadBalancer,
	},
	{Kind: "PersistentVolumeClaim"}: {
		healthy: func(_, status fields) bool { return status["phase"] == "Bound" },
		prune: func(object *unstructured.Unstructured) {
			dropAnnotations(object, "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
		},
	},
	{Kind: "ServiceAccount"}: {
		prune: func(object *unstructured.Unstructured) { delete(object.Object, "secrets") },
	},
	{Kind: "Namespace"}: {
		prune: func(object *unstructured.Unstructured) {
			unstructured.RemoveNestedField(object.Object, "spec", "finalizers")
		},
	},
}

func kindOf(object *unstructured.Unstructured) kind {
	return kinds[object.GroupVersionKind().GroupKind()]
}

// fields is a decoded part of an object.
type fields map[string]any

func section(object *unstructured.Unstructured, name string) fields {
	part, _ := object.Object[name].(map[string]any)
	return part
}

// number reads an integer, however it was decoded; 0 if it is absent.
func (f fields) number(name string) int64 { return f.numberOr(name, 0) }

func (f fields) numberOr(name string, absent int64) int64 {
	switch n := f[name].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return absent
}

// condition tells whether a condition of that type is True.
func (f fields) condition(conditionType string) bool {
	list, _ := f["conditions"].([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["type"] == conditionType && c["status"] == "True" {
			return true
		}
	}
	return false
}

// Interpret tells the health of an object in a member. Kinds of which nothing is known are Unknown.
func Interpret(object *unstructured.Unstructured) Health {
	k := kindOf(object)
	if k.healthy == nil {
		return Unknown
	}
	status := section(object, "status")
	if observed, reported := status["observedGeneration"]; reported && observed != object.GetGeneration() {
		return Unhealthy
	}
	if !k.healthy(section(object, "spec"), status) {
		return Unhealthy
	}
	return Healthy
}

func podHealthy(_, status fields) bool {
	return status["phase"] == "Succeeded" || status["phase"] == "Running" && status.condition("Ready")
}

// loadBalancerHealthy: only Services that wait for a load balancer can be unhealthy.
func loadBalancerHealthy(spec, status fields) bool {
	return spec["type"] != "LoadBalancer" || len(ingressOf(status)) > 0
}

func ingressOf(status fields) []any {
	balancer, _ := status["loadBalancer"].(map[string]any)
	list, _ := balancer["ingress"].([]any)
	return list
}
