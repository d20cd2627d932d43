package memberapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/outside"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
	"github.com/trellis-garden/trellis/pkg/reply"
)

// Server answers what the fleet's kube-apiserver passes on.
type Server struct {
	// fleet reads Clusters; live reads what is not worth watching.
	fleet, live client.Reader
	log         logr.Logger
	back        *httputil.ReverseProxy
	members     memberProxies
	tunnels     *tunnel.Tunnels

	mu    sync.Mutex
	front *frontProxy
	// readFrontAt is when front is read anew.
	readFrontAt time.Time
	// frontProblem is why front could not be read anew, empty when it was.
	frontProblem string
	// prefix of the fleet's users in members, once it is known.
	prefix string
}

// New returns a server for the fleet that config leads to, which connects to members by dial, or by the tunnels that
// their agents have opened. Its user must be allowed to impersonate others in the fleet, for requests on Clusters.
func New(config *rest.Config, fleet, live client.Reader, dial outside.Dial, tunnels *tunnel.Tunnels,
	log logr.Logger) (*Server, error) {
	back, err := handingBack(config)
	if err != nil {
		return nil, fmt.Errorf("connection to the fleet: %w", err)
	}
	return &Server{
		fleet: fleet, live: live, log: log, back: back, members: memberProxies{dial: dial}, tunnels: tunnels,
	}, nil
}

var (
	prefix    = "/apis/" + public
	trialPath = "/apis/" + trial.String()
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	front, err := s.frontProxy(r.Context())
	if err != nil {
		reply.Refusal(w, err)
		return
	}
	who, err := front.callerOf(r)
	if err != nil {
		reply.Refusal(w, apierrors.NewUnauthorized(err.Error()))
		return
	}
	name, rest, isProxy := splitProxyPath(r.URL)
	agentOf, isAttach := splitAttachPath(r.URL.Path)
	switch {
	case isProxy:
		s.toMember(w, r, who, name, rest)
	case isAttach:
		s.attach(w, r, who, agentOf)
	case r.URL.Path == prefix && r.Method == http.MethodGet:
		reply.JSON(w, http.StatusOK, resources())
	case r.URL.Path == trialPath:
		reply.JSON(w, http.StatusOK, nothing())
	case strings.HasPrefix(r.URL.Path, prefix+"/"):
		s.handBack(w, r, who)
	default:
		reply.Refusal(w, &apierrors.StatusError{
			ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				Message: "not served here",
			},
		})
	}
}

// splitProxyPath reads a path as the kube-apiserver does that has authorized it: the subresource proxy of exactly one
// Cluster.
func splitProxyPath(u *url.URL) (name string, rest url.URL, ok bool) {
	name, below, found := strings.Cut(strings.TrimPrefix(u.Path, prefix+"/clusters/"), "/")
	if !found || name == "" || !strings.HasPrefix(u.Path, prefix+"/clusters/") ||
		below != "proxy" && !strings.HasPrefix(below, "proxy/") {
		return "", url.URL{}, false
	}
	rest = url.URL{Path: "/" + strings.TrimPrefix(strings.TrimPrefix(below, "proxy"), "/"), RawQuery: u.RawQuery}
	if raw, found := strings.CutPrefix(u.RawPath, prefix+"/clusters/"+name+"/proxy/"); found {
		rest.RawPath = "/" + raw
	}
	return name, rest, true
}

const (
	// frontAge is how soon a new authority of the kube-apiserver is known.
	frontAge = 30 * time.Second
	// frontWait is how long requests wait for a newer one than that which is known. The kube-apiserver finds out
	// whether it reaches the server by such requests, and gives them five seconds even when it is slow itself.
	frontWait = time.Second
	// frontRetry is how soon it is read again when that failed.
	frontRetry = 5 * time.Second
)

// frontProxy reads what the fleet publishes. What was read before holds while it cannot be read.
func (s *Server) frontProxy(ctx context.Context) (*frontProxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front != nil {
		if time.Now().Before(s.readFrontAt) {
			return s.front, nil
		}
		bounded, cancel := context.WithTimeout(ctx, frontWait)
		defer cancel()
		ctx = bounded
	}
	published := &corev1.ConfigMap{}
	err := s.live.Get(ctx, client.ObjectKey{
		Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication",
	}, published)
	s.readFrontAt = time.Now().Add(frontRetry)
	if err == nil {
		var front *frontProxy
		if front, err = parseFrontProxy(published); err == nil {
			s.front, s.readFrontAt = front, time.Now().Add(frontAge)
		}
	}
	if s.front == nil {
		return nil, fmt.Errorf("who the fleet's kube-apiserver is cannot be found out: %w", err)
	}
	s.noteFront(err)
	return s.front, nil
}

// noteFront logs why what is known of the kube-apiserver could not be read anew, once per reason, and that it can be
// again.
func (s *Server) noteFront(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == s.frontProblem {
		return
	}
	s.frontProblem = problem
	if err != nil {
		s.log.Error(err, "Cannot read anew who the fleet's kube-apiserver is; what was read before holds")
		return
	}
	s.log.Info("Who the fleet's kube-apiserver is can be read again")
}
