package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

const (
	cpu    = string(corev1.ResourceCPU)
	memory = string(corev1.ResourceMemory)
	pods   = string(corev1.ResourcePods)
)

// amounts are quantities by resource: CPU in millicores, everything else in its base unit. None is negative.
type amounts map[string]int64

// mostOf is the most that one node may claim of a resource: 16,777 cores, 65,536 pods, and 2^48 of all others (256 TiB
// of memory). Sums over as many nodes as an Account takes don't overflow.
func mostOf(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return 1 << 24
	case corev1.ResourcePods:
		return 1 << 16
	}
	return 1 << 48
}

// maxResources bounds the number of different resources of one node or pod; a whole cluster has twice as many. maxName
// bounds their names.
const (
	maxResources = 64
	maxName      = 317 // That of a label's key.
)

// claimed reads what a node says it has; an error tells what cannot be.
func claimed(list corev1.ResourceList) (amounts, error) {
	if len(list) > maxResources {
		return nil, fmt.Errorf("claims %d different resources, more than %d", len(list), maxResources)
	}
	result := make(amounts, len(list))
	for name, quantity := range list {
		if len(name) > maxName {
			return nil, fmt.Errorf("claims a resource whose name has %d bytes, more than %d", len(name), maxName)
		}
		value := valueOf(name, quantity)
		if quantity.Sign() < 0 || value > mostOf(name) {
			return nil, fmt.Errorf("claims %s of %s", shorten(quantity.String()), shorten(string(name)))
		}
		result[string(name)] = value
	}
	return result, nil
}

// requested reads what a pod asks for. What is more than any node has counts as the most that one may have: it fits
// nowhere either.
func requested(list corev1.ResourceList) amounts {
	result := make(amounts, min(len(list), maxResources))
	for name, quantity := range list {
		if value := valueOf(name, quantity); value > 0 && len(result) < maxResources && len(name) <= maxName {
			result[string(name)] = min(value, mostOf(name)+1)
		}
	}
	return result
}

// valueOf gives more than mostOf for quantities that a number cannot hold.
func valueOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if quantity.Cmp(*resource.NewQuantity(mostOf(name), resource.DecimalSI)) > 0 {
		return math.MaxInt64
	}
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

func (a amounts) add(more amounts) {
	for name, value := range more {
		if a[name] > math.MaxInt64-value {
			a[name] = math.MaxInt64
			continue
		}
		a[name] += value
	}
}

// without gives what is left, which is never less than nothing.
func (a amounts) without(used ...amounts) amounts {
	left := make(amounts, len(a))
	for name, value := range a {
		for _, u := range used {
			value -= min(value, u[name])
		}
		left[name] = value
	}
	return left
}

// first leaves out resources of which a cluster has too many: Kubernetes' own, which have no domain, stay, and then the
// alphabet counts.
func (a amounts) first(most int) amounts {
	if len(a) <= most {
		return a
	}
	names := slices.SortedFunc(maps.Keys(a), func(one, other string) int {
		return cmp.Or(cmp.Compare(strings.Count(one, "/"), strings.Count(other, "/")), cmp.Compare(one, other))
	})
	result := make(amounts, most)
	for _, name := range names[:most] {
		result[name] = a[name]
	}
	return result
}

// key is the same for equal amounts.
func (a amounts) key() string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(a[name], 10))
		b.WriteByte(';')
	}
	return b.String()
}

// list gives the amounts as the API writes them.
func (a amounts) list() corev1.ResourceList {
	result := make(corev1.ResourceList, len(a))
	for name, value := range a {
		switch {
		case name == cpu:
			result[corev1.ResourceCPU] = *resource.NewMilliQuantity(value, resource.DecimalSI)
		case name == memory || name == string(corev1.ResourceEphemeralStorage) ||
			strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
			result[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.BinarySI)
		default:
			result[corev1.ResourceName(name)] = *resource.NewQuantity(value, resource.DecimalSI)
		}
	}
	return result
}

// podRequest is what a pod takes of its node, one of the places for pods included.
func podRequest(spec *corev1.PodSpec) amounts {
	request := requested(core.PodRequest(spec))
	request[pods] = 1
	return request
}

// shorten bounds what members can have written into messages.
func shorten(text string) string {
	const most = 64
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
