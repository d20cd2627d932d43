// Package seednodes tells whether replicas of what a seed runs can be on several nodes.
package seednodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// nodesAtATime bounds a list: the first two nodes mostly decide.
	nodesAtATime = 20
	// passingTaints begins the keys of taints that Kubernetes gives nodes for a while.
	passingTaints = "node.kubernetes.io/"
)

// AreSingle says whether a seed has one node at most that takes pods of control planes.
func AreSingle(ctx context.Context, seed client.Reader) (bool, error) {
	nodes, found := &corev1.NodeList{}, 0
	for {
		if err := seed.List(ctx, nodes, client.Limit(nodesAtATime), client.Continue(nodes.Continue)); err != nil {
			return false, fmt.Errorf("counting the nodes of the seed: %w", err)
		}
		for i := range nodes.Items {
			if takesPods(&nodes.Items[i]) {
				found++
			}
		}
		if found > 1 || nodes.Continue == "" {
			return found <= 1, nil
		}
	}
}

// takesPods says whether a node is for pods of control planes. One that is drained, or does not answer, will be again:
// if it did not count, all highly available control planes would be rolled while the seed lacks a node.
func takesPods(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, passingTaints)
	})
}
