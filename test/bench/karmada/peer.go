package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
	toolscache "k8s.io/client-go/tools/cache"
)

// peer is Karmada's scheduler over clusters in memory, with its own estimator by resource summaries.
type peer struct {
	algorithm core.ScheduleAlgorithm
	clusters  []*clusterv1alpha1.Cluster
}

func newPeer(clusters []*clusterv1alpha1.Cluster) (*peer, error) {
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	for _, c := range clusters {
		if err := indexer.Add(c); err != nil {
			return nil, err
		}
	}
	algorithm, err := core.NewGenericScheduler(schedulercache.NewCache(clusterlister.NewClusterLister(indexer)),
		plugins.NewInTreeRegistry())
	if err != nil {
		return nil, fmt.Errorf("the peer's scheduler: %w", err)
	}
	return &peer{algorithm: algorithm, clusters: clusters}, nil
}

// outcome is a decision in the words of both. Chosen has all clusters that spread constraints left, also those without
// a replica.
type outcome struct {
	targets map[string]int32
	chosen  map[string]bool
	term    string
	failure failure
	message string
}

// failure is why there is no placement.
type failure string

const (
	placed failure = "placed"
	noFit  failure = "no fit"
	noRoom failure = "no room"
	// refused is an error of the peer that is about the policy.
	refused failure = "refused"
	// panicked is a crash of the peer.
	panicked failure = "panic"
)

// decide tries the affinity terms in order, as the peer's scheduler does around its algorithm; the first failure
// counts.
func (p *peer) decide(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) outcome {
	terms := spec.Placement.ClusterAffinities
	if len(terms) == 0 {
		return p.attempt(spec, status)
	}
	from := 0
	for i := range terms {
		if terms[i].AffinityName == status.SchedulerObservedAffinityName {
			from = i
		}
	}
	var first *outcome
	for _, term := range terms[from:] {
		status := status.DeepCopy()
		status.SchedulerObservedAffinityName = term.AffinityName
		result := p.attempt(spec, status)
		result.term = term.AffinityName
		if result.failure == placed || result.failure == panicked {
			return result
		}
		if first == nil {
			first = &result
		}
	}
	return *first
}

func (p *peer) attempt(spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus) (result outcome) {
	defer func() {
		if problem := recover(); problem != nil {
			result = outcome{failure: panicked, message: fmt.Sprint(problem)}
		}
	}()
	// The peer writes default weights into what it is given.
	decision, err := p.algorithm.Schedule(context.Background(), spec.DeepCopy(), status,
		&core.ScheduleAlgorithmOption{EnableEmptyWorkloadPropagation: true})
	if err != nil {
		return outcome{failure: kindOf(err), message: err.Error()}
	}
	result = outcome{failure: placed, targets: map[string]int32{}, chosen: map[string]bool{}}
	for _, t := range decision.SuggestedClusters {
		result.chosen[t.Name] = true
		if t.Replicas > 0 || spec.Replicas == 0 {
			result.targets[t.Name] = t.Replicas
		}
	}
	return result
}

// kindOf tells errors apart; those of the choice by spread constraints are plain texts.
func kindOf(err error) failure {
	var unfit *framework.FitError
	var unschedulable *framework.UnschedulableError
	switch {
	case errors.As(err, &unfit):
		return noFit
	case errors.As(err, &unschedulable), strings.Contains(err.Error(), "not enough to schedule"),
		strings.Contains(err.Error(), "no enough resource"):
		return noRoom
	case strings.Contains(err.Error(), "less than"), strings.Contains(err.Error(), "no clusters available"):
		return noFit
	}
	return refused
}
