package controllers

import (
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// surveys tells when the survey was begun that the status of a Cluster shows: it is known by what it found. One that
// found the same as another says the same, so the later of the two counts.
type surveys struct {
	mu    sync.Mutex
	begun map[string]map[uint64]time.Time
	// foreign are those that somebody else made: what was shown last, and since when.
	foreign map[string]sighting
}

// sighting is a survey and when it was first seen.
type sighting struct {
	found uint64
	at    time.Time
	// begun is the earliest time at which it cannot have begun before.
	begun time.Time
}

// kept is the number of surveys of a cluster that are remembered; its status shows one of the last.
const kept = 16

func newSurveys() *surveys {
	return &surveys{begun: map[string]map[uint64]time.Time{}, foreign: map[string]sighting{}}
}

// noted is called before what a survey found is written.
func (s *surveys) noted(cluster string, begun time.Time, found *clusterv1alpha1.ResourceSummary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.begun[cluster]
	if known == nil {
		known = map[uint64]time.Time{}
		s.begun[cluster] = known
	}
	known[fingerprint(found)] = begun
	for len(known) > kept {
		delete(known, oldest(known))
	}
}

func oldest(known map[uint64]time.Time) uint64 {
	var result uint64
	var first time.Time
	for found, begun := range known {
		if first.IsZero() || begun.Before(first) {
			result, first = found, begun
		}
	}
	return result
}

// foreignAge is how old what an agent reports may be at most: it looks again, and says so if something changed, far
// more often.
const foreignAge = time.Minute

// of gives the time for what a status shows; zero if it cannot be told. A survey that was made elsewhere was begun
// after the one before it had been written; if it has been shown for long, surveys since then have found the same.
func (s *surveys) of(cluster string, shown *clusterv1alpha1.ResourceSummary, now time.Time) time.Time {
	if shown == nil {
		return time.Time{}
	}
	found := fingerprint(shown)
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun, own := s.begun[cluster][found]; own {
		return begun
	}
	last := s.foreign[cluster]
	if last.found != found {
		last = sighting{found: found, at: now, begun: last.at}
		s.foreign[cluster] = last
	}
	if current := now.Add(-foreignAge); current.After(last.at) {
		return current
	}
	return last.begun
}

func (s *surveys) forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.begun, cluster)
	delete(s.foreign, cluster)
}

// fingerprint of a summary as the API would store it.
func fingerprint(found *clusterv1alpha1.ResourceSummary) uint64 {
	text, err := json.Marshal(found)
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return h.Sum64()
}
