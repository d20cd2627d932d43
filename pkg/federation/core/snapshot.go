package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is what a decision may look at of one member.
type Cluster struct {
	Name     string
	Labels   labels.Set
	Provider string
	Region   string
	Zones    []string
	Taints   []corev1.Taint
	// Deleting clusters get nothing new and lose what they have.
	Deleting bool
	// AwaitedUntil is for clusters that have just come, of which nothing is known yet: until then decisions may wait
	// for them. It is zero for all others, and nothing is known yet after it has passed either.
	AwaitedUntil time.Time
	// APIs are the kinds that the cluster serves. Clusters that serve the same may share the set, which is faster.
	APIs *APIs
	// Room is what is known of its free resources; nil if nothing is.
	Room *Room
}

// APIs is a set of kinds.
type APIs map[schema.GroupVersionKind]struct{}

// NewAPIs makes a set.
func NewAPIs(kinds ...schema.GroupVersionKind) *APIs {
	result := make(APIs, len(kinds))
	for _, kind := range kinds {
		result[kind] = struct{}{}
	}
	return &result
}

// serves tells whether the set has the kind; nil is the empty set.
func (a *APIs) serves(kind schema.GroupVersionKind) bool {
	if a == nil {
		return false
	}
	_, found := (*a)[kind]
	return found
}

// Room is what is free in a cluster.
type Room struct {
	// Free adds up over the nodes that pods can be scheduled to, less what pods ask for that have no node yet.
	Free Resources
	// Nodes are the same nodes one by one, if that is known: then a replica is only reckoned with where it fits in one
	// piece.
	Nodes []Node
	// Pending is what pods ask for that have no node yet. It is no part of what Nodes have lost.
	Pending Resources
}

// Node is one node, or several that are alike.
type Node struct {
	Count  int64
	Free   Resources
	Labels labels.Set
	Taints []corev1.Taint
}

// Promises are resources by cluster that earlier decisions have given away and that the clusters don't show as taken
// yet.
type Promises map[string]Resources

// Snapshot is a set of clusters in the order of their names.
type Snapshot struct {
	clusters []Cluster
	index    map[string]int
	promises Promises
	// idle is the part of the promises that explanations name.
	idle Promises
}

// NewSnapshot takes clusters in any order.
func NewSnapshot(clusters []Cluster) Snapshot {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	index := make(map[string]int, len(sorted))
	for i, c := range sorted {
		index[c.Name] = i
	}
	return Snapshot{clusters: sorted, index: index}
}

// WithPromises gives the same clusters with less room. The promises must not change while the result is in use.
func (s Snapshot) WithPromises(promises Promises) Snapshot {
	s.promises = promises
	return s
}

// WithIdle tells which part of the promises is for replicas that clusters were sent and that do not start. It changes
// no decision, but what explanations say. It must not change while the result is in use.
func (s Snapshot) WithIdle(idle Promises) Snapshot {
	s.idle = idle
	return s
}

// Has tells whether the snapshot holds a cluster of that name.
func (s Snapshot) Has(name string) bool {
	_, found := s.index[name]
	return found
}

// Serves tells whether a cluster of that name is there and going to stay.
func (s Snapshot) Serves(name string) bool {
	i, found := s.index[name]
	return found && !s.clusters[i].Deleting
}

// Estimate is how many more replicas of a binding a cluster has room for; none if it isn't there or nothing is known of
// it.
func (s Snapshot) Estimate(name string, b Binding) int64 {
	i, found := s.index[name]
	if !found {
		return 0
	}
	n := needsOf(&b)
	return n.fit(s.clusters[i].Room, s.promises[name])
}

// Clusters are those of the snapshot, in the order of their names. What they refer to must not be changed.
func (s Snapshot) Clusters() []Cluster { return slices.Clone(s.clusters) }

// Len is the number of clusters.
func (s Snapshot) Len() int { return len(s.clusters) }

// Names of all clusters, sorted.
func (s Snapshot) Names() []string {
	names := make([]string, len(s.clusters))
	for i, c := range s.clusters {
		names[i] = c.Name
	}
	return names
}
