// Package gardentest is an API server in memory for tests of the dashboard: it knows users by their tokens, reviews
// them, keeps objects, lists them in pages, and watches. It speaks the protocol as kube-apiserver does, as far as the
// dashboard asks.
package gardentest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

// User of the garden.
type User struct {
	Name   string
	Groups []string
	// May tells what the user may do; nil for everything.
	May func(verb string, of proxy.Path) bool
	// Rules are answered to a review of rules.
	Rules []map[string]any
}

// Object in JSON.
type Object = map[string]any

// Garden is an API server.
type Garden struct {
	Server *httptest.Server
	// Users by token.
	Users map[string]User
	// Kubeconfig is what shoots/adminkubeconfig and viewerkubeconfig give: of a level, for a shoot.
	Kubeconfig func(level, namespace, name string) []byte
	// Answer is asked first; it answers if it is true.
	Answer func(w http.ResponseWriter, r *http.Request) bool

	mutex    sync.Mutex
	changed  *sync.Cond
	version  int
	floor    int
	objects  map[string]Object
	history  []event
	requests []*http.Request
	watching int
}

// event is a change of an object, by its collection.
type event struct {
	version    int
	kind       string
	collection string
	namespace  string
	object     []byte
}

// New starts a server that ends with the test.
func New(t *testing.T) *Garden {
	t.Helper()
	g := &Garden{Users: map[string]User{}, objects: map[string]Object{}, version: 100}
	g.changed = sync.NewCond(&g.mutex)
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(g.serve))
	g.Server.EnableHTTP2 = true
	g.Server.StartTLS()
	t.Cleanup(func() {
		g.Server.CloseClientConnections()
		g.Server.Close()
	})
	return g
}

// CA of the server, in PEM.
func (g *Garden) CA() []byte { return pemOf(g.Server.Certificate()) }

// Requests that came so far.
func (g *Garden) Requests() []*http.Request {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.requests)
}

// Watching is how many watches are open.
func (g *Garden) Watching() int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.watching
}

// Set creates or changes an object at a path such as apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME.
func (g *Garden) Set(t *testing.T, path string, object Object) {
	t.Helper()
	p, err := proxy.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.put(p, object)
}

func (g *Garden) put(p proxy.Path, object Object) {
	kind := "ADDED"
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	if old, found := g.objects[p.String()]; found {
		kind = "MODIFIED"
		meta["uid"] = old["metadata"].(map[string]any)["uid"]
	}
	g.version++
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("uid-%d", g.version)
	}
	meta["name"], meta["resourceVersion"] = p.Name, strconv.Itoa(g.version)
	if p.Namespace != "" {
		meta["namespace"] = p.Namespace
	}
	g.objects[p.String()] = object
	g.record(kind, p, object)
}

// Delete removes an object.
func (g *Garden) Delete(t *testing.T, path string) {
	t.Helper()
	p, err := proxy.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	object := g.objects[p.String()]
	delete(g.objects, p.String())
	g.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(g.version)
	g.record("DELETED", p, object)
}

func (g *Garden) record(kind string, p proxy.Path, object Object) {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	g.history = append(g.history, event{g.version, kind, collection(p), p.Namespace, text})
	g.changed.Broadcast()
}

// Forget has watches of earlier versions end with 410, and ends those that are open.
func (g *Garden) Forget() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.version++
	g.floor, g.history = g.version, nil
	g.changed.Broadcast()
}

// Version is the newest one.
func (g *Garden) Version() string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return strconv.Itoa(g.version)
}

// collection of an object in all namespaces.
func collection(p proxy.Path) string { return p.Group + "/" + p.Resource }

func (g *Garden) serve(w http.ResponseWriter, r *http.Request) {
	g.mutex.Lock()
	g.requests = append(g.requests, r.Clone(r.Context()))
	g.mutex.Unlock()
	if g.Answer != nil && g.Answer(w, r) {
		return
	}
	user, known := g.Users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !known {
		fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	p, err := proxy.ParsePath(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
	if err != nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
		return
	}
	if g.review(w, r, p, user) {
		return
	}
	if user.May != nil && !user.May(verbOf(r, p), p) {
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, user.Name+" may not "+verbOf(r, p)+" "+p.Resource)
		return
	}
	g.answer(w, r, p)
}

