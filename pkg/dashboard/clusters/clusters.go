package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

// Garden is the name of the garden among clusters.
const Garden = "garden"

const (
	// shootCredential is how long what the garden gives for a shoot is good.
	shootCredential = time.Hour
	// renewBefore its end it is no longer used.
	renewBefore = 10 * time.Minute
)

// Options say how clusters are reached.
type Options struct {
	// Server is the URL of the garden's API.
	Server string
	// ServerName that its certificate has to be for, if not the host of Server.
	ServerName string
	// CA that signed its certificate, in PEM; empty for those of the system.
	CA []byte
	// Endpoints are where domains are reached that are not to be looked up.
	Endpoints []Endpoint
	// Memory for large answers.
	Memory *limits.Bytes
	// Now is the time.
	Now func() time.Time
}

// Clusters connects users.
type Clusters struct {
	base      *url.URL
	tls       *tls.Config
	shared    http.RoundTripper
	endpoints []Endpoint
	memory    *limits.Bytes
	// authorities of the garden; none if those of the system are trusted.
	authorities []*x509.Certificate
	now         func() time.Time
	open        *pool
}

// New connects nobody yet.
func New(options Options) (*Clusters, error) {
	base, err := ServerURL(options.Server)
	if err != nil {
		return nil, fmt.Errorf("the garden: %w", err)
	}
	config, err := serverTLS(options.CA, options.ServerName)
	if err != nil {
		return nil, fmt.Errorf("the garden: %w", err)
	}
	return &Clusters{
		base: base, tls: config, shared: withTLS(options.Endpoints, config), endpoints: options.Endpoints,
		memory: options.Memory, authorities: certificatesIn(options.CA), now: options.Now, open: newPool(options.Now),
	}, nil
}

// certificatesIn reads authorities in PEM, which were found to be good before.
func certificatesIn(text []byte) (found []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, certificate)
		}
	}
	return found
}

// Authorities are those of the garden's API; none if those of the system are trusted.
func (c *Clusters) Authorities() []*x509.Certificate { return c.authorities }

// Garden is the garden for a user. Connections without a client certificate are shared by all users.
func (c *Clusters) Garden(credential session.Credential) (*Cluster, error) {
	cluster := &Cluster{Name: Garden, Base: c.base, Credential: credential.Hash(), Memory: c.memory}
	if len(credential.Certificate) == 0 {
		cluster.Transport = &transport{base: c.shared, token: credential.Token}
		return cluster, nil
	}
	return c.open.get(context.Background(), Garden+" "+cluster.Credential,
		func(context.Context) (*Cluster, time.Time, error) {
			pair, err := tls.X509KeyPair(credential.Certificate, credential.Key)
			if err != nil {
				return nil, time.Time{}, fmt.Errorf("client certificate: %w", err)
			}
			config := c.tls.Clone()
			config.Certificates = []tls.Certificate{pair}
			cluster.Transport = &transport{base: withTLS(c.endpoints, config)}
			return cluster, time.Time{}, nil
		})
}

// Anybody is the garden for somebody without a credential.
func (c *Clusters) Anybody() *Cluster {
	return &Cluster{Name: Garden, Base: c.base, Transport: &transport{base: c.shared}, Memory: c.memory}
}

// Shoot is a shoot for a user: as an administrator if they may be one, as a viewer otherwise. The garden is asked once
// in an hour.
func (c *Clusters) Shoot(ctx context.Context, credential session.Credential, namespace,
	name string) (*Cluster, error) {
	if err := checkNames(namespace, name); err != nil {
		return nil, err
	}
	garden, err := c.Garden(credential)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{
		Name: "shoot/" + namespace + "/" + name, Credential: garden.Credential, Memory: c.memory,
	}
	return c.open.get(ctx, cluster.Name+" "+cluster.Credential, func(ctx context.Context) (*Cluster, time.Time, error) {
		raw, expires, err := Kubeconfig(ctx, garden, namespace, name, LevelAuto, shootCredential)
		if err != nil {
			return nil, time.Time{}, err
		}
		base, way, err := connectionOf(raw, c.endpoints)
		if err != nil {
			return nil, time.Time{}, reply.Error(http.StatusBadGateway, reply.ReasonUnavailable, "shoot %s/%s: %v",
				namespace, name, err)
		}
		cluster.Base, cluster.Transport = base, way
		return cluster, expires.Add(-renewBefore), nil
	})
}

