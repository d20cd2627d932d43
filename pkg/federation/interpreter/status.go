package interpreter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Fields that are added to a collected status, so that it can be told which generation it speaks of.
const (
	fieldGeneration         = "generation"
	fieldObservedGeneration = "observedGeneration"
	fieldTemplateGeneration = "resourceTemplateGeneration"
)

// Item is the status of an object in one member.
type Item struct {
	Cluster string
	Status  map[string]any
}

// decodeItems leaves out members that have no status to tell.
func decodeItems(items []workv1alpha2.AggregatedStatusItem) ([]Item, error) {
	var result []Item
	for _, item := range items {
		if item.Status == nil {
			continue
		}
		decoded := Item{Cluster: item.ClusterName}
		if err := json.Unmarshal(item.Status.Raw, &decoded.Status); err != nil {
			return nil, fmt.Errorf("status from cluster %s: %w", item.ClusterName, err)
		}
		result = append(result, decoded)
	}
	return result, nil
}

// reflectStatus collects what is worth knowing of an object's status in a member. templateGeneration is the generation
// of the template that the member has. Nil if the object has no status.
func reflectStatus(object *unstructured.Unstructured, templateGeneration int64) map[string]any {
	status := section(object, "status")
	if len(status) == 0 {
		return nil
	}
	k := kindOf(object)
	if k.status.whole || k.sums == nil && k.status.isZero() {
		return status
	}
	result := map[string]any{
		fieldGeneration:         object.GetGeneration(),
		fieldTemplateGeneration: templateGeneration,
	}
	for _, name := range slices.Concat([]string{fieldObservedGeneration}, k.sums, k.status.names()) {
		if value, found := status[name]; found {
			result[name] = value
		}
	}
	if k.aggregate != nil {
		copyFields(result, status, "startTime", "completionTime", "conditions")
	}
	return result
}

func copyFields(to, from map[string]any, names ...string) {
	for _, name := range names {
		if value, found := from[name]; found {
			to[name] = value
		}
	}
}

// aggregate adds up the statuses of all members into that of the template. wanted is the number of members that have
// the object. It gives false if nothing is known about the kind's status.
func aggregate(template *unstructured.Unstructured, items []Item, wanted int) (map[string]any, bool) {
	k := kindOf(template)
	if k.sums == nil && k.aggregate == nil && k.status.isZero() {
		return nil, false
	}
	if k.status.whole && len(items) == 1 {
		return wholeStatus(items[0].Status), true
	}
	status := maps.Clone(map[string]any(section(template, "status")))
	if status == nil {
		status = map[string]any{}
	}
	for _, name := range k.sums {
		setSum(status, name, items)
	}
	k.status.apply(items, status)
	if observes(k, items) && wanted == len(items) && allObserved(template.GetGeneration(), items) {
		status[fieldObservedGeneration] = template.GetGeneration()
	}
	if k.aggregate != nil {
		k.aggregate(template, items, status)
	}
	return status, true
}

// observes tells whether the status of a kind says which generation it speaks of.
func observes(k kind, items []Item) bool {
	return k.aggregate == nil && !k.status.whole && (k.sums != nil || k.status.conditions && len(items) > 0)
}

// wholeStatus takes the status of the only member, without what was added to it.
func wholeStatus(status map[string]any) map[string]any {
	status = maps.Clone(status)
	delete(status, fieldGeneration)
	delete(status, fieldTemplateGeneration)
	return status
}

// requiredSums must be present in a DaemonSet's status even when they are 0.
var requiredSums = []string{
	"currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady", "replicas",
}

// setSum adds up what members count. Nothing is counted below zero: a member that says so takes away what others have.
func setSum(status map[string]any, name string, items []Item) {
	var sum int64
	for _, item := range items {
		sum += max(0, fields(item.Status).number(name))
	}
	if sum == 0 && !slices.Contains(requiredSums, name) {
		delete(status, name)
		return
	}
	status[name] = sum
}

