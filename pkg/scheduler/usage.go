package scheduler

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// usage counts the control planes of each seed and knows the shoots that wait. It is kept by the shoots' events, so
// that a decision does not have to go through all shoots of the garden.
type usage struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]entry
	used    map[string]int
}

// entry is what the usage holds about a shoot.
type entry struct {
	uid types.UID
	// wanted and actual are the seeds in the specification and the status. A shoot that moves counts in both.
	wanted, actual string
	// promised is the seed of a decision that the events do not show yet.
	promised string
	waiting  bool
}

func newUsage() *usage {
	return &usage{entries: map[types.NamespacedName]entry{}, used: map[string]int{}}
}

// observe takes in the state of a shoot and tells whether that left more room on some seed.
func (l *usage) observe(shoot *gardencorev1beta1.Shoot, waiting bool) (roomier bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(shoot)
	before := l.entries[key]
	after := entry{
		uid:    shoot.UID,
		wanted: ptr.Deref(shoot.Spec.SeedName, ""), actual: ptr.Deref(shoot.Status.SeedName, ""),
	}
	if after.wanted == "" && after.uid == before.uid {
		after.promised = before.promised
	}
	after.waiting = waiting && after.promised == ""
	return l.replace(key, before, after)
}

// forget drops a shoot that is gone and tells whether that left more room on some seed.
func (l *usage) forget(key types.NamespacedName) (roomier bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	roomier = l.replace(key, l.entries[key], entry{})
	delete(l.entries, key)
	return roomier
}

// promise counts a decision that was written, until the shoot shows it.
func (l *usage) promise(shoot *gardencorev1beta1.Shoot, seed string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(shoot)
	before, known := l.entries[key]
	if !known || before.uid != shoot.UID || before.wanted != "" {
		return // gone, or shown already
	}
	after := before
	after.promised, after.waiting = seed, false
	l.replace(key, before, after)
}

// promised tells whether a decision about the shoot was written already.
func (l *usage) promised(shoot *gardencorev1beta1.Shoot) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.entries[client.ObjectKeyFromObject(shoot)]
	return known.uid == shoot.UID && known.promised != ""
}

// replace exchanges an entry and keeps the counts.
func (l *usage) replace(key types.NamespacedName, before, after entry) (roomier bool) {
	l.entries[key] = after
	for _, seed := range after.seeds() {
		l.used[seed]++
	}
	occupied := after.seeds()
	for _, seed := range before.seeds() {
		if l.used[seed]--; l.used[seed] == 0 {
			delete(l.used, seed)
		}
		roomier = roomier || !slices.Contains(occupied, seed)
	}
	return roomier
}

// seeds are those on which the shoot takes room.
func (e entry) seeds() []string {
	var seeds []string
	for _, seed := range []string{e.wanted, e.actual, e.promised} {
		if seed != "" && !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// counts returns how many control planes each seed has.
func (l *usage) counts() map[string]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.used)
}

// waiting returns the shoots that have no seed.
func (l *usage) waiting() []types.NamespacedName {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var keys []types.NamespacedName
	for key, entry := range l.entries {
		if entry.waiting {
			keys = append(keys, key)
		}
	}
	return keys
}