func verbOf(r *http.Request, p proxy.Path) string {
	switch {
	case r.URL.Query().Get("watch") == "true":
		return "watch"
	case r.Method == http.MethodGet && p.Name == "":
		return "list"
	}
	return map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete",
	}[r.Method]
}

// review answers what is asked about users.
func (g *Garden) review(w http.ResponseWriter, r *http.Request, p proxy.Path, user User) bool {
	var body struct {
		Spec struct {
			ResourceAttributes struct{ Verb, Group, Resource, Subresource, Namespace, Name string }
		}
	}
	switch p.Resource {
	case "selfsubjectreviews":
		write(w, http.StatusCreated, Object{"status": Object{"userInfo": Object{
			"username": user.Name, "groups": user.Groups,
		}}})
	case "selfsubjectrulesreviews":
		write(w, http.StatusCreated, Object{"status": Object{"incomplete": true, "resourceRules": user.Rules}})
	case "selfsubjectaccessreviews":
		_ = json.NewDecoder(r.Body).Decode(&body)
		a := body.Spec.ResourceAttributes
		asked := proxy.Path{Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace,
			Name: a.Name}
		write(w, http.StatusCreated, Object{"status": Object{"allowed": user.May == nil || user.May(a.Verb, asked)}})
	default:
		return false
	}
	return true
}

func (g *Garden) answer(w http.ResponseWriter, r *http.Request, p proxy.Path) {
	switch {
	case strings.HasSuffix(p.Subresource, "kubeconfig") && g.Kubeconfig != nil:
		level := strings.TrimSuffix(p.Subresource, "kubeconfig")
		write(w, http.StatusCreated, Object{"status": Object{
			"kubeconfig": g.Kubeconfig(level, p.Namespace, p.Name), "expirationTimestamp": "2100-01-01T00:00:00Z",
		}})
	case p.Subresource == "token":
		write(w, http.StatusCreated, Object{"status": Object{"token": "token-of-" + p.Name}})
	case r.URL.Query().Get("watch") == "true":
		g.watch(w, r, p)
	case r.Method == http.MethodGet && p.Name == "":
		g.list(w, r, p)
	case r.Method == http.MethodGet:
		g.mutex.Lock()
		object, found := g.objects[p.String()]
		g.mutex.Unlock()
		if !found {
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, p.Resource+" "+p.Name+" not found")
			return
		}
		write(w, http.StatusOK, object)
	default:
		body, err := io.ReadAll(r.Body)
		object := Object{}
		if err != nil || len(body) > 0 && json.Unmarshal(body, &object) != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no JSON")
			return
		}
		write(w, http.StatusOK, object)
	}
}

// list gives a page. The token to go on is the place where it ended.
func (g *Garden) list(w http.ResponseWriter, r *http.Request, p proxy.Path) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	var keys []string
	for key := range g.objects {
		other, err := proxy.ParsePath(strings.TrimPrefix(key, "/"))
		if err == nil && collection(other) == collection(p) && (p.Namespace == "" || p.Namespace == other.Namespace) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	meta := Object{"resourceVersion": strconv.Itoa(g.version)}
	to := len(keys)
	if limit > 0 && from+limit < to {
		to = from + limit
		meta["continue"] = strconv.Itoa(to)
	}
	items := []Object{}
	for _, key := range keys[min(from, to):to] {
		items = append(items, g.objects[key])
	}
	write(w, http.StatusOK, Object{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items})
}

func (g *Garden) watch(w http.ResponseWriter, r *http.Request, p proxy.Path) {
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	controller := http.NewResponseController(w)
	_ = controller.Flush()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.changed.Broadcast()
	}()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.watching++
	defer func() { g.watching-- }()
	for r.Context().Err() == nil {
		if version < g.floor {
			fmt.Fprintln(w,
				`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`)
			_ = controller.Flush()
			return
		}
		for _, e := range g.history {
			if e.version <= version || e.collection != collection(p) || p.Namespace != "" &&
				p.Namespace != e.namespace {
				continue
			}
			fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.kind, e.object)
			version = e.version
		}
		_ = controller.Flush()
		g.changed.Wait()
	}
}

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	write(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: message,
	})
}
