package memberapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
	"github.com/trellis-garden/trellis/pkg/reply"
)

var clustersResource = clusterv1alpha1.GroupVersion.WithResource("clusters").GroupResource()

// maxHops is how many fleets a request may go through.
const maxHops = 3

// toMember passes a request on to a member, as one of the caller there.
func (s *Server) toMember(w http.ResponseWriter, r *http.Request, who caller, name string, below url.URL) {
	if err := who.mayActInMembers(); err != nil {
		reply.Refusal(w, apierrors.NewForbidden(clustersResource, name, err))
		return
	}
	if slices.Contains(strings.Split(below.Path, "/"), "..") {
		reply.Refusal(w, apierrors.NewBadRequest(`a path in a member must not have ".." in it`))
		return
	}
	hops, _ := strconv.Atoi(r.Header.Get(acting.HopsHeader))
	if hops < 0 || hops >= maxHops {
		reply.Refusal(w, apierrors.NewForbidden(clustersResource, name,
			fmt.Errorf("the request has gone through %d fleets; does spec.apiEndpoint lead back to its own fleet?",
				hops)))
		return
	}
	line, act, err := s.lineTo(r.Context(), who, name)
	if err != nil {
		reply.Refusal(w, err)
		return
	}
	s.log.V(1).Info("Passing a request on to a member", "member", name, "user", who.user, "method", r.Method, "path",
		below.Path)
	proxy := &httputil.ReverseProxy{
		Transport:     line.transport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			act(who.inMembers(), p.Out.Header)
			p.Out.Header.Set(acting.HopsHeader, strconv.Itoa(hops+1))
			p.Out.URL, p.Out.Host = line.urlOf(below), line.base.Host
		},
		ModifyResponse: func(response *http.Response) error { return accepted(line.refusal, response) },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { notAsked(w, name, err) },
	}
	proxy.ServeHTTP(w, r)
}

// accepted refuses redirections: who asks would follow with the credentials for the fleet. And it tells a token that
// the member does not know from one of the user's.
func accepted(refusal string, response *http.Response) error {
	switch code := response.StatusCode; {
	case code >= 300 && code < 400 && code != http.StatusNotModified:
		return fmt.Errorf("it sends who asks elsewhere (%s), which a member may not", response.Status)
	case code != http.StatusUnauthorized:
		response.Header.Del("Set-Cookie")
		return nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	_ = response.Body.Close()
	return errors.New(refusal)
}

func notAsked(w http.ResponseWriter, name string, err error) {
	if tunnel.IsBusy(err) {
		reply.Refusal(w, tooMany(name, err))
		return
	}
	reply.Refusal(w, apierrors.NewServiceUnavailable(fmt.Sprintf("member %s cannot be asked: %v", name, err)))
}

func tooMany(name string, err error) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("member %s: %v", name, err), 1)
}

func howTo(name string) string {
	return fmt.Sprintf("`trellisctl join %s` makes another one, or store in Secret %s/<name>, key %s, the token of "+
		"an account that may impersonate "+
		"users and groups there, and name the Secret in spec.impersonatorSecretRef", name,
		clusterv1alpha1.CredentialsNamespace, clusterv1alpha1.SecretToken)
}

// act has a request be one of a user of the fleet where it goes to.
type act func(acting.User, http.Header)

// lineTo finds out how a member is reached, and how users act in it.
func (s *Server) lineTo(ctx context.Context, who caller, name string) (*line, act, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := s.fleet.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, nil, err
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		line, err := s.byAgent(ctx, who, cluster)
		return line, acting.User.Tell, err
	}
	return s.directly(ctx, cluster)
}

// directly is the line to a member that the fleet talks to itself, with the token of who may impersonate there.
func (s *Server) directly(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*line, act, error) {
	name := cluster.Name
	if cluster.Spec.ImpersonatorSecretRef == nil {
		return nil, nil, apierrors.NewForbidden(clustersResource, name,
			fmt.Errorf("spec.impersonatorSecretRef is empty; %s", howTo(name)))
	}
	impersonator, err := s.secret(ctx, name, "spec.impersonatorSecretRef", cluster.Spec.ImpersonatorSecretRef)
	if err != nil {
		return nil, nil, err
	}
	if len(impersonator.Data[clusterv1alpha1.SecretToken]) == 0 {
		return nil, nil, apierrors.NewForbidden(clustersResource, name,
			fmt.Errorf("the Secret of spec.impersonatorSecretRef has no token; %s", howTo(name)))
	}
	if cluster.Spec.SecretRef == nil {
		return nil, nil, apierrors.NewForbidden(clustersResource, name,
			fmt.Errorf("spec.secretRef is empty: it tells whose certificate the member's API has"))
	}
	credentials, err := s.secret(ctx, name, "spec.secretRef", cluster.Spec.SecretRef)
	if err != nil {
		return nil, nil, err
	}
	called, err := s.namesIn(ctx, impersonator)
	if err != nil {
		return nil, nil, err
	}
	line, err := s.members.to(cluster, credentials)
	token := string(impersonator.Data[clusterv1alpha1.SecretToken])
	return line, func(who acting.User, header http.Header) { who.In(header, token, called) }, err
}

func (s *Server) secret(ctx context.Context, name, field string,
	ref *clusterv1alpha1.LocalSecretReference) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewForbidden(clustersResource, name,
			fmt.Errorf("the Secret of %s does not exist; %s", field, howTo(name)))
	}
	return secret, err
}

// line is the way to a member, without credentials.
type line struct {
	version   string
	base      *url.URL
	transport http.RoundTripper
	// refusal tells what to do when the member does not know who asks it for users of the fleet.
	refusal string
}

// urlOf keeps what precedes the API in a member's address.
func (l *line) urlOf(below url.URL) *url.URL {
	target := *l.base
	target.Path, target.RawQuery = strings.TrimSuffix(l.base.Path, "/")+below.Path, below.RawQuery
	if below.RawPath != "" {
		target.RawPath = strings.TrimSuffix(l.base.EscapedPath(), "/") + below.RawPath
	}
	return &target
}

// memberProxies keeps connections open between requests.
type memberProxies struct {
	dial outside.Dial

	mu    sync.Mutex
	lines map[string]*line
}

func (m *memberProxies) to(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*line, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := fmt.Sprint(cluster.UID, cluster.Generation, secret.UID, secret.ResourceVersion)
	known := m.lines[cluster.Name]
	if known != nil && known.version == version {
		return known, nil
	}
	made, err := newLine(cluster, secret, m.dial)
	if err != nil {
		return nil, err
	}
	if known != nil {
		known.transport.(*http.Transport).CloseIdleConnections()
	}
	if m.lines == nil {
		m.lines = map[string]*line{}
	}
	made.version = version
	m.lines[cluster.Name] = made
	return made, nil
}

// newLine leaves the fleet's own credentials behind. HTTP/2 is left out because it knows no upgrades, which exec needs.
func newLine(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, dial outside.Dial) (*line, error) {
	config, err := members.RESTConfig(cluster, secret)
	if err != nil {
		return nil, err
	}
	config = rest.AnonymousClientConfig(config)
	config.NextProtos = []string{"http/1.1"}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("member %s: spec.apiEndpoint: %w", cluster.Name, err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", cluster.Name, err)
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	refusal := "it does not accept the token of spec.impersonatorSecretRef; " + howTo(cluster.Name)
	return &line{base: base, refusal: refusal, transport: &http.Transport{
		Proxy: proxy, ProxyConnectHeader: members.ProxyHeader(cluster), DialContext: dial, TLSClientConfig: tlsConfig,
		DisableCompression:  true,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}}, nil
}
