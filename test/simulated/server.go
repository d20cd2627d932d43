// Package simulated is a member cluster that lives in memory: an HTTP server that speaks as much of the Kubernetes API
// as the federation asks of members. It stores what it is given, without defaults, validation and controllers.
// Benchmarks take it to have hundreds of members on one machine, tests to have one that answers slowly or with too
// much.
package simulated

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

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Resource that a server offers.
type Resource struct {
	Group, Version, Name, Kind string
	Namespaced                 bool
}

// groupVersion is "v1" for the core group.
func (r Resource) groupVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Resources that every server offers.
var Resources = []Resource{
	{"", "v1", "namespaces", "Namespace", false}, {"", "v1", "nodes", "Node", false}, {"", "v1", "pods", "Pod", true},
	{"", "v1", "configmaps", "ConfigMap", true}, {"", "v1", "secrets", "Secret", true},
	{"apps", "v1", "deployments", "Deployment", true},
}

type object = map[string]any

// Server is one member.
type Server struct {
	*httptest.Server
	// Intercept may answer a request itself, which it tells by true. It is set before the first request.
	Intercept func(http.ResponseWriter, *http.Request) bool
	// Changed is told of every object that is applied, Removed of every one that is removed, both with the lock held:
	// they may change the value, but not call the server.
	Changed func(resource, namespace, name string, value object)
	Removed func(resource, namespace, name string)

	// identity is a part of the UIDs of this server's objects.
	identity string

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]object
	watchers map[*watcher]struct{}
}

type watcher struct {
	path     path
	selector labels.Selector
	events   chan []byte
	lost     chan struct{}
}

