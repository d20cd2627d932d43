package interpreter

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// kind is what is known of one kind of object.
type kind struct {
	// replicas is the field with the number of replicas; none if the object has no such number.
	replicas []string
	// single is an object that counts as one replica.
	single bool
	// pods is the field with the pod template; empty if the object itself is a pod, and nil if there is no pod.
	pods []string
	// podsOf finds the specification of the pods where no path leads to it.
	podsOf func(object *unstructured.Unstructured) fields
	// workload counts where replicas are in several places; revise writes them.
	workload func(object *unstructured.Unstructured) (*Workload, error)
	revise   func(object *unstructured.Unstructured, replicas int32) error
	// parts are the pod templates of an object that has several with replicas; partsAreOne counts them together.
	parts       func(object *unstructured.Unstructured) []part
	partsAreOne bool
	// components are the parts of an object that doesn't write them as pod templates.
	components func(object *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	// secrets and accounts are the paths, under spec, of names of Secrets and ServiceAccounts.
	secrets, accounts [][]string
	// retained are fields that the member decides about once it has them.
	retained [][]string
	// status says what is made of fields that are not added up.
	status summary
	// dependencies adds what the pod template does not say.
	dependencies func(object *unstructured.Unstructured, d *dependencies) error
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
		healthy:  rolledOut,
	},
	{Group: "apps", Kind: "StatefulSet"}: {
		replicas:     []string{"spec", "replicas"},
		pods:         []string{"spec", "template"},
		sums:         []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"},
		dependencies: ownClaims,
		healthy:      rolledOut,
	},
	{Group: "apps", Kind: "ReplicaSet"}: {
		replicas: []string{"spec", "replicas"},
		pods:     []string{"spec", "template"},
		sums:     []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
		healthy: func(spec, status fields) bool {
			return status.number("availableReplicas") >= spec.numberOr("replicas", 1)
		},
	},
	{Group: "apps", Kind: "DaemonSet"}: {
		pods: []string{"spec", "template"},
		sums: []string{
			"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady",
			"updatedNumberScheduled", "numberUnavailable",
		},
		healthy: scheduledEverywhere,
	},
	{Group: "batch", Kind: "CronJob"}: {
		pods:   []string{"spec", "jobTemplate", "spec", "template"},
		status: summary{lists: []string{"active"}, latest: []string{"lastScheduleTime", "lastSuccessfulTime"}},
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
		single:    true,
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
		healthy:   func(_, status fields) bool { return len(ingressOf(status)) > 0 },
		dependencies: func(object *unstructured.Unstructured, d *dependencies) error {
			for _, tls := range section(object, "spec").list("tls") {
				d.add("Secret", tls.text("secretName"))
			}
			return nil
		},
	},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {
		sums:   []string{"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"},
		status: summary{merged: []string{"disruptedPods"}, conditions: true},
		healthy: func(_, status fields) bool {
			return status.number("currentHealthy") >= status.number("desiredHealthy")
		},
	},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {
		sums:   []string{"currentReplicas", "desiredReplicas"},
		status: summary{latest: []string{"lastScaleTime"}},
	},
	{Kind: "PersistentVolumeClaim"}: {
		healthy: func(_, status fields) bool { return status["phase"] == "Bound" },
		status: summary{
			worst: map[string][]string{"phase": {"Lost", "Pending", "Bound"}},
			last:  []string{"accessModes", "capacity"}, conditions: true,
		},
		prune: func(object *unstructured.Unstructured) {
			dropAnnotations(object, "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
		},
	},
	{Kind: "PersistentVolume"}: {
		status: summary{
			worst: map[string][]string{"phase": {"Failed", "Pending", "Available", "Bound", "Released"}},
			texts: []string{"reason", "message"},
		},
	},
	{Group: "multicluster.x-k8s.io", Kind: "ServiceImport"}: {
		dependencies: func(object *unstructured.Unstructured, d *dependencies) error {
			derived := "derived-" + object.GetName()
			d.add("Service", derived)
			d.list = append(d.list, configv1alpha1.DependentObjectReference{
				APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: object.GetNamespace(),
				LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/service-name": derived},
				},
			})
			return nil
		},
	},
	{Kind: "Secret"}: {prune: pruneSecret},
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

func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

// part is a nested object; nil, which can be read like an empty one, if it is absent.
func (f fields) part(names ...string) fields {
	for _, name := range names {
		part, _ := f[name].(map[string]any)
		f = part
	}
	return f
}

// list has the objects of a list, without entries of another kind.
func (f fields) list(name string) []fields {
	entries, _ := f[name].([]any)
	var result []fields
	for _, entry := range entries {
		if object, ok := entry.(map[string]any); ok {
			result = append(result, object)
		}
	}
	return result
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

func healthOf(object *unstructured.Unstructured) Health {
	k := kindOf(object)
	if k.healthy == nil {
		return Unknown
	}
	status := section(object, "status")
	if _, reported := status["observedGeneration"]; reported &&
		status.number("observedGeneration") != object.GetGeneration() {
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
