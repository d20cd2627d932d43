package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// A binding is stored as a whole, in at most 1.5 MiB. What members have written there is bounded for each, and for all
// of them.
const (
	maxStatus, maxStatuses = 64 << 10, 512 << 10
	maxMessage, maxTold    = 4 << 10, 128 << 10
)

// boundStatuses cuts what is too large. Members that say little keep what they say, however much others say.
func boundStatuses(items []workv1alpha2.AggregatedStatusItem) {
	statuses, messages := make([]int, len(items)), make([]int, len(items))
	for i, item := range items {
		if item.Status != nil {
			statuses[i] = min(len(item.Status.Raw), maxStatus)
		}
		messages[i] = min(len(item.AppliedMessage), maxMessage)
	}
	status, message := min(maxStatus, fairShare(statuses, maxStatuses)), min(maxMessage, fairShare(messages, maxTold))
	for i := range items {
		item := &items[i]
		told := cut(item.AppliedMessage, message)
		var problem string
		if item.Status, problem = boundStatus(item.Status, status); problem != "" {
			told = cut(problem, message)
		}
		item.AppliedMessage = told
	}
}

// fairShare is the largest amount that each may have at most so that all fit into total.
func fairShare(wanted []int, total int) int {
	wanted = slices.Sorted(slices.Values(wanted))
	for i, one := range wanted {
		share := total / (len(wanted) - i)
		if one > share {
			return share
		}
		total -= one
	}
	return math.MaxInt
}

// boundStatus leaves out the largest fields of a status until it takes no more than most bytes, and says which. It
// changes nothing in the status that it is given.
func boundStatus(status *runtime.RawExtension, most int) (bounded *runtime.RawExtension, problem string) {
	if status == nil || len(status.Raw) <= most {
		return status, ""
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(status.Raw, &fields); err != nil {
		return nil, fmt.Sprintf("the status has %d bytes, of which %d may be shown, and is no object", len(status.Raw),
			most)
	}
	names := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		if more := len(b) + len(fields[b]) - len(a) - len(fields[a]); more != 0 {
			return more
		}
		return strings.Compare(a, b)
	})
	size, left := len(status.Raw), 0
	for ; left < len(names) && size > most; left++ {
		size -= len(names[left]) + len(fields[names[left]])
		delete(fields, names[left])
	}
	problem =
		fmt.Sprintf("the status has %d bytes, of which %d may be shown; left out are %d fields, the largest being %q",
			len(status.Raw), most, left, cut(names[0], 64))
	raw, err := json.Marshal(fields)
	if err != nil || len(raw) > most {
		return nil, problem
	}
	return &runtime.RawExtension{Raw: raw}, problem
}

// cut shortens a text to that many bytes, in which an ellipsis takes three.
func cut(text string, most int) string {
	const ellipsis = "…"
	switch {
	case len(text) <= most:
		return text
	case most < len(ellipsis):
		return ""
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