// Failed is what a page is told of an error of a cluster. A shoot that does not take its credential gets another one
// the next time.
func (c *Clusters) Failed(cluster *Cluster, err error) error {
	if cluster.Name != Garden && IsLoggedOut(err) {
		c.Forget(cluster)
	}
	return cluster.Told(err)
}

// Forget closes what a user has open in a cluster, as it does not take the credential any more.
func (c *Clusters) Forget(cluster *Cluster) { c.open.forget(cluster.Name + " " + cluster.Credential) }

// Keep closes what nobody uses any more, until the context ends.
func (c *Clusters) Keep(ctx context.Context) { c.open.keep(ctx) }

// checkNames keeps what is no name out of paths.
func checkNames(namespace, name string) error {
	for field, value := range map[string]string{"namespace": namespace, "name": name} {
		if messages := validation.IsDNS1123Label(value); len(messages) > 0 {
			return reply.BadRequest("%s of the shoot: %s", field, messages[0])
		}
	}
	return nil
}

// Level is what a kubeconfig of a shoot may do.
type Level string

// Levels.
const (
	LevelAdmin  Level = "admin"
	LevelViewer Level = "viewer"
	// LevelAuto is that of administrators if the user may have it, else that of viewers.
	LevelAuto Level = ""
)

// Kubeconfig asks the garden for a kubeconfig of a shoot.
func Kubeconfig(ctx context.Context, garden *Cluster, namespace, name string, level Level,
	lifetime time.Duration) ([]byte, time.Time, error) {
	if err := checkNames(namespace, name); err != nil {
		return nil, time.Time{}, err
	}
	if level != LevelAuto {
		return kubeconfigFor(ctx, garden, namespace, name, level, lifetime)
	}
	raw, expires, err := kubeconfigFor(ctx, garden, namespace, name, LevelAdmin, lifetime)
	if apierrors.IsForbidden(err) {
		return kubeconfigFor(ctx, garden, namespace, name, LevelViewer, lifetime)
	}
	return raw, expires, err
}

func kubeconfigFor(ctx context.Context, garden *Cluster, namespace, name string, level Level,
	lifetime time.Duration) ([]byte, time.Time, error) {
	seconds := int64(lifetime.Seconds())
	kind := map[Level]string{LevelAdmin: "AdminKubeconfigRequest", LevelViewer: "ViewerKubeconfigRequest"}[level]
	if kind == "" {
		return nil, time.Time{}, reply.BadRequest("level must be admin or viewer")
	}
	// Both kinds have the same fields.
	request := authenticationv1alpha1.AdminKubeconfigRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1alpha1.SchemeGroupVersion.String(), Kind: kind},
		Spec:     authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
	}
	path := "/apis/" + gardencorev1beta1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/shoots/" + name +
		"/" + string(level) + "kubeconfig"
	if err := garden.Do(ctx, http.MethodPost, path, nil, request, &request); err != nil {
		return nil, time.Time{}, err
	}
	return request.Status.Kubeconfig, request.Status.ExpirationTimestamp.Time, nil
}

// Review asks a cluster who the user is.
func Review(ctx context.Context, cluster *Cluster) (authenticationv1.UserInfo, error) {
	review := authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
	}
	err := cluster.Do(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", nil, review, &review)
	return review.Status.UserInfo, err
}

// Named gives the garden, or the shoot of the name shoot/<namespace>/<name>.
func (c *Clusters) Named(ctx context.Context, credential session.Credential, name string) (*Cluster, error) {
	if name == Garden {
		return c.Garden(credential)
	}
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != "shoot" {
		return nil, reply.BadRequest("cluster must be garden, or shoot/<namespace>/<name>")
	}
	return c.Shoot(ctx, credential, parts[1], parts[2])
}
