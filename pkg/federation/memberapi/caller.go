package memberapi

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/acting"
)

const (
	anonymous       = "system:anonymous"
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	nodePrefix      = "system:node:"
)

// caller is the user of a request, as the fleet's kube-apiserver knows it.
type caller struct {
	user, uid string
	groups    []string
	// extra has keys that are escaped as in headers.
	extra map[string][]string
}

// frontProxy is how the kube-apiserver shows who it is, and for whom it asks: what Kubernetes publishes in ConfigMap
// kube-system/extension-apiserver-authentication.
type frontProxy struct {
	roots                                  *x509.CertPool
	names, users, uids, groups, extraStart []string
}

func parseFrontProxy(published *corev1.ConfigMap) (*frontProxy, error) {
	p := &frontProxy{roots: x509.NewCertPool()}
	if !p.roots.AppendCertsFromPEM([]byte(published.Data["requestheader-client-ca-file"])) {
		return nil, fmt.Errorf("ConfigMap %s/%s: requestheader-client-ca-file holds no certificate; does "+
			"kube-apiserver run with --requestheader-client-ca-file?",
			published.Namespace, published.Name)
	}
	for key, list := range map[string]*[]string{
		"requestheader-allowed-names": &p.names, "requestheader-username-headers": &p.users,
		"requestheader-uid-headers":   &p.uids,
		"requestheader-group-headers": &p.groups, "requestheader-extra-headers-prefix": &p.extraStart,
	} {
		if text := published.Data[key]; text != "" {
			if err := json.Unmarshal([]byte(text), list); err != nil {
				return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", published.Namespace, published.Name, key, err)
			}
		}
	}
	return p, nil
}

// callerOf believes what the headers say only with the certificate of the kube-apiserver.
func (p *frontProxy) callerOf(r *http.Request) (caller, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return caller{}, errors.New("only the fleet's kube-apiserver is answered, by its client certificate")
	}
	chain := r.TLS.PeerCertificates
	options := x509.VerifyOptions{
		Roots: p.roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, certificate := range chain[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return caller{}, fmt.Errorf("the client certificate is not that of the fleet's kube-apiserver: %w", err)
	}
	if name := chain[0].Subject.CommonName; len(p.names) > 0 && !slices.Contains(p.names, name) {
		return caller{}, fmt.Errorf("the client certificate is for %q, not for one of %s", name,
			strings.Join(p.names, ", "))
	}
	return p.read(r.Header)
}

func (p *frontProxy) read(header http.Header) (caller, error) {
	c := caller{user: first(header, p.users), uid: first(header, p.uids), extra: map[string][]string{}}
	if c.user == "" {
		return c, errors.New("the request names no user")
	}
	for _, name := range p.groups {
		c.groups = append(c.groups, header.Values(name)...)
	}
	for key, values := range header {
		for _, start := range p.extraStart {
			if len(key) > len(start) && strings.EqualFold(key[:len(start)], start) {
				name := strings.ToLower(key[len(start):])
				c.extra[name] = append(c.extra[name], values...)
			}
		}
	}
	return c, nil
}

func first(header http.Header, names []string) string {
	for _, name := range names {
		if value := header.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// handedBack is the caller in the words that Kubernetes takes where impersonation is for some requests only: a service
// account is known by its name, and nobody becomes a node or one of system:masters.
func (c caller) handedBack() (caller, error) {
	if strings.HasPrefix(c.user, nodePrefix) || slices.Contains(c.groups, user.NodesGroup) {
		return caller{}, errors.New("requests of nodes are not handed back to the fleet")
	}
	namespace, _, err := serviceaccount.SplitUsername(c.user)
	if err == nil {
		given := append(serviceaccount.MakeGroupNames(namespace), authenticated)
		for _, group := range c.groups {
			if !slices.Contains(given, group) {
				return caller{}, fmt.Errorf("requests of service accounts in other groups than their own, such as "+
					"%s, are not handed back to the fleet", group)
			}
		}
		return caller{user: c.user}, nil
	}
	c.groups = slices.Clone(c.groups)
	for i, group := range c.groups {
		if group == user.SystemPrivilegedGroup {
			c.groups[i] = fleetv1alpha1.MastersGroup
		}
	}
	return c, nil
}

// actInFleet has the fleet treat a request as one of the caller, down to audit and admission.
func (c caller) actInFleet(header http.Header) {
	acting.Clean(header)
	header.Set(acting.ImpersonateUser, c.user)
	if c.uid != "" {
		header.Set(acting.ImpersonateUID, c.uid)
	}
	for _, group := range c.groups {
		header.Add(acting.ImpersonateGroup, group)
	}
	for key, values := range c.extra {
		for _, value := range values {
			header.Add(acting.ImpersonateExtra+key, value)
		}
	}
}

// mayActInMembers refuses those whom the fleet does not know.
func (c caller) mayActInMembers() error {
	if c.user == anonymous || slices.Contains(c.groups, unauthenticated) {
		return errors.New("the request has no credentials that the fleet knows")
	}
	return nil
}

// inMembers is the caller as members and their agents are told.
func (c caller) inMembers() acting.User { return acting.User{Name: c.user, Groups: c.groups} }
