package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Binding is one object that wants to be placed.
type Binding struct {
	// Kind of the object; a cluster must serve it.
	Kind schema.GroupVersionKind
	// UID of the object decides ties between clusters, so that not all objects prefer the same ones.
	UID string
	// Workload tells that the object has replicas. Others go to every chosen cluster.
	Workload bool
	// Replicas that are wanted.
	Replicas int32
	// Request of one replica. One that asks for no pods asks for one.
	Request Resources
	// Nodes restricts the nodes that replicas may run on; nil means all without taints.
	Nodes *NodeClaim
	// Components are those of an object that is placed as a unit: a set of them is its one replica, see SetOf. Nil for
	// all others.
	Components []Component
	// Placement is where the object may go.
	Placement Placement
	// Previous is the decision before this one.
	Previous []Target
	// PreviousTerm is the name of the affinity term that Previous was made with.
	PreviousTerm string
	// BetweenTerms tells that the object goes over to PreviousTerm from another one, step by step. When it is decided
	// anew meanwhile, clusters that PreviousTerm doesn't match keep what they have, and get no more, where replicas are
	// divided by room.
	BetweenTerms bool
	// Evicted clusters are being left and must not be chosen.
	Evicted []string
	// Near are the clusters that have the object's affinity group; if there are any, only they may be chosen.
	Near []string
	// Apart are the clusters that have the object's anti-affinity group; they must not be chosen.
	Apart []string
	// Fresh forgets how Previous divided the replicas, but for a choice among equals, and begins with the first
	// affinity term.
	Fresh bool
	// FromFirstTerm begins with the first affinity term even though a later one is in use.
	FromFirstTerm bool
	// Patience with clusters of which nothing is known yet.
	Patience Patience
}

// Patience lets a decision wait for clusters of which nothing is known yet. That of zero waits for none.
type Patience struct {
	// Now is when the decision is made.
	Now time.Time
	// Until is when it is made without these clusters at the latest.
	Until time.Time
}

// Target is a cluster and its share of the replicas.
type Target struct {
	Cluster  string
	Replicas int32
}

// NodeClaim restricts nodes, as a pod does.
type NodeClaim struct {
	Selector    map[string]string
	Affinity    *corev1.NodeSelector
	Tolerations []corev1.Toleration
}

// Strategy divides replicas.
type Strategy int

const (
	// Duplicated gives every chosen cluster all replicas.
	Duplicated Strategy = iota
	// StaticWeight divides by given weights.
	StaticWeight
	// DynamicWeight divides by how many replicas the clusters have room for.
	DynamicWeight
	// Aggregated divides like DynamicWeight, over as few clusters as possible.
	Aggregated
	// Even gives all clusters the same number as far as they have room. Clusters of which nothing is known have any.
	Even
)

// String names the strategy.
func (s Strategy) String() string {
	return [...]string{"Duplicated", "StaticWeight", "DynamicWeight", "Aggregated", "Even"}[s]
}

// Dynamic strategies look at free room, and let stay what was divided before.
func (s Strategy) Dynamic() bool { return s == DynamicWeight || s == Aggregated || s == Even }

// Placement is where an object may go and how its replicas are divided.
type Placement struct {
	// Terms are tried in order until one can be satisfied. None means every cluster.
	Terms       []Term
	Tolerations []corev1.Toleration
	Spread      []SpreadConstraint
	Strategy    Strategy
	// Weights of StaticWeight. None means that all clusters weigh the same.
	Weights []Weight
	// Limits bound the shares of clusters when replicas are divided.
	Limits []Limit
}

// Term is a named affinity.
type Term struct {
	Name string
	Affinity
	// Overflow are tiers of further clusters; each gets what the ones before have no room for.
	Overflow []Affinity
}

// Affinity matches clusters: Exclude loses first, then every given part must hold.
type Affinity struct {
	// Path is where the user wrote it, for messages.
	Path    string
	Names   []string
	Exclude []string
	// Labels matches the cluster's labels; nil matches all.
	Labels labels.Selector
	Fields []FieldRequirement
}

// Field is a property of clusters.
type Field string

// The properties that clusters can be grouped and matched by.
const (
	FieldCluster  Field = "cluster"
	FieldRegion   Field = "region"
	FieldZone     Field = "zone"
	FieldProvider Field = "provider"
	// FieldLabel groups by the value of a label.
	FieldLabel Field = "label"
)

// FieldRequirement matches a property: one of Values, or with Not none of them.
type FieldRequirement struct {
	Field  Field
	Not    bool
	Values []string
}

// SpreadConstraint bounds the number of groups that clusters are chosen from.
type SpreadConstraint struct {
	// Path is where the user wrote it, for messages.
	Path  string
	Field Field
	// Label is the key that FieldLabel groups by.
	Label string
	// Min is the smallest number of groups.
	Min int
	// Max is the largest; nil means no bound.
	Max *int
}

// Weight gives a weight to the clusters that match. Of several that match, the largest counts.
type Weight struct {
	Affinity
	Weight int64
}

// Limit bounds the share of each cluster that matches. Of several that match, the largest Min and the smallest Max
// count.
type Limit struct {
	Affinity
	// Min is given before anything else, as far as there are replicas and room.
	Min int32
	// Max is never exceeded; nil means no bound.
	Max *int32
}
