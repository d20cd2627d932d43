package simulated

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/labels"
)

// maximal number of events that a watcher may be behind before it has to list again.
const backlog = 4096

// watch streams changes. One that asks for the initial objects gets them first; versions in the past are not kept, so
// others get everything as well.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, p path) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	flusher := w.(http.Flusher)
	watcher := &watcher{path: p, selector: selector, events: make(chan []byte, backlog), lost: make(chan struct{})}
	initial := s.subscribe(watcher, r.URL.Query().Get("sendInitialEvents") == "true")
	defer s.unsubscribe(watcher)
	w.Header().Set("Content-Type", "application/json")
	for _, event := range initial {
		_, _ = w.Write(event)
	}
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-watcher.lost:
			return
		case event := <-watcher.events:
			if _, err := w.Write(event); err != nil {
				return
			}
			if len(watcher.events) == 0 {
				flusher.Flush()
			}
		}
	}
}

func (s *Server) subscribe(watcher *watcher, bookmark bool) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[watcher] = struct{}{}
	var initial [][]byte
	for _, o := range s.objects[watcher.path.resource.Name] {
		if watcher.path.holds(o, watcher.selector) {
			initial = append(initial, encode("ADDED", o))
		}
	}
	if bookmark {
		initial = append(initial, encode("BOOKMARK", object{
			"kind": watcher.path.resource.Kind, "apiVersion": watcher.path.resource.groupVersion(),
			"metadata": object{
				"resourceVersion": s.versionText(), "annotations": object{"k8s.io/initial-events-end": "true"},
			},
		}))
	}
	return initial
}

func (s *Server) unsubscribe(watcher *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, watcher)
}

// announce is called with the lock held.
func (s *Server) announce(event string, p path, o object) {
	var encoded []byte
	for watcher := range s.watchers {
		if watcher.path.resource != p.resource || !watcher.path.holds(o, watcher.selector) {
			continue
		}
		if encoded == nil {
			encoded = encode(event, o)
		}
		select {
		case watcher.events <- encoded:
		default:
			delete(s.watchers, watcher)
			close(watcher.lost)
		}
	}
}

func encode(event string, o object) []byte {
	text, err := json.Marshal(object{"type": event, "object": o})
	if err != nil {
		panic(err) // Objects come from JSON.
	}
	return append(text, '\n')
}
