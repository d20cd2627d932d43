package memberapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

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

// clean leaves only the headers that are passed on.
func clean(header http.Header) {
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

// names tells what users and groups of a fleet are called in a member.
type names struct {
	prefix string
	// same leaves names as they are, but for reserved ones.
	same bool
}

// reserved begin names that mean something by themselves in clusters, or that the prefix makes.
var reserved = []string{"system:", "gardener.cloud:", "federation.trellis.garden:", registration.AccessPrefix}

func (n names) of(name string) string {
	isReserved := slices.ContainsFunc(reserved,
		func(start string) bool { return strings.HasPrefix(strings.ToLower(name), start) })
	if n.same && !isReserved {
		return name
	}
	return n.prefix + name
}

// namesIn reads from the Secret of a member's impersonator what the member's owner said about names.
func (s *Server) namesIn(ctx context.Context, impersonator *corev1.Secret) (names, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prefix == "" {
		id, err := registration.Identity(ctx, s.live)
		if err != nil {
			return names{}, err
		}
		s.prefix = registration.NamePrefix(id)
	}
	return names{
		prefix: s.prefix, same: impersonator.Annotations[registration.NamesAnnotation] == registration.NamesSame,
	}, nil
}
