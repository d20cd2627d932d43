// Package moves tells why objects of a fleet went where, and keeps that for days: what bindings tell of evictions,
// failovers, rollouts and decisions is gone with the next one, and events with the hour. The leader among the fleet's
// processes writes what it has seen into ConfigMaps of the fleet's own namespace, in which only the fleet and its
// administrators write.
package moves

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// Types of moves that bindings tell of. Those of events have the action as their type.
const (
	TypeEviction = "Eviction"
	TypeFailover = "Failover"
	TypeFailBack = "FailBack"
	TypeRollout  = "Rollout"
	TypeDecision = "Decision"
)

const (
	// maxMessage is how much of a message is kept, in characters, and maxClusters how many names of clusters: a move
	// says what happened, not all of what there is.
	maxMessage  = 300
	maxClusters = 20
)

// Object that moved.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Move is something that changed where an object runs, or how.
type Move struct {
	Time     metav1.Time `json:"time"`
	Object   Object      `json:"object"`
	Type     string      `json:"type"`
	Reason   string      `json:"reason"`
	Message  string      `json:"message,omitempty"`
	Clusters []string    `json:"clusters,omitempty"`
}

// Key tells moves apart: the same one is told by several processes, and again after a restart.
func (m Move) Key() string {
	return fmt.Sprintf("%d %q %s %s", m.Time.Unix(), m.Object, m.Type, m.Reason)
}

// short is a move as it is kept.
func (m Move) short() Move {
	if text := []rune(m.Message); len(text) > maxMessage {
		m.Message = string(text[:maxMessage-1]) + "…"
	}
	if len(m.Clusters) > maxClusters {
		m.Clusters = append(slices.Clone(m.Clusters[:maxClusters]), "…")
	}
	return m
}

// Of reads what a binding remembers.
func Of(b bindings.Binding) []Move {
	var result []Move
	spec, o := b.BindingSpec(), objectOf(b)
	for _, task := range spec.GracefulEvictionTasks {
		if task.CreationTimestamp != nil {
			result = append(result, Move{
				Time: *task.CreationTimestamp, Object: o, Type: TypeEviction, Reason: task.Reason,
				Message: task.Message, Clusters: []string{task.FromCluster},
			})
		}
	}
	if spec.BeforeFailover != nil {
		for _, failed := range spec.BeforeFailover.Failed {
			result = append(result, Move{
				Time: failed.Time, Object: o, Type: TypeFailover, Reason: failed.Reason,
				Clusters: []string{failed.Name},
			})
		}
	}
	if back := spec.LastFailBack; back != nil {
		result = append(result, Move{Time: back.Time, Object: o, Type: TypeFailBack, Reason: "FailBack",
			Clusters: back.Clusters})
	}
	if status := b.BindingStatus(); status.Rollout != nil {
		for _, revision := range status.Rollout.Revisions {
			result = append(result, Move{
				Time: revision.Time, Object: o, Type: TypeRollout, Reason: "NewRevision",
				Message: fmt.Sprintf("rollout %d, revision %s", revision.Number, revision.Revision),
			})
		}
	}
	return append(result, lastDecision(b, o)...)
}

func objectOf(b bindings.Binding) Object {
	resource := b.BindingSpec().Resource
	return Object{resource.APIVersion, resource.Kind, b.GetNamespace(), resource.Name}
}

// lastDecision is the last one of the scheduler, with the clusters that it chose.
func lastDecision(b bindings.Binding, o Object) []Move {
	decided, found := karmada.DecidedOf(b)
	if !found {
		return nil
	}
	return []Move{{
		Time: decided.Time, Object: o, Type: TypeDecision, Reason: decided.Reason, Message: decided.Message,
		Clusters: clustersOf(b),
	}}
}

// between are the moves that a binding tells of since it was another. A decision is one only if it chose other
// clusters: most of them find everything where it is. Clusters that are left without a decision are told of by an
// eviction.
func between(before, after bindings.Binding) []Move {
	known := map[string]bool{}
	for _, m := range Of(before) {
		known[m.Key()] = true
	}
	last, _ := karmada.DecidedOf(before)
	decided, _ := karmada.DecidedOf(after)
	moved := decided != last && !slices.Equal(clustersOf(before), clustersOf(after))
	return slices.DeleteFunc(Of(after), func(m Move) bool {
		if m.Type == TypeDecision {
			return !moved
		}
		return known[m.Key()]
	})
}

func clustersOf(b bindings.Binding) []string {
	var names []string
	for _, target := range b.BindingSpec().Clusters {
		names = append(names, target.Name)
	}
	slices.Sort(names)
	return names
}
