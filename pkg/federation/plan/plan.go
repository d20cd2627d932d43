package plan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Plan is what would happen. Its form in JSON and YAML is what `trellisctl plan -o json` prints.
type Plan struct {
	// Documents are the changes that were asked about.
	Documents []Document `json:"documents"`
	// Objects that would change, or about which there is something to say, in the order of namespace, kind and name.
	Objects []ObjectChange `json:"objects"`
	// Warnings tell what documents say without effect, in the order of the documents.
	Warnings []Warning `json:"warnings,omitempty"`
	// PassedOver are policies of the documents that would not be those of all objects that they select.
	PassedOver []PassedOver `json:"passedOver,omitempty"`
	// Held are the deletions that would wait for a confirmation.
	Held []Held `json:"held,omitempty"`
	// Summary counts.
	Summary Summary `json:"summary"`
}

// Action is what becomes of a document.
type Action string

// Actions.
const (
	ActionCreate    Action = "create"
	ActionUpdate    Action = "update"
	ActionDelete    Action = "delete"
	ActionUnchanged Action = "unchanged"
)

// Document is one object that somebody wants to apply or delete.
type Document struct {
	Action     Action `json:"action"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String names the object.
func (d Document) String() string {
	if d.Namespace == "" {
		return d.Kind + " " + d.Name
	}
	return d.Kind + " " + d.Namespace + "/" + d.Name
}

func (d Document) group() string { return schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).Group }

// ObjectChange is what would become of one object.
type ObjectChange struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// PolicyNow and PolicyThen name the policy that has the object, such as "PropagationPolicy shop/web"; empty if none
	// has.
	PolicyNow  string `json:"policyNow,omitempty"`
	PolicyThen string `json:"policyThen,omitempty"`
	// Clusters that have the object now or then, by name.
	Clusters []ClusterChange `json:"clusters,omitempty"`
	// Fields that override policies would set in another way, in clusters that have the object now and then.
	Fields []FieldChange `json:"fields,omitempty"`
	// Notes say why, and what else is to be known.
	Notes []string `json:"notes,omitempty"`
}

// Effect is what a cluster sees of a change.
type Effect string

// Effects.
const (
	EffectAdded     Effect = "Added"
	EffectRemoved   Effect = "Removed"
	EffectScaled    Effect = "Scaled"
	EffectUnchanged Effect = "Unchanged"
	// EffectKept: the fleet gives the object up, and the member keeps it.
	EffectKept Effect = "Kept"
)

// ClusterChange is what would become of an object in one cluster.
type ClusterChange struct {
	Name   string `json:"name"`
	Effect Effect `json:"effect"`
	// ReplicasNow and ReplicasThen are absent where the cluster doesn't have the object, and for objects without
	// replicas.
	ReplicasNow  *int32 `json:"replicasNow,omitempty"`
	ReplicasThen *int32 `json:"replicasThen,omitempty"`
}

// FieldChange is a field that override policies would set in another way.
type FieldChange struct {
	Cluster string `json:"cluster"`
	// Path of the field (RFC 6901).
	Path string `json:"path"`
	// Now and Then are its values; absent if the object has no such field.
	Now  any `json:"now,omitempty"`
	Then any `json:"then,omitempty"`
	// SetBy names the policy and the rule that would set it; empty if none would, so that the object's own value shows.
	SetBy string `json:"setBy,omitempty"`
}

// Warning tells of something in a document that has no effect in the fleet as it is.
type Warning struct {
	// Document, such as "OverridePolicy shop/image".
	Document string `json:"document"`
	// Message names the field, and says what the fleet has or has not.
	Message string `json:"message"`
}

// Held tells of deletions in a member, or in the fleet as a whole, that are more than the deletion budget.
type Held struct {
	// Cluster is empty for the fleet as a whole.
	Cluster string `json:"cluster,omitempty"`
	// Deletions that the plan asks for, of Objects that there are; Allowance is how many are let through without a
	// confirmation.
	Deletions int `json:"deletions"`
	Objects   int `json:"objects"`
	Allowance int `json:"allowance"`
}

// Summary counts.
type Summary struct {
	// Examined objects, with those that would not change.
	Examined int `json:"examined"`
	// Changed objects.
	Changed int `json:"changed"`
	// LosePolicy is how many objects would have no policy any more, and GetPolicy how many would have one for the first
	// time.
	LosePolicy int `json:"losePolicy"`
	GetPolicy  int `json:"getPolicy"`
	// Added, Removed, Scaled and Kept count copies of objects in clusters.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Scaled  int `json:"scaled"`
	Kept    int `json:"kept"`
	// ReplicasAdded and ReplicasRemoved are sums over all clusters.
	ReplicasAdded   int64 `json:"replicasAdded"`
	ReplicasRemoved int64 `json:"replicasRemoved"`
	// Fields that would have another value.
	Fields int `json:"fields"`
	// Unplaced objects have a policy and would be in no cluster.
	Unplaced int `json:"unplaced"`
}

// Empty tells whether nothing would change in the members, and no object would change its policy.
func (p *Plan) Empty() bool { return p.Summary.Changed == 0 }

// changes tells whether the object changes its policy, its clusters or, somewhere, its content.
func (c *ObjectChange) changes() bool {
	return c.PolicyNow != c.PolicyThen || len(c.Fields) > 0 ||
		slices.ContainsFunc(c.Clusters, func(cc ClusterChange) bool { return cc.Effect != EffectUnchanged })
}

// finish sorts the objects and counts.
func (p *Plan) finish(examined int) {
	slices.SortFunc(p.Objects, func(a, b ObjectChange) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.APIVersion, b.APIVersion))
	})
	p.Summary = Summary{Examined: examined}
	for i := range p.Objects {
		p.Summary.count(&p.Objects[i])
	}
}

func (s *Summary) count(c *ObjectChange) {
	if c.changes() {
		s.Changed++
	}
	switch {
	case c.PolicyNow != "" && c.PolicyThen == "":
		s.LosePolicy++
	case c.PolicyNow == "" && c.PolicyThen != "":
		s.GetPolicy++
	}
	s.Fields += len(c.Fields)
	placed := false
	for _, cluster := range c.Clusters {
		switch cluster.Effect {
		case EffectAdded:
			s.Added++
		case EffectRemoved:
			s.Removed++
		case EffectScaled:
			s.Scaled++
		case EffectKept:
			s.Kept++
		}
		placed = placed || cluster.Effect != EffectRemoved && cluster.Effect != EffectKept
		if cluster.Effect == EffectKept {
			continue
		}
		if more := int64(deref(cluster.ReplicasThen)) - int64(deref(cluster.ReplicasNow)); more > 0 {
			s.ReplicasAdded += more
		} else {
			s.ReplicasRemoved -= more
		}
	}
	if c.PolicyThen != "" && !placed {
		s.Unplaced++
	}
}

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
