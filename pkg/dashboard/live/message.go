// Package live tells browsers of objects as they change: one socket for each, and one watch for what several of one
// user's sockets want to know.
package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// Request is a message of a page.
type Request struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
	// Cluster is garden, or shoot/<namespace>/<name>.
	Cluster         string `json:"cluster,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	LabelSelector   string `json:"labelSelector,omitempty"`
	FieldSelector   string `json:"fieldSelector,omitempty"`
	View            View   `json:"view,omitempty"`
	Filter          string `json:"filter,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// Types of requests.
const (
	typeSubscribe   = "subscribe"
	typeUnsubscribe = "unsubscribe"
	typeFilter      = "filter"
	typePing        = "ping"
)

// View says how much of objects a page wants.
type View string

// Views.
const (
	ViewObject View = "object"
	ViewRow    View = "row"
	ViewMeta   View = "meta"
	// ViewRollout is of objects whose changes go from wave to wave, with all waves.
	ViewRollout View = "rollout"
)

// source is what is watched: requests with the same one have the same watch.
type source struct {
	cluster                  string
	group, version, resource string
	namespace, name          string
	labels, fields           string
	view                     View
}

const (
	maxMessage  = 16 << 10
	maxSelector = 2000
	maxFilter   = 500
)

var (
	identifier = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)
	// name is what stands in paths of Kubernetes' APIs.
	name            = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@~-]{0,252}$`)
	clusterName     = regexp.MustCompile(`^(garden|shoot/[a-z0-9-]{1,63}/[a-z0-9-]{1,63})$`)
	resourceVersion = regexp.MustCompile(`^[0-9]{0,20}$`)
)

// ParseRequest reads a message. Its errors are told to the page.
func ParseRequest(text []byte) (*Request, error) {
	r := &Request{}
	if len(text) > maxMessage {
		return nil, reply.BadRequest("the message is larger than %d bytes", maxMessage)
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, reply.BadRequest("the message cannot be read: %v", err)
	}
	switch r.Type {
	case typePing:
		return r, nil
	case typeSubscribe, typeUnsubscribe, typeFilter:
	default:
		return nil, reply.BadRequest("type must be subscribe, unsubscribe, filter or ping")
	}
	if !identifier.MatchString(r.ID) {
		r.ID = "" // What is answered does not repeat it.
		return r, reply.BadRequest("id must be of up to 64 letters, digits, dots, colons, dashes and underscores")
	}
	if len(r.Filter) > maxFilter {
		return r, reply.BadRequest("the filter is longer than %d bytes", maxFilter)
	}
	if r.Type != typeSubscribe {
		return r, nil
	}
	return r, r.check()
}

func (r *Request) check() error {
	if r.View == "" {
		r.View = ViewRow
	}
	for field, problem := range map[string]bool{
		"cluster":       !clusterName.MatchString(r.Cluster),
		"resource":      !name.MatchString(r.Resource),
		"namespace":     r.Namespace != "" && !name.MatchString(r.Namespace),
		"name":          r.Name != "" && !name.MatchString(r.Name),
		"view":          !r.isView(),
		"labelSelector": !isSelector(r.LabelSelector, func(s string) error { _, err := labels.Parse(s); return err }),
		"fieldSelector": !isSelector(r.FieldSelector, func(s string) error {
			_,
				err := fields.ParseSelector(s)
			return err
		}),
		"resourceVersion": !resourceVersion.MatchString(r.ResourceVersion),
		"apiVersion":      !isAPIVersion(r.APIVersion),
	} {
		if problem {
			return reply.BadRequest("%s is not what it can be", field)
		}
	}
	return r.checkPath()
}

// isView tells whether there is such a view of the resource.
func (r *Request) isView() bool {
	if r.View == ViewRollout {
		return isAPIVersion(r.APIVersion) && r.source().renderer() != nil
	}
	return r.View == ViewObject || r.View == ViewRow || r.View == ViewMeta
}

// checkPath tells whether pages may read what is asked for, as through the proxy.
func (r *Request) checkPath() error {
	path, err := proxy.ParsePath(r.source().path())
	if err != nil || path.Resource != r.Resource || path.Name != "" {
		return reply.BadRequest("resource is not what it can be")
	}
	rules := proxy.ShootRules
	if r.Cluster == clusters.Garden {
		rules = proxy.GardenRules
	}
	if err := rules.Check(path, http.MethodGet, nil); err != nil {
		return reply.Error(http.StatusForbidden, reply.ReasonNotProxied, "%v", err)
	}
	return nil
}

func isSelector(text string, parse func(string) error) bool {
	return len(text) <= maxSelector && parse(text) == nil
}

func isAPIVersion(text string) bool {
	version, err := schema.ParseGroupVersion(text)
	return err == nil && name.MatchString(version.Version) && (version.Group == "" || name.MatchString(version.Group))
}

// source of a request that was checked.
func (r *Request) source() source {
	version, _ := schema.ParseGroupVersion(r.APIVersion)
	s := source{
		cluster: r.Cluster, group: version.Group, version: version.Version, resource: r.Resource,
		namespace: r.Namespace,
		name:      r.Name, labels: r.LabelSelector, fields: r.FieldSelector, view: r.View,
	}
	if s.name != "" {
		s.fields = strings.Trim(s.fields+",metadata.name="+s.name, ",")
	}
	return s
}

// path of the collection, without the slash at the beginning.
func (s source) path() string {
	path := "api/" + s.version
	if s.group != "" {
		path = "apis/" + s.group + "/" + s.version
	}
	if s.namespace != "" {
		path += "/namespaces/" + s.namespace
	}
	return path + "/" + s.resource
}

// String is for keys.
func (s source) String() string {
	return fmt.Sprintf("%q", []string{s.cluster, s.path(), s.labels, s.fields, string(s.view)})
}