// allObserved: the template counts as observed once every member's controller has observed its copy of it.
func allObserved(generation int64, items []Item) bool {
	return !slices.ContainsFunc(items, func(item Item) bool {
		status := fields(item.Status)
		if _, reported := status[fieldObservedGeneration]; !reported {
			return true
		}
		return status.number(fieldTemplateGeneration) != generation ||
			status.number(fieldGeneration) != status.number(fieldObservedGeneration)
	})
}

// aggregateLoadBalancer lists the addresses of all members. Without a host name, that of the member is given.
func aggregateLoadBalancer(_ *unstructured.Unstructured, items []Item, status map[string]any) {
	var all []any
	for _, item := range items {
		for _, entry := range ingressOf(item.Status) {
			if ingress, ok := entry.(map[string]any); ok {
				ingress = maps.Clone(ingress)
				if ingress["hostname"] == nil {
					ingress["hostname"] = item.Cluster
				}
				all = append(all, ingress)
			}
		}
	}
	balancer := map[string]any{}
	if len(all) > 0 {
		balancer["ingress"] = all
	}
	status["loadBalancer"] = balancer
}

// podPhases from the one that says most about trouble to the one that says least.
var podPhases = []string{"Failed", "Unknown", "Pending", "Running", "Succeeded"}

// aggregatePod takes the most troubled phase and lists the containers of all members.
func aggregatePod(_ *unstructured.Unstructured, items []Item, status map[string]any) {
	worst := len(podPhases)
	var containers []any
	for _, item := range items {
		phase, _ := item.Status["phase"].(string)
		if i := slices.Index(podPhases, phase); i >= 0 {
			worst = min(worst, i)
		}
		list, _ := item.Status["containerStatuses"].([]any)
		containers = append(containers, list...)
	}
	if worst < len(podPhases) {
		status["phase"] = podPhases[worst]
	}
	delete(status, "containerStatuses")
	if len(containers) > 0 {
		status["containerStatuses"] = containers
	}
}

// aggregateJob: a Job is complete when it is in every member, and failed when it is in any and no pod is left.
func aggregateJob(_ *unstructured.Unstructured, items []Item, status map[string]any) {
	if _, started := status["startTime"]; !started {
		if first := earliest(items, "startTime"); first != "" {
			status["startTime"] = first
		}
	}
	if len(items) == 0 || fields(status).condition("Complete") || fields(status).condition("Failed") {
		return
	}
	var complete int
	var failed []string
	for _, item := range items {
		switch {
		case fields(item.Status).condition("Complete"):
			complete++
		case fields(item.Status).condition("Failed"):
			failed = append(failed, item.Cluster)
		}
	}
	switch {
	case complete == len(items):
		last := latest(items, "completionTime")
		status["completionTime"] = last
		status["conditions"] = []any{jobCondition("SuccessCriteriaMet", last, ""), jobCondition("Complete", last, "")}
	case len(failed) > 0 && fields(status).number("active") == 0:
		message := fmt.Sprintf("Job failed in %v", failed)
		at := latestTransition(items)
		status["conditions"] = []any{jobCondition("FailureTarget", at, message), jobCondition("Failed", at, message)}
	}
}

func jobCondition(conditionType, at, message string) map[string]any {
	return map[string]any{
		"type": conditionType, "status": "True", "reason": "AggregatedFromMembers", "message": message,
		"lastProbeTime": at, "lastTransitionTime": at,
	}
}

// earliest compares times as text: they are all in UTC and of the same form.
func earliest(items []Item, name string) string {
	var first string
	for _, item := range items {
		if at, _ := item.Status[name].(string); at != "" && (first == "" || at < first) {
			first = at
		}
	}
	return first
}

func latest(items []Item, name string) string {
	var last string
	for _, item := range items {
		if at, _ := item.Status[name].(string); at > last {
			last = at
		}
	}
	return last
}

func latestTransition(items []Item) string {
	var last string
	for _, item := range items {
		list, _ := item.Status["conditions"].([]any)
		for _, entry := range list {
			c, _ := entry.(map[string]any)
			if at, _ := c["lastTransitionTime"].(string); at > last {
				last = at
			}
		}
	}
	return last
}
