package core

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Estimate is how many more replicas a cluster has room for: by the sums over its nodes, and node by node where these
// are known, less what was promised to others. A cluster of which nothing is known has no room.
func Estimate(room *Room, request Resources, claim *NodeClaim, promised Resources) int64 {
	n := needs{request: onePodAtLeast(request), claim: compileClaim(claim)}
	return n.fit(room, promised)
}

// needs is what one replica asks for, in a form that is quick to check.
type needs struct {
	request Resources
	claim   *nodeMatcher
	// components of an object that is placed as a unit; request is their sum.
	components []componentNeeds
}

func needsOf(b *Binding) needs {
	if len(b.Components) > 0 {
		return needs{request: b.Request, claim: anyNode, components: componentsNeed(b.Components)}
	}
	return needs{request: onePodAtLeast(b.Request), claim: compileClaim(b.Nodes)}
}

func (n *needs) fit(room *Room, promised Resources) int64 {
	if room == nil {
		return 0
	}
	free := &room.Free
	if !promised.IsZero() {
		less := free.Minus(promised)
		free = &less
	}
	fits := min(free.hold(&n.request), math.MaxInt32)
	if len(room.Nodes) > 0 && fits > 0 {
		taken := taken(room.Pending.Plus(promised), &n.request)
		fits = min(fits, n.onNodes(room.Nodes, fits+taken)-taken)
	}
	return max(fits, 0)
}

// onNodes counts the replicas that fit in one piece; more than most need not be told.
func (n *needs) onNodes(nodes []Node, most int64) int64 {
	if n.components != nil {
		return setsOnNodes(nodes, n.components, min(most, math.MaxInt32))
	}
	return onNodes(nodes, &n.request, n.claim)
}

// onNodes counts the replicas that fit in one piece.
func onNodes(nodes []Node, request *Resources, claim *nodeMatcher) int64 {
	var sum int64
	for i := range nodes {
		node := &nodes[i]
		if node.Count <= 0 || !claim.matches(node) {
			continue
		}
		// Neither factor is larger than 2³¹, so that the sum stays far below 2⁶³.
		sum += min(node.Count, math.MaxInt32) * min(node.Free.hold(request), math.MaxInt32)
		if sum >= math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return sum
}

// taken counts the replicas whose place may be taken by what has no node yet.
func taken(pending Resources, request *Resources) int64 {
	var most int64
	count := func(pending, wanted int64) {
		if wanted > 0 && pending > 0 {
			most = max(most, (pending-1)/wanted+1)
		}
	}
	count(pending.CPU, request.CPU)
	count(pending.Memory, request.Memory)
	count(pending.Storage, request.Storage)
	count(pending.Pods, request.Pods)
	for name, wanted := range request.Other {
		count(pending.Other[name], wanted)
	}
	return most
}

// nodeMatcher is a NodeClaim in a form that is quick to check.
type nodeMatcher struct {
	selector    labels.Selector
	terms       []labels.Selector
	tolerations []corev1.Toleration
}

var anyNode = &nodeMatcher{}

func compileClaim(claim *NodeClaim) *nodeMatcher {
	if claim == nil {
		return anyNode
	}
	m := &nodeMatcher{tolerations: claim.Tolerations}
	if len(claim.Selector) > 0 {
		m.selector = labels.Set(claim.Selector).AsSelectorPreValidated()
	}
	if claim.Affinity == nil {
		return m
	}
	m.terms = []labels.Selector{}
	for _, term := range claim.Affinity.NodeSelectorTerms {
		if selector, ok := compileTerm(term); ok {
			m.terms = append(m.terms, selector)
		}
	}
	return m
}

var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:           selection.In,
	corev1.NodeSelectorOpNotIn:        selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan,
	corev1.NodeSelectorOpLt:           selection.LessThan,
}

// compileTerm gives false for a term that matches no node: an empty or wrong one, or one by the names of nodes, of
// which a cluster's summary says nothing.
func compileTerm(term corev1.NodeSelectorTerm) (labels.Selector, bool) {
	if len(term.MatchExpressions) == 0 || len(term.MatchFields) > 0 {
		return nil, false
	}
	selector := labels.NewSelector()
	for _, e := range term.MatchExpressions {
		requirement, err := labels.NewRequirement(e.Key, nodeOperators[e.Operator], e.Values)
		if err != nil {
			return nil, false
		}
		selector = selector.Add(*requirement)
	}
	return selector, true
}

func (m *nodeMatcher) matches(node *Node) bool {
	if m.selector != nil && !m.selector.Matches(node.Labels) {
		return false
	}
	if m.terms != nil && !slices.ContainsFunc(m.terms, func(s labels.Selector) bool { return s.Matches(node.Labels) }) {
		return false
	}
	return len(node.Taints) == 0 || untolerated(node.Taints, m.tolerations) == nil
}
