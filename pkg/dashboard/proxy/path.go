// Package proxy gives pages of the dashboard the APIs of the garden and of shoots: what they need of them, as the user.
package proxy

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Path is what a path of a Kubernetes API is about.
type Path struct {
	segments []string
	// Group and Version of resources; Version is empty for discovery, OpenAPI documents and /version.
	Group, Version string
	// Namespace, Resource, Name and Subresource; empty where the path does not say.
	Namespace, Resource, Name, Subresource string
}

// errPath says nothing of the path, which may be anything.
var errPath = errors.New("the path is none of a Kubernetes API")

// segment is what names, groups, versions and resources are made of. None of it means anything else to who reads a
// path, escaped or not.
var segment = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@~-]*$`)

// maxSegments is /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
const maxSegments = 8

// ParsePath reads a path as it was sent, escaped, without the slash at the beginning.
func ParsePath(escaped string) (Path, error) {
	if len(escaped) > 2000 {
		return Path{}, errPath
	}
	var p Path
	for part := range strings.SplitSeq(escaped, "/") {
		plain, err := url.PathUnescape(part)
		if err != nil || !segment.MatchString(plain) || len(p.segments) == maxSegments {
			return Path{}, errPath
		}
		p.segments = append(p.segments, plain)
	}
	if first := p.segments[0]; p.isDiscovery() || first != "api" && first != "apis" {
		return p, p.checkDiscovery()
	}
	rest := p.segments[2:]
	p.Version = p.segments[1]
	if p.segments[0] == "apis" {
		p.Group, p.Version, rest = p.segments[1], p.segments[2], p.segments[3:]
	}
	return p, p.readResource(rest)
}

// isDiscovery tells of paths below which there are no objects.
func (p *Path) isDiscovery() bool {
	return p.segments[0] == "version" || p.segments[0] == "api" && len(p.segments) < 3 ||
		p.segments[0] == "apis" && len(p.segments) < 4
}

func (p *Path) checkDiscovery() error {
	switch first := p.segments[0]; {
	case first == "version" && len(p.segments) == 1, first == "api", first == "apis":
		return nil
	case first == "openapi" && len(p.segments) > 1 && p.segments[1] == "v3":
		return nil
	}
	return errPath
}

// readResource reads RESOURCE[/NAME[/SUBRESOURCE]], in a namespace or not. A namespace is an object itself, too.
func (p *Path) readResource(rest []string) error {
	if rest[0] == "namespaces" && len(rest) > 2 && !isNamespaceSubresource(rest) {
		p.Namespace, rest = rest[1], rest[2:]
	}
	switch len(rest) {
	case 3:
		p.Subresource = rest[2]
		fallthrough
	case 2:
		p.Name = rest[1]
		fallthrough
	case 1:
		p.Resource = rest[0]
		return nil
	}
	return errPath
}

func isNamespaceSubresource(rest []string) bool {
	return len(rest) == 3 && (rest[2] == "status" || rest[2] == "finalize")
}

// String is the path again, with nothing in it that was not read.
func (p Path) String() string {
	var result strings.Builder
	for _, part := range p.segments {
		result.WriteByte('/')
		result.WriteString(url.PathEscape(part))
	}
	return result.String()
}

// Rules are what is proxied of a kind of clusters.
type Rules struct {
	// Groups that are; nil for all.
	Groups sets.Set[string]
	// Core are the resources of the group without a name that are; nil for all.
	Core sets.Set[string]
}

var (
	// GardenRules are for the garden.
	GardenRules = Rules{
		Groups: sets.New("", "core.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud",
			"operations.gardener.cloud", "settings.gardener.cloud", "rbac.authorization.k8s.io", "authorization.k8s.io",
			"authentication.k8s.io", "coordination.k8s.io"),
		Core: sets.New("namespaces", "events", "configmaps", "secrets", "serviceaccounts", "resourcequotas"),
	}
	// ShootRules are for shoots, of which users have all that their credential lets them have.
	ShootRules = Rules{}

	// subresources that are of use to pages. Others connect to something, or hand out credentials.
	subresources = sets.New("", "status", "scale", "log", "eviction")
	// withheld are resources whose use is to hand out credentials, or that are old ways around this list.
	withheld = sets.New("certificatesigningrequests", "watch", "proxy", "redirect")
	// secret are resources whose content reaches no page.
	secret = sets.New("secrets", "internalsecrets", "shootstates")
	// reviews are those that tell of nobody but the user.
	reviews = sets.New("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
)

// Why a path is not proxied.
var (
	errGroup       = errors.New("pages need nothing of this group or resource here")
	errSubresource = errors.New("this subresource is not for browsers")
	errWithheld    = errors.New("what hands out credentials is not for browsers")
	errReview      = errors.New("pages ask what their user may do, and nothing of others")
	errCollection  = errors.New("objects are deleted one by one")
	errVerb        = errors.New("this method is not for browsers here")
	errWatch       = errors.New("watches are at /api/live")
)

// Check tells whether a request is proxied.
func (r Rules) Check(p Path, method string, query url.Values) error {
	if wants := query["watch"]; len(wants) > 0 && wants[0] != "false" && wants[0] != "0" {
		return errWatch
	}
	if p.Version == "" {
		if method != "GET" {
			return errVerb
		}
		return nil
	}
	switch {
	case r.Groups != nil && !r.Groups.Has(p.Group), p.Group == "" && r.Core != nil && !r.Core.Has(p.Resource):
		return errGroup
	case withheld.Has(p.Resource):
		return errWithheld
	case !subresources.Has(p.Subresource):
		return errSubresource
	case isReviewGroup(p.Group) && (!reviews.Has(p.Resource) || method != "POST"):
		return errReview
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method):
		return errVerb
	case method == "DELETE" && p.Name == "":
		return errCollection
	}
	return nil
}

func isReviewGroup(group string) bool {
	return group == "authorization.k8s.io" || group == "authentication.k8s.io"
}

// IsSecret tells whether only metadata of the objects may reach a page.
func IsSecret(group, resource string) bool {
	return secret.Has(resource) && (group == "" || group == "core.gardener.cloud")
}

// queries that are passed on.
var queries = sets.New("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch",
	"dryRun", "fieldManager", "fieldValidation", "force", "propagationPolicy", "gracePeriodSeconds", "timeoutSeconds",
	"container", "follow", "previous", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "timestamps")

// query of the request to the cluster. Lists come in pages, as a whole one might not fit into memory.
func (p Path) query(method string, given url.Values) url.Values {
	result := url.Values{}
	for name, values := range given {
		if queries.Has(name) {
			result[name] = values
		}
	}
	if method == "GET" && p.isList() {
		if !isPage(result.Get("limit")) {
			result.Set("limit", maxPage)
		}
	}
	return result
}

func (p Path) isList() bool { return p.Version != "" && p.Name == "" }

// maxPage is the largest page of a list.
const maxPage = "500"

var page = regexp.MustCompile(`^([1-9][0-9]?|[1-4][0-9][0-9]|500)$`)

func isPage(limit string) bool { return page.MatchString(limit) }
