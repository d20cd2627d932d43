package kills

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// object is one of the shoot.
type object = map[string]any

// path is where the shoot's API server has an object: the path of its group and version, the resource, and the names.
type path struct{ version, resource, namespace, name string }

// cluster is what the shoot's API server holds. Objects are replaced and never changed.
type cluster struct {
	objects map[path]object
	// version counts changes.
	version int
}

func (c cluster) clone() cluster {
	copied := cluster{objects: map[path]object{}, version: c.version}
	maps.Copy(copied.objects, c.objects)
	return copied
}

func (c *cluster) put(at path, o object) {
	c.objects[at] = o
	c.version++
}

func (c *cluster) remove(at path) {
	delete(c.objects, at)
	c.version++
}

// kinds are those that the shoot's API server offers, by group and version.
var kinds = map[string]map[string]string{
	"/api/v1": {
		"nodes": "Node", "pods": "Pod", "namespaces": "Namespace", "secrets": "Secret", "services": "Service",
		"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim",
	},
	"/apis/apps/v1": {"deployments": "Deployment"},
	"/apis/admissionregistration.k8s.io/v1": {
		"validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
	},
	"/apis/apiextensions.k8s.io/v1":   {"customresourcedefinitions": "CustomResourceDefinition"},
	"/apis/apiregistration.k8s.io/v1": {"apiservices": "APIService"},
	"/apis/discovery.k8s.io/v1":       {"endpointslices": "EndpointSlice"},
	"/apis/storage.k8s.io/v1":         {"volumeattachments": "VolumeAttachment"},
	"/apis/coordination.k8s.io/v1":    {"leases": "Lease"},
}

// inNamespaces are the resources that lie in namespaces.
var inNamespaces = []string{
	"pods", "secrets", "services", "persistentvolumeclaims", "deployments", "endpointslices", "leases",
}

var (
	// worlds are those whose shoots are served, by the first part of the address' path. The server is outside of the
	// bubbles: time stands still in a bubble as long as its answer is awaited.
	worlds  sync.Map
	counter atomic.Int64
	server  = sync.OnceValue(func() *httptest.Server {
		// A connection that idles would keep a bubble's time from passing.
		http.DefaultTransport.(*http.Transport).DisableKeepAlives = true
		return httptest.NewServer(http.HandlerFunc(serve))
	})
)

// serveCluster gives the shoot of a world an address, until the returned function is called.
func serveCluster(w *world) (stop func()) {
	id := strconv.FormatInt(counter.Add(1), 10)
	worlds.Store(id, w)
	w.address = server().URL + "/" + id
	return func() { worlds.Delete(id) }
}

func serve(rw http.ResponseWriter, request *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	found, ok := worlds.Load(id)
	if !ok {
		reply(rw, http.StatusServiceUnavailable, failure("ServiceUnavailable", http.StatusServiceUnavailable))
		return
	}
	url := "/" + rest
	if document := discovery(url); document != nil {
		reply(rw, http.StatusOK, document)
		return
	}
	if strings.HasSuffix(url, "/proxy/healthz") {
		_, _ = io.WriteString(rw, "ok")
		return
	}
	w := found.(*world)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.handle(rw, request, parse(url))
}

// handle answers a request for objects.
func (w *world) handle(rw http.ResponseWriter, request *http.Request, at path) {
	if kinds[at.version][at.resource] == "" {
		reply(rw, http.StatusNotFound, failure("NotFound", http.StatusNotFound))
		return
	}
	onlyMetadata := strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
	if at.name == "" {
		reply(rw, http.StatusOK, w.list(at, onlyMetadata))
		return
	}
	found, exists := w.cluster.objects[at]
	switch {
	case !exists:
		reply(rw, http.StatusNotFound, failure("NotFound", http.StatusNotFound))
	case request.Method == http.MethodDelete:
		w.cluster.remove(at)
		reply(rw, http.StatusOK, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case onlyMetadata:
		reply(rw, http.StatusOK, metadataOf(found))
	default:
		reply(rw, http.StatusOK, found)
	}
}

// list has the objects of a resource.
func (w *world) list(at path, onlyMetadata bool) object {
	items := []object{}
	for _, found := range slices.SortedFunc(maps.Keys(w.cluster.objects), func(a, b path) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	}) {
		if found.version != at.version || found.resource != at.resource ||
			at.namespace != "" && found.namespace != at.namespace {
			continue
		}
		item := w.cluster.objects[found]
		if onlyMetadata {
			item = metadataOf(item)
		}
		items = append(items, item)
	}
	list := object{
		"kind": kinds[at.version][at.resource] + "List", "apiVersion": groupVersion(at.version), "items": items,
		"metadata": object{},
	}
	if onlyMetadata {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return list
}

func metadataOf(found object) object {
	return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found["metadata"]}
}

// parse reads the path of a resource or an object.
func parse(url string) path {
	parts := strings.Split(strings.Trim(url, "/"), "/")
	length := 2
	if parts[0] == "apis" {
		length = 3
	}
	length = min(length, len(parts))
	at := path{version: "/" + strings.Join(parts[:length], "/")}
	parts = parts[length:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 0 {
		at.resource = parts[0]
	}
	if len(parts) > 1 {
		at.name = parts[1]
	}
	return at
}

func groupVersion(version string) string {
	return strings.TrimPrefix(strings.TrimPrefix(version, "/apis/"), "/api/")
}

// discovery is a document about what is offered; nil for other paths.
func discovery(url string) object {
	switch url {
	case "/api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		groups := []object{}
		for version := range kinds {
			if strings.HasPrefix(version, "/apis/") {
				groups = append(groups, group(version))
			}
		}
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	}
	if offered, found := kinds[url]; found {
		return resources(url, offered)
	}
	if offered, found := kinds[url+"/v1"]; found && len(offered) > 0 && url != "/api" {
		return group(url + "/v1")
	}
	return nil
}

func group(version string) object {
	name, _, _ := strings.Cut(groupVersion(version), "/")
	offered := object{"groupVersion": groupVersion(version), "version": "v1"}
	return object{
		"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": []object{offered},
		"preferredVersion": offered,
	}
}

func resources(version string, offered map[string]string) object {
	list := []object{}
	for name, kind := range offered {
		list = append(list, object{
			"name": name, "kind": kind, "namespaced": slices.Contains(inNamespaces, name), "singularName": "",
			"verbs": []string{"get", "list", "delete", "patch"},
		})
	}
	return object{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion(version), "resources": list,
	}
}

func failure(reason string, code int) object {
	return object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason,
	}
}

func reply(rw http.ResponseWriter, code int, document object) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(document)
}
