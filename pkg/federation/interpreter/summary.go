package interpreter

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// summary says how the statuses of all members become one. Fields are named directly under status.
type summary struct {
	// whole takes the status of a single member as it is.
	whole bool
	// conditions are merged: those of the same type, status and reason become one whose message tells of every member.
	conditions bool
	// last are taken from the last member that has them, in the order of names.
	last []string
	// earliest and latest are times.
	earliest, latest []string
	// lists are appended.
	lists []string
	// merged are maps whose entries are put together.
	merged []string
	// counts are maps, of any depth, whose numbers are added up.
	counts []string
	// quantities are added up.
	quantities []string
	// texts are put together, with the names of the members.
	texts []string
	// worst are states, from the one that says most about trouble to the one that says least.
	worst map[string][]string
	// all are true if they are in every member.
	all []string
	// reflected are collected from the members besides all of these.
	reflected []string
}

func (s *summary) isZero() bool { return reflect.ValueOf(*s).IsZero() }

// names are the fields that are collected from the members.
func (s *summary) names() []string {
	names := slices.Concat(s.last, s.earliest, s.latest, s.lists, s.merged, s.counts, s.quantities, s.texts, s.all,
		s.reflected, slices.Sorted(maps.Keys(s.worst)))
	if s.conditions {
		names = append(names, "conditions")
	}
	return names
}

// apply writes all fields into a status; those that no member has go.
func (s *summary) apply(items []Item, status map[string]any) {
	set := func(name string, value any, found bool) {
		if found {
			status[name] = value
		} else {
			delete(status, name)
		}
	}
	for _, name := range s.last {
		value, found := lastOf(items, name)
		set(name, value, found)
	}
	for _, name := range s.earliest {
		at := earliest(items, name)
		set(name, at, at != "")
	}
	for _, name := range s.latest {
		at := latest(items, name)
		set(name, at, at != "")
	}
	for _, name := range s.lists {
		all := appended(items, name)
		set(name, all, len(all) > 0)
	}
	for _, name := range s.merged {
		all := mergedMaps(items, name)
		set(name, all, len(all) > 0)
	}
	for _, name := range s.counts {
		all := countedMaps(items, name)
		set(name, all, len(all) > 0)
	}
	for _, name := range s.quantities {
		sum, found := quantitySum(items, name)
		set(name, sum, found)
	}
	for _, name := range s.texts {
		text := toldTexts(items, name)
		set(name, text, text != "")
	}
	for name, order := range s.worst {
		state := worstOf(items, name, order)
		set(name, state, state != "")
	}
	for _, name := range s.all {
		set(name, everywhere(items, name), len(items) > 0)
	}
	if s.conditions {
		conditions := mergeConditions(items)
		set("conditions", conditions, len(conditions) > 0)
	}
}

func lastOf(items []Item, name string) (any, bool) {
	for _, item := range slices.Backward(items) {
		if value, found := item.Status[name]; found && value != nil && value != "" {
			return value, true
		}
	}
	return nil, false
}

func appended(items []Item, name string) []any {
	var all []any
	for _, item := range items {
		all = append(all, entries(item.Status[name])...)
	}
	return all
}

func mergedMaps(items []Item, name string) map[string]any {
	all := map[string]any{}
	for _, item := range items {
		maps.Copy(all, fields(item.Status).part(name))
	}
	return all
}

func countedMaps(items []Item, name string) map[string]any {
	all := map[string]any{}
	for _, item := range items {
		addCounts(all, fields(item.Status).part(name), 8)
	}
	return all
}

// addCounts adds the numbers of nested maps; what is no number is taken over.
func addCounts(sum map[string]any, more fields, depth int) {
	for key, value := range more {
		switch v := value.(type) {
		case map[string]any:
			nested, ok := sum[key].(map[string]any)
			if !ok {
				nested = map[string]any{}
				sum[key] = nested
			}
			if depth > 0 {
				addCounts(nested, v, depth-1)
			}
		case int64, float64:
			sum[key] = fields(sum).number(key) + more.number(key)
		default:
			sum[key] = value
		}
	}
}

func quantitySum(items []Item, name string) (string, bool) {
	var sum resource.Quantity
	found := false
	for _, item := range items {
		if q, ok := amount(item.Status[name]); ok {
			sum.Add(q)
			found = true
		}
	}
	return sum.String(), found
}

func toldTexts(items []Item, name string) string {
	var texts []string
	for _, item := range items {
		if text := fields(item.Status).text(name); text != "" {
			texts = append(texts, item.Cluster+"="+text)
		}
	}
	return strings.Join(texts, ", ")
}

// worstOf gives the most troubled state of any member. States that are not known count as the least trouble.
func worstOf(items []Item, name string, order []string) string {
	worst, result := len(order)+1, ""
	for _, item := range items {
		state := fields(item.Status).text(name)
		rank := slices.Index(order, state)
		if rank < 0 {
			rank = len(order)
		}
		if state != "" && rank < worst {
			worst, result = rank, state
		}
	}
	return result
}

func everywhere(items []Item, name string) bool {
	return !slices.ContainsFunc(items, func(item Item) bool { return item.Status[name] != true })
}

// mergeConditions keeps the order in which conditions first appear, and of each kind the latest times.
func mergeConditions(items []Item) []any {
	var result []any
	byKey := map[string]map[string]any{}
	for _, item := range items {
		for _, condition := range fields(item.Status).list("conditions") {
			key := strings.Join([]string{condition.text("type"), condition.text("status"), condition.text("reason")},
				"\x00")
			message := item.Cluster + "=" + condition.text("message")
			same, found := byKey[key]
			if !found {
				same = maps.Clone(map[string]any(condition))
				same["message"] = message
				byKey[key] = same
				result = append(result, same)
				continue
			}
			same["message"] = fields(same).text("message") + ", " + message
			for _, time := range []string{"lastTransitionTime", "lastUpdateTime"} {
				if at := condition.text(time); at > fields(same).text(time) {
					same[time] = at
				}
			}
		}
	}
	return result
}

// aggregateTrainingJob: created in any member, running until all are done, failed in any, or succeeded in all.
func aggregateTrainingJob(template *unstructured.Unstructured, items []Item, status map[string]any) {
	kindName := template.GetKind()
	var created, running, succeeded int
	var failed []string
	for _, item := range items {
		s := fields(item.Status)
		created += oneIf(s.condition("Created"))
		running += oneIf(s.condition("Running"))
		switch {
		case s.condition("Failed"):
			failed = append(failed, item.Cluster)
		case s.condition("Succeeded"):
			succeeded++
		}
	}
	completed := latest(items, "completionTime")
	done := len(items) > 0 && succeeded == len(items)
	var conditions []any
	add := func(conditionType, at, message string) {
		conditions = append(conditions, map[string]any{
			"type": conditionType, "status": "True", "reason": kindName + conditionType, "message": message,
			"lastUpdateTime": at, "lastTransitionTime": at,
		})
	}
	if created > 0 {
		add("Created", earliest(items, "startTime"), kindName+" is created.")
	}
	switch {
	case len(failed) > 0:
		add("Failed", completed, kindName+" failed in member clusters: "+strings.Join(failed, ", "))
	case done:
		add("Succeeded", completed, kindName+" is successfully completed.")
	case running > 0:
		add("Running", latestTransition(items), kindName+" is running.")
	}
	delete(status, "completionTime")
	if done && completed != "" {
		status["completionTime"] = completed
	}
	delete(status, "conditions")
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
