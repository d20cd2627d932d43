package core

import (
	"fmt"
	"time"
)

// Decision is where an object goes. It explains itself on demand.
type Decision struct {
	// Targets in the order of cluster names.
	Targets []Target
	// Term is the name of the affinity term that was used.
	Term string
	// Before are the terms that could not be satisfied, if others were tried.
	Before []TermFailure
	// Failure is nil when the object was placed.
	Failure *Failure

	attempt *attempt
}

// TermFailure says why an affinity term could not be satisfied.
type TermFailure struct {
	Term    string
	Failure *Failure
}

// ReasonCode tells machines why a cluster was left out.
type ReasonCode uint8

// Reasons for leaving out a cluster, in the order of the checks. Fits is none.
const (
	Fits ReasonCode = iota
	ClusterDeleting
	AffinityMismatch
	BeingEvicted
	AwayFromGroup
	GroupIsHere
	APINotServed
	TaintNotTolerated
	PropertyMissing
	NotKnownYet
	NoWeight
	SpreadLimit
	NoReplicaAllotted
	UnknownCluster
)

var reasonNames = [...]string{
	"", "ClusterDeleting", "AffinityMismatch", "BeingEvicted", "AwayFromGroup", "GroupIsHere", "APINotServed",
	"TaintNotTolerated", "PropertyMissing", "NotKnownYet", "NoWeight", "SpreadLimit", "NoReplicaAllotted",
	"UnknownCluster",
}

// String is the word that is shown to users; that of Fits is empty.
func (c ReasonCode) String() string { return reasonNames[c] }

// FailureKind tells failures apart that are treated differently.
type FailureKind int

const (
	// NoFit: no cluster may take the object. What was placed before is withdrawn.
	NoFit FailureKind = iota
	// NoRoom: clusters fit but cannot take all replicas. What was placed before stays.
	NoRoom
	// Waiting: nothing is decided before more is known of clusters that have just come. What was placed before stays.
	Waiting
)

// Failure says why nothing was decided.
type Failure struct {
	Kind    FailureKind
	Message string
	// Until is when Waiting ends at the latest.
	Until time.Time
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func noFit(format string, args ...any) *Failure {
	return &Failure{Kind: NoFit, Message: fmt.Sprintf(format, args...)}
}

func noRoom(format string, args ...any) *Failure {
	return &Failure{Kind: NoRoom, Message: fmt.Sprintf(format, args...)}
}
