package live

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
)

const (
	// keptRenderings of small objects are there for the other watches that are told of the same.
	keptRenderings = 64
	smallRendering = 32 << 10
)

// renderings are what was made of objects that came lately. Each watch reads the object from the cluster, with its own
// credential; of the same bytes the same is made, so that it is made once.
type renderings struct {
	mutex sync.Mutex
	items map[[sha256.Size]byte]*item
	// recent are the keys, of which the oldest is replaced next.
	recent [keptRenderings][sha256.Size]byte
	next   int
}

// of is the item of an object. It is not to be changed.
func (r *renderings) of(s source, object json.RawMessage) (*item, error) {
	if r == nil || len(object) > smallRendering {
		return s.render(object)
	}
	key := renderingKey(s, object)
	r.mutex.Lock()
	known, found := r.items[key]
	r.mutex.Unlock()
	if found {
		return known, nil
	}
	made, err := s.render(object)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known, found := r.items[key]; found {
		return known, nil
	}
	if r.items == nil {
		r.items = map[[sha256.Size]byte]*item{}
	}
	delete(r.items, r.recent[r.next])
	r.items[key], r.recent[r.next] = made, key
	r.next = (r.next + 1) % keptRenderings
	return made, nil
}

// renderingKey has all that an item is made of.
func renderingKey(s source, object json.RawMessage) (key [sha256.Size]byte) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q ", s.group, s.resource, s.view)
	_, _ = sum.Write(object) // It never fails.
	sum.Sum(key[:0])
	return key
}