// New starts a server, which speaks HTTP/2 over TLS as a kube-apiserver does; Close ends it.
func New() *Server {
	s := &Server{
		identity: string(uuid.NewUUID()), version: 1, objects: map[string]map[string]object{},
		watchers: map[*watcher]struct{}{},
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

// Close ends the server and all watches.
func (s *Server) Close() {
	s.CloseClientConnections()
	s.Server.Close()
}

// path of a request: a resource, and the namespace and name if they are given.
type path struct {
	resource                     Resource
	namespace, name, subresource string
}

func (p path) key() string { return p.namespace + "/" + p.name }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.Intercept != nil && s.Intercept(w, r) {
		return
	}
	switch r.URL.Path {
	case "/readyz":
		_, _ = io.WriteString(w, "ok")
		return
	case "/version":
		reply(w, http.StatusOK, object{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
		return
	}
	if document := discovery(r.URL.Path); document != nil {
		reply(w, http.StatusOK, document)
		return
	}
	p, ok := parse(r.URL.Path)
	if !ok {
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	s.handle(w, r, p)
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request, p path) {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, p)
	case r.Method == http.MethodGet && p.name == "":
		s.list(w, r, p)
	case r.Method == http.MethodGet:
		s.get(w, p)
	case r.Method == http.MethodDelete:
		s.remove(w, p)
	default:
		s.write(w, r, p)
	}
}

// parse reads /api/v1/… and /apis/<group>/<version>/….
func parse(url string) (path, bool) {
	parts := strings.Split(strings.Trim(url, "/"), "/")
	var group string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	default:
		return path{}, false
	}
	version, parts := parts[0], parts[1:]
	var p path
	if len(parts) > 2 && parts[0] == "namespaces" {
		p.namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(Resources,
		func(r Resource) bool { return r.Group == group && r.Version == version && r.Name == parts[0] })
	if i < 0 {
		return path{}, false
	}
	p.resource = Resources[i]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	return p, true
}

func (s *Server) get(w http.ResponseWriter, p path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.objects[p.resource.Name][p.key()]; ok {
		reply(w, http.StatusOK, found)
		return
	}
	fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", p.resource.Name, p.name))
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, p path) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	for _, o := range s.objects[p.resource.Name] {
		if p.holds(o, selector) {
			items = append(items, o)
		}
	}
	reply(w, http.StatusOK, object{
		"kind": p.resource.Kind + "List", "apiVersion": p.resource.groupVersion(),
		"metadata": object{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

// holds tells whether a list or watch of the path shows an object.
func (p path) holds(o object, selector labels.Selector) bool {
	metadata, _ := o["metadata"].(object)
	if p.namespace != "" && metadata["namespace"] != p.namespace {
		return false
	}
	set := labels.Set{}
	given, _ := metadata["labels"].(object)
	for key, value := range given {
		set[key] = fmt.Sprint(value)
	}
	return selector.Matches(set)
}

func (s *Server) remove(w http.ResponseWriter, p path) {
	if !s.drop(p) {
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", p.resource.Name, p.name))
		return
	}
	reply(w, http.StatusOK, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

// drop an object, if it is there.
func (s *Server) drop(p path) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[p.resource.Name][p.key()]
	if !ok {
		return false
	}
	delete(s.objects[p.resource.Name], p.key())
	s.version++
	s.announce("DELETED", p, found)
	if s.Removed != nil {
		s.Removed(p.resource.Name, p.namespace, p.name)
	}
	return true
}

// Delete removes an object as its controllers would.
func (s *Server) Delete(resource, namespace, name string) {
	s.drop(path{resource: resourceNamed(resource), namespace: namespace, name: name})
}

func resourceNamed(name string) Resource {
	return Resources[slices.IndexFunc(Resources, func(r Resource) bool { return r.Name == name })]
}

// write creates, updates, merges or applies: what is given replaces what is there, field by field.
func (s *Server) write(w http.ResponseWriter, r *http.Request, p path) {
	var given object
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	metadata, _ := given["metadata"].(object)
	if name, _ := metadata["name"].(string); p.name == "" {
		p.name = name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.objects["namespaces"]["/"+p.namespace]; p.namespace != "" && !exists {
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("namespaces %q not found", p.namespace))
		return
	}
	_, exists := s.objects[p.resource.Name][p.key()]
	if exists && r.Method == http.MethodPost {
		fail(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", p.resource.Name, p.name))
		return
	}
	reply(w, http.StatusOK, s.store(p, given))
}

// Put stores an object as its controllers would.
func (s *Server) Put(resource, namespace, name string, value map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(path{resource: resourceNamed(resource), namespace: namespace, name: name}, value)
}

func (s *Server) store(p path, given object) object {
	old, exists := s.objects[p.resource.Name][p.key()]
	stored := merge(old, given)
	metadata, _ := stored["metadata"].(object)
	if metadata == nil {
		metadata = object{}
		stored["metadata"] = metadata
	}
	s.version++
	metadata["name"] = p.name
	if p.namespace != "" {
		metadata["namespace"] = p.namespace
	}
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	event := "MODIFIED"
	if !exists {
		event = "ADDED"
		metadata["uid"] = s.identity + "-" + strconv.Itoa(s.version)
		metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
	}
	stored["apiVersion"], stored["kind"] = p.resource.groupVersion(), p.resource.Kind
	if s.objects[p.resource.Name] == nil {
		s.objects[p.resource.Name] = map[string]object{}
	}
	s.objects[p.resource.Name][p.key()] = stored
	if s.Changed != nil {
		s.Changed(p.resource.Name, p.namespace, p.name, stored)
	}
	s.announce(event, p, stored)
	return stored
}

// merge gives a new object; the old one may still be read by others.
func merge(old, given object) object {
	result := make(object, len(old)+len(given))
	for key, value := range old {
		result[key] = value
	}
	for key, value := range given {
		oldPart, _ := old[key].(object)
		if part, ok := value.(object); ok {
			result[key] = merge(oldPart, part)
		} else if value == nil {
			delete(result, key)
		} else {
			result[key] = value
		}
	}
	return result
}

// Len is the number of objects of a resource.
func (s *Server) Len(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects[resource])
}

func reply(w http.ResponseWriter, code int, document object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document)
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	reply(w, code, object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
	})
}
