package core

import (
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
	// Request of one replica, in the units of Room.
	Request map[string]int64
	// Placement is where the object may go.
	Placement Placement
	// Previous is the decision before this one.
	Previous []Target
	// PreviousTerm is the name of the affinity term that Previous was made with.
	PreviousTerm string
	// Evicted clusters are being left and must not be chosen.
	Evicted []string
	// Fresh forgets how Previous divided the replicas.
	Fresh bool
}

// Target is a cluster and its share of the replicas.
type Target struct {
	Cluster  string
	Replicas int32
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
)

// dynamic strategies look at free room.
func (s Strategy) dynamic() bool { return s == DynamicWeight || s == Aggregated }

// Placement is where an object may go and how its replicas are divided.
type Placement struct {
	// Terms are tried in order until one can be satisfied. None means every cluster.
	Terms       []Term
	Tolerations []corev1.Toleration
	Spread      []SpreadConstraint
	Strategy    Strategy
	// Weights of StaticWeight. None means that all clusters weigh the same.
	Weights []Weight
}

// Term is a named affinity.
type Term struct {
	Name string
	Affinity
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
