package capacity

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// manyValues: labels with more values than this over the nodes tell single nodes apart and are left out.
const manyValues = 16

// significant are the numbers of leading bits of free amounts that are kept, one after another until there are few
// enough classes.
var significant = []int{64, 8, 5, 3, 2, 1}

// class is a NodeClass that is being made.
type class struct {
	clusterv1alpha1.NodeClass
	key  string
	free amounts
}

// classes merges nodes that are equal. Where that gives more than MaxNodeClasses, it rounds what is free down, then
// leaves labels out, those with most values first, and at last the smallest classes.
func classes(nodes []room) []clusterv1alpha1.NodeClass {
	values := labelValues(nodes)
	hidden := map[string]bool{}
	for key, count := range values {
		hidden[key] = count > manyValues
	}
	var groups []class
	for _, kept := range significant {
		if groups = group(nodes, hidden, kept); len(groups) <= clusterv1alpha1.MaxNodeClasses {
			return result(groups)
		}
	}
	byValues := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), strings.Compare(a, b))
	})
	for _, key := range byValues {
		if hidden[key] || values[key] == 1 {
			continue
		}
		hidden[key] = true
		if groups = group(nodes, hidden, 1); len(groups) <= clusterv1alpha1.MaxNodeClasses {
			break
		}
	}
	return result(groups)
}

// labelValues counts the different values of each label, nodes without it being one.
func labelValues(nodes []room) map[string]int {
	seen := map[string]map[string]int{}
	for _, n := range nodes {
		for key, value := range n.labels {
			if seen[key] == nil {
				seen[key] = map[string]int{}
			}
			seen[key][value]++
		}
	}
	counts := make(map[string]int, len(seen))
	for key, values := range seen {
		counts[key] = len(values)
		with := 0
		for _, n := range values {
			with += n
		}
		if with < len(nodes) {
			counts[key]++
		}
	}
	return counts
}

func group(nodes []room, hidden map[string]bool, kept int) []class {
	byKey := map[string]int{}
	var groups []class
	for _, n := range nodes {
		free := rounded(n.free, kept)
		key := free.key() + "|" + labelsKey(n.labels, hidden) + "|" + taintsKey(n.taints)
		i, found := byKey[key]
		if !found {
			i = len(groups)
			byKey[key] = i
			groups = append(groups, class{key: key, free: free, NodeClass: clusterv1alpha1.NodeClass{
				Free: free.list(), Labels: visible(n.labels, hidden), Taints: n.taints,
			}})
		}
		groups[i].Count++
	}
	return groups
}

// rounded keeps that many leading bits, so that the result is never more.
func rounded(free amounts, kept int) amounts {
	if kept >= 64 {
		return free
	}
	result := make(amounts, len(free))
	for name, value := range free {
		if drop := bits.Len64(uint64(value)) - kept; drop > 0 {
			value = value >> drop << drop
		}
		result[name] = value
	}
	return result
}

func visible(labels map[string]string, hidden map[string]bool) map[string]string {
	result := maps.Clone(labels)
	maps.DeleteFunc(result, func(key, _ string) bool { return hidden[key] })
	if len(result) == 0 {
		return nil
	}
	return result
}

func labelsKey(labels map[string]string, hidden map[string]bool) string {
	keys := make([]string, 0, len(labels))
	for key := range labels {
		if !hidden[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(labels[key])
		b.WriteByte(';')
	}
	return b.String()
}

func taintsKey(taints []corev1.Taint) string {
	keys := make([]string, len(taints))
	for i, t := range taints {
		keys[i] = t.Key + "=" + t.Value + ":" + string(t.Effect)
	}
	slices.Sort(keys)
	return strings.Join(keys, ";")
}

// result puts the classes with most CPU first, and leaves out what is too much, or too large.
func result(groups []class) []clusterv1alpha1.NodeClass {
	slices.SortFunc(groups, func(a, b class) int {
		return cmp.Or(
			cmp.Compare(b.free[cpu]*int64(b.Count), a.free[cpu]*int64(a.Count)),
			cmp.Compare(b.free[memory], a.free[memory]),
			strings.Compare(a.key, b.key),
		)
	})
	var list []clusterv1alpha1.NodeClass
	left := maxClasses
	for _, g := range groups[:min(len(groups), clusterv1alpha1.MaxNodeClasses)] {
		if size := sizeOf(&g.NodeClass); size <= min(left, maxClass) {
			left -= size
			list = append(list, g.NodeClass)
		}
	}
	return list
}

// maxClasses bounds the bytes of all classes, and maxClass those of one: they are stored with the rest of the Cluster.
const (
	maxClasses = 256 << 10
	maxClass   = 32 << 10
)

func sizeOf(c *clusterv1alpha1.NodeClass) int {
	const punctuation = 48 // What JSON adds to the names and values of an entry.
	size := punctuation
	for key, value := range c.Labels {
		size += len(key) + len(value) + punctuation
	}
	for _, t := range c.Taints {
		size += len(t.Key) + len(t.Value) + len(t.Effect) + punctuation
	}
	for name := range c.Free {
		size += len(name) + punctuation
	}
	return size
}
