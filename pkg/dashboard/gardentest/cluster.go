package gardentest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

// Cluster is a Garden that keeps what is written, runs the pods of Jobs, and has shells in them.
type Cluster struct {
	*Garden
	// Shell is what runs in pods: a program between the two sides of a WebSocket. Default: Echo.
	Shell func(*websocket.Conn)
	// Refuse has creations of a resource fail, with its reason.
	Refuse map[string]metav1.StatusReason

	written sync.Mutex
	kept    map[string]Object
	removed []string
}

// NewCluster starts a cluster that knows one user, by the token.
func NewCluster(t *testing.T, token string) *Cluster {
	c := &Cluster{Garden: New(t), Shell: Echo, kept: map[string]Object{}, Refuse: map[string]metav1.StatusReason{}}
	c.Users[token] = User{Name: token}
	c.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return false
		}
		p, err := proxy.ParsePath(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		if err != nil {
			return false
		}
		return c.write(t, w, r, p)
	}
	return c
}

func (c *Cluster) write(t *testing.T, w http.ResponseWriter, r *http.Request, p proxy.Path) bool {
	path := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case p.Subresource == "exec":
		c.exec(w, r)
	case r.Method == http.MethodPost:
		c.create(t, w, r, p, path)
	case r.Method == http.MethodPatch:
		c.patch(t, w, r, path)
	case r.Method == http.MethodDelete:
		c.remove(t, w, path)
	default:
		return false
	}
	return true
}

func (c *Cluster) exec(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer connection.Close()
	c.Shell(connection)
}

func (c *Cluster) create(t *testing.T, w http.ResponseWriter, r *http.Request, p proxy.Path, path string) {
	object := Object{}
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if reason := c.Refuse[p.Resource]; reason != "" {
		fail(w, http.StatusForbidden, reason, "no "+p.Resource+" for you")
		return
	}
	name, _ := object["metadata"].(map[string]any)["name"].(string)
	c.keep(t, path+"/"+name, object)
	if p.Resource == "jobs" {
		// The pod waits for its image, then runs.
		pod := "api/v1/namespaces/" + p.Namespace + "/pods/" + name + "-1"
		c.keep(t, pod, Object{"status": Object{"containerStatuses": []any{
			Object{"state": Object{"waiting": Object{"reason": "ContainerCreating"}}},
		}}})
		c.keep(t, pod, Object{"status": Object{"containerStatuses": []any{
			Object{"state": Object{"running": Object{}}},
		}}})
	}
	write(w, http.StatusCreated, c.Object(path+"/"+name))
}

func (c *Cluster) patch(t *testing.T, w http.ResponseWriter, r *http.Request, path string) {
	change := struct {
		Metadata struct{ Annotations map[string]any }
	}{}
	old := c.Object(path)
	if old == nil || json.NewDecoder(r.Body).Decode(&change) != nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
		return
	}
	meta := maps.Clone(old["metadata"].(map[string]any))
	annotations, _ := meta["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	maps.Copy(annotations, change.Metadata.Annotations)
	meta["annotations"] = annotations
	object := maps.Clone(old)
	object["metadata"] = meta
	c.keep(t, path, object)
	write(w, http.StatusOK, c.Object(path))
}

func (c *Cluster) remove(t *testing.T, w http.ResponseWriter, path string) {
	c.written.Lock()
	_, found := c.kept[path]
	delete(c.kept, path)
	c.removed = append(c.removed, path)
	c.written.Unlock()
	if !found {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
		return
	}
	c.Delete(t, path)
	write(w, http.StatusOK, Object{"kind": "Status", "status": "Success"})
}

// keep sets a copy of an object, which nobody changes any more.
func (c *Cluster) keep(t *testing.T, path string, object Object) {
	t.Helper()
	c.Set(t, path, object)
	text, err := json.Marshal(object)
	if err != nil {
		t.Error(err)
	}
	copied := Object{}
	if err := json.Unmarshal(text, &copied); err != nil {
		t.Error(err)
	}
	c.written.Lock()
	defer c.written.Unlock()
	c.kept[path] = copied
}

// Keep sets an object, as if somebody had written it.
func (c *Cluster) Keep(t *testing.T, path string, object Object) { c.keep(t, path, object) }

// Object at a path, as it was written last; nil if there is none.
func (c *Cluster) Object(path string) Object {
	c.written.Lock()
	defer c.written.Unlock()
	return c.kept[path]
}

// Paths of objects that there are.
func (c *Cluster) Paths() []string {
	c.written.Lock()
	defer c.written.Unlock()
	return slices.Sorted(maps.Keys(c.kept))
}

// Removed are the paths of what was deleted.
func (c *Cluster) Removed() []string {
	c.written.Lock()
	defer c.written.Unlock()
	return slices.Clone(c.removed)
}

// Echo is a shell that writes what it gets and the sizes, until it gets "exit".
func Echo(connection *websocket.Conn) {
	for {
		_, message, err := connection.ReadMessage()
		if err != nil {
			return
		}
		if string(message) == "\x00exit\r" {
			_ = connection.WriteMessage(websocket.BinaryMessage, []byte("\x03"+`{"status":"Success"}`))
			return
		}
		said := "echo " + string(message[1:])
		if message[0] == 4 {
			said = "size " + string(message[1:])
		}
		if connection.WriteMessage(websocket.BinaryMessage, append([]byte{1}, said...)) != nil {
			return
		}
	}
}
