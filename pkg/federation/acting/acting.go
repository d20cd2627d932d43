// Package acting has requests be those of a fleet's users in a member: which of their headers go on, and what users
// are called there. Who talks to the member does it: the fleet, or the member's agent.
package acting

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// Impersonation headers of Kubernetes.
const (
	ImpersonateUser  = "Impersonate-User"
	ImpersonateUID   = "Impersonate-Uid"
	ImpersonateGroup = "Impersonate-Group"
	ImpersonateExtra = "Impersonate-Extra-"
)

// HopsHeader counts the fleets that a request has gone through. A fleet may be a member of another. One that is its
// own member would ask itself for ever.
const HopsHeader = "X-Trellis-Fleet-Hops"

// passed are the headers of a request that go on to where it is answered. All others stay behind: they could say who
// asks, in the way of one authenticating proxy or another, or be those that a metadata service of a cloud asks for.
var passed = []string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Encoding",
	"Content-Type",
	"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range",
	"Kubectl-Command", "Kubectl-Session", "Traceparent", "Tracestate", "User-Agent",
	// What follows is for exec, port-forward and the like. Connection tells by now of the upgrade only.
	"Connection", "Upgrade", "Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol",
	"Sec-Websocket-Version", "X-Stream-Protocol-Version",
}

// tokenProtocol begins a protocol of a WebSocket by which Kubernetes' API servers take a token.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// Clean leaves only the headers that are passed on.
func Clean(header http.Header) {
	for key := range header {
		if !slices.Contains(passed, key) {
			delete(header, key)
		}
	}
	protocols := strings.Split(strings.Join(header.Values("Sec-Websocket-Protocol"), ","), ",")
	kept := slices.DeleteFunc(protocols, func(protocol string) bool {
		protocol = strings.TrimSpace(protocol)
		return protocol == "" || strings.HasPrefix(strings.ToLower(protocol), tokenProtocol)
	})
	header.Del("Sec-Websocket-Protocol")
	if len(kept) > 0 {
		header.Set("Sec-Websocket-Protocol", strings.Join(kept, ","))
	}
}

// Names tells what users and groups of a fleet are called in a member.
type Names struct {
	Prefix string
	// Same leaves names as they are, but for reserved ones.
	Same bool
}

// NamesBy follows what the owner of a member said, as the value of registration.NamesAnnotation.
func NamesBy(prefix, owner string) Names {
	return Names{Prefix: prefix, Same: owner == registration.NamesSame}
}

// reserved begin names that mean something by themselves in clusters, or that the prefix makes.
var reserved = []string{"system:", "gardener.cloud:", "federation.trellis.garden:", registration.AccessPrefix}

// Of is what a user or group is called in the member.
func (n Names) Of(name string) string {
	isReserved := slices.ContainsFunc(reserved,
		func(start string) bool { return strings.HasPrefix(strings.ToLower(name), start) })
	if n.Same && !isReserved {
		return name
	}
	return n.Prefix + name
}

// User of a fleet, as the fleet knows them.
type User struct {
	Name   string
	Groups []string
}

// In has a request be one of the user in a member, by the token of who may impersonate there. The member itself adds
// that the user is authenticated.
func (u User) In(header http.Header, token string, called Names) {
	Clean(header)
	header.Set("Authorization", "Bearer "+token)
	header.Set(ImpersonateUser, called.Of(u.Name))
	for _, group := range u.Groups {
		if group != user.AllAuthenticated {
			header.Add(ImpersonateGroup, called.Of(group))
		}
	}
}

// Tell an agent whose request it is. What the user is called in its member, the agent decides.
func (u User) Tell(header http.Header) {
	Clean(header)
	header.Set(ImpersonateUser, u.Name)
	for _, group := range u.Groups {
		header.Add(ImpersonateGroup, group)
	}
}

// Told is whose request it is that a fleet passes on to an agent.
func Told(header http.Header) (User, error) {
	names := header.Values(ImpersonateUser)
	if len(names) != 1 || names[0] == "" {
		return User{}, errors.New("the request does not tell which one user of the fleet it is from")
	}
	return User{Name: names[0], Groups: header.Values(ImpersonateGroup)}, nil
}
