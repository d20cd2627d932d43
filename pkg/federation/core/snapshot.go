package core

import (
	"slices"
	"strings"

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
	// APIs are the kinds that the cluster serves.
	APIs map[schema.GroupVersionKind]struct{}
	// Room is what is known of its free resources; nil if nothing is.
	Room *Room
}

// Room adds up the resources of a cluster: CPU in millicores, everything else in its base unit.
type Room struct {
	Allocatable map[string]int64
	Allocated   map[string]int64
	Allocating  map[string]int64
}

// Snapshot is a set of clusters in the order of their names.
type Snapshot struct {
	clusters []Cluster
	index    map[string]int
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

// RoomOf gives what is known of the free resources of a cluster; nil if nothing is.
func (s Snapshot) RoomOf(name string) *Room {
	if i, found := s.index[name]; found {
		return s.clusters[i].Room
	}
	return nil
}

// Names of all clusters, sorted.
func (s Snapshot) Names() []string {
	names := make([]string, len(s.clusters))
	for i, c := range s.clusters {
		names[i] = c.Name
	}
	return names
}
