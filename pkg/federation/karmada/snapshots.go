package karmada

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Snapshots translates clusters once per version of theirs. It may be used from several goroutines.
type Snapshots struct {
	mu         sync.Mutex
	versions   map[string]string
	translated map[string]core.Cluster
	translator Translator
	latest     core.Snapshot
}

// Await has decisions wait for members that have just come; see Translator. It is called before all others.
func (s *Snapshots) Await(began time.Time, firstAnswer time.Duration) {
	s.translator.Began, s.translator.FirstAnswer = began, firstAnswer
}

// Of gives the snapshot of these clusters, which are not changed and not kept.
func (s *Snapshots) Of(clusters iter.Seq[*clusterv1alpha1.Cluster]) core.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := make(map[string]string, len(s.versions))
	for c := range clusters {
		versions[c.Name] = c.ResourceVersion
	}
	if s.versions != nil && maps.Equal(versions, s.versions) {
		return s.latest
	}
	translated := make(map[string]core.Cluster, len(versions))
	for c := range clusters {
		if known, found := s.translated[c.Name]; found && s.versions[c.Name] == c.ResourceVersion {
			translated[c.Name] = known
		} else {
			translated[c.Name] = s.translator.Cluster(c)
		}
	}
	s.versions, s.translated = versions, translated
	s.latest = core.NewSnapshot(slices.Collect(maps.Values(translated)))
	return s.latest
}
