package core

import (
	"fmt"
	"slices"
	"strings"
)

// Decision is where an object goes, and why it doesn't go elsewhere.
type Decision struct {
	// Targets in the order of cluster names.
	Targets []Target
	// Term is the name of the affinity term that was used.
	Term string
	// Reasons of clusters that were left out, in the order of cluster names.
	Reasons []Reason
	// Failure is nil when the object was placed.
	Failure *Failure
}

// ReasonCode tells machines why a cluster was left out.
type ReasonCode string

// Reasons for leaving out a cluster.
const (
	UnknownCluster    ReasonCode = "UnknownCluster"
	ClusterDeleting   ReasonCode = "ClusterDeleting"
	AffinityMismatch  ReasonCode = "AffinityMismatch"
	BeingEvicted      ReasonCode = "BeingEvicted"
	APINotServed      ReasonCode = "APINotServed"
	TaintNotTolerated ReasonCode = "TaintNotTolerated"
	PropertyMissing   ReasonCode = "PropertyMissing"
	SpreadLimit       ReasonCode = "SpreadLimit"
	NoWeight          ReasonCode = "NoWeight"
	NoReplicaAllotted ReasonCode = "NoReplicaAllotted"
)

// Reason tells why one cluster was left out.
type Reason struct {
	Cluster string
	Code    ReasonCode
	Message string
}

// FailureKind tells failures apart that are treated differently.
type FailureKind int

const (
	// NoFit: no cluster may take the object. What was placed before is withdrawn.
	NoFit FailureKind = iota
	// NoRoom: clusters fit but cannot take all replicas. What was placed before stays.
	NoRoom
)

// Failure says why nothing was decided.
type Failure struct {
	Kind    FailureKind
	Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func noFit(format string, args ...any) *Failure {
	return &Failure{Kind: NoFit, Message: fmt.Sprintf(format, args...)}
}

func noRoom(format string, args ...any) *Failure {
	return &Failure{Kind: NoRoom, Message: fmt.Sprintf(format, args...)}
}

// Explain is one sentence for people: where the object goes and, per reason, which clusters were left out.
func (d Decision) Explain() string {
	var parts []string
	if d.Failure != nil {
		parts = append(parts, d.Failure.Message)
	} else {
		parts = append(parts, "placed on "+d.targetNames())
	}
	return strings.Join(append(parts, d.groupedReasons()...), "; ")
}

func (d Decision) targetNames() string {
	names := make([]string, len(d.Targets))
	for i, t := range d.Targets {
		names[i] = t.Cluster
	}
	return strings.Join(names, ", ")
}

// groupedReasons names the clusters that share a message once, in the order of the first of them.
func (d Decision) groupedReasons() []string {
	clusters := map[string][]string{}
	var messages []string
	for _, r := range d.Reasons {
		if clusters[r.Message] == nil {
			messages = append(messages, r.Message)
		}
		clusters[r.Message] = append(clusters[r.Message], r.Cluster)
	}
	for i, message := range messages {
		messages[i] = strings.Join(clusters[message], ", ") + ": " + message
	}
	return messages
}

// reasons collects one reason per cluster; the first one counts.
type reasons map[string]Reason

func (r reasons) add(cluster string, code ReasonCode, message string) {
	if _, known := r[cluster]; !known {
		r[cluster] = Reason{Cluster: cluster, Code: code, Message: message}
	}
}

// sorted leaves out the clusters that were chosen after all.
func (r reasons) sorted(targets []Target) []Reason {
	for _, t := range targets {
		delete(r, t.Cluster)
	}
	list := make([]Reason, 0, len(r))
	for _, reason := range r {
		list = append(list, reason)
	}
	slices.SortFunc(list, func(a, b Reason) int { return strings.Compare(a.Cluster, b.Cluster) })
	return list
}
