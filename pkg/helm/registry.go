package helm

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trellis-garden/trellis/pkg/egress"
)

const (
	// chartLayer is the media type of the layer that is a chart's archive, as `helm push` writes it.
	// https://helm.sh/docs/topics/registries/#helm-chart-manifest
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// maxArchive is the size in bytes up to which charts are pulled.
	maxArchive = 20 << 20
	// dialTimeout bounds connections.
	dialTimeout = 30 * time.Second
	// tagPeriod is how long a tag is taken to stand for the same chart.
	tagPeriod = 5 * time.Minute
	// keepPeriod is how long a chart is kept that nobody asks for.
	keepPeriod = time.Hour
)

// Artifact is a chart in an OCI registry.
type Artifact struct {
	// Reference is registry/repository with :tag or @sha256:digest.
	Reference string
	// DockerConfig holds credentials, as Secrets of type kubernetes.io/dockerconfigjson do. Empty: none.
	DockerConfig []byte
	// CABundle are the authorities (PEM) of the registry. Empty: those of the system.
	CABundle []byte
}

// Puller pulls charts and remembers them: by digest until nobody asks any more, by tag for five minutes.
type Puller struct {
	// Rules decide about hosts that a registry sends to, for layers or tokens. The registry itself may be anywhere: an
	// operator named it.
	Rules egress.Rules

	mutex  sync.Mutex
	charts map[[sha256.Size]byte]pulledChart
}

type pulledChart struct {
	digest      v1.Hash
	archive     []byte
	seen, asked time.Time
}

// Pull returns the archive of a chart, as `helm package` makes it.
func (p *Puller) Pull(ctx context.Context, artifact Artifact) ([]byte, error) {
	archive, err := p.pull(ctx, artifact, time.Now())
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", artifact.Reference, err)
	}
	return archive, nil
}

func (p *Puller) pull(ctx context.Context, artifact Artifact, now time.Time) ([]byte, error) {
	reference, err := name.ParseReference(artifact.Reference)
	if err != nil {
		return nil, err
	}
	known, found := p.known(artifact, now)
	_, pinned := reference.(name.Digest)
	if found && (pinned || now.Sub(known.seen) < tagPeriod) {
		return known.archive, nil
	}
	options, release, err := artifact.options(ctx, reference, p.Rules)
	if err != nil {
		return nil, err
	}
	defer release()
	descriptor, err := remote.Get(reference, options...)
	if err != nil {
		return nil, err
	}
	archive := known.archive
	if !found || known.digest != descriptor.Digest {
		if archive, err = chartIn(descriptor); err != nil {
			return nil, err
		}
	}
	p.remember(artifact, pulledChart{digest: descriptor.Digest, archive: archive, seen: now, asked: now})
	return archive, nil
}

// known returns what was pulled before, and notes that it was asked for.
func (p *Puller) known(artifact Artifact, now time.Time) (pulledChart, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	chart, found := p.charts[artifact.key()]
	if found {
		chart.asked = now
		p.charts[artifact.key()] = chart
	}
	return chart, found
}

// remember keeps what was pulled, and forgets what was not asked for in a long time.
func (p *Puller) remember(artifact Artifact, pulled pulledChart) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.charts == nil {
		p.charts = map[[sha256.Size]byte]pulledChart{}
	}
	maps.DeleteFunc(p.charts, func(_ [sha256.Size]byte, chart pulledChart) bool {
		return pulled.asked.Sub(chart.asked) > keepPeriod
	})
	p.charts[artifact.key()] = pulled
}

func (a Artifact) key() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Reference, a.DockerConfig, a.CABundle))
}

// options of requests to the registry, and what ends their connections.
func (a Artifact) options(ctx context.Context, reference name.Reference,
	rules egress.Rules) (options []remote.Option, release func(), err error) {
	authenticator, err := a.authenticator(reference.Context().RegistryStr())
	if err != nil {
		return nil, nil, err
	}
	standard, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, nil, fmt.Errorf("the default transport is a %T", remote.DefaultTransport)
	}
	transport := standard.Clone()
	transport.DialContext = dialFrom(reference.Context().Registry, rules)
	if len(a.CABundle) > 0 {
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(a.CABundle) {
			return nil, nil, errors.New("the CA bundle holds no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithAuth(authenticator), remote.WithTransport(transport)},
		transport.CloseIdleConnections, nil
}

// dialFrom connects to the registry, and to what the rules allow when it sends elsewhere.
func dialFrom(registry name.Registry,
	rules egress.Rules) func(ctx context.Context, network, address string) (net.Conn, error) {
	own := registry.RegistryStr()
	if _, _, err := net.SplitHostPort(own); err != nil {
		own = net.JoinHostPort(own, map[string]string{"http": "80", "https": "443"}[registry.Scheme()])
	}
	named := net.Dialer{Timeout: dialTimeout}
	elsewhere := net.Dialer{Timeout: dialTimeout, Control: rules.Control}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == own {
			return named.DialContext(ctx, network, address)
		}
		return elsewhere.DialContext(ctx, network, address)
	}
}

// authenticator finds the credentials for a registry. Registries are written with or without https://.
func (a Artifact) authenticator(registry string) (authn.Authenticator, error) {
	if len(a.DockerConfig) == 0 {
		return authn.Anonymous, nil
	}
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(a.DockerConfig, &config); err != nil {
		return nil, fmt.Errorf("the pull secret is no docker configuration: %w", err)
	}
	for _, key := range []string{registry, "https://" + registry, "https://" + registry + "/"} {
		if found, ok := config.Auths[key]; ok {
			return authn.FromConfig(found), nil
		}
	}
	return nil, fmt.Errorf("the pull secret has no credentials for the registry %s", registry)
}

// chartIn returns the archive of the chart that an artifact holds.
func chartIn(descriptor *remote.Descriptor) ([]byte, error) {
	image, err := descriptor.Image()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if mediaType, err := layer.MediaType(); err == nil && mediaType == chartLayer {
			return readLayer(layer)
		}
	}
	return nil, fmt.Errorf("holds no layer of type %s: it is no chart", chartLayer)
}

func readLayer(layer v1.Layer) ([]byte, error) {
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	archive, err := io.ReadAll(io.LimitReader(content, maxArchive+1))
	if err != nil {
		return nil, err
	}
	if len(archive) > maxArchive {
		return nil, fmt.Errorf("is larger than %d MiB", maxArchive>>20)
	}
	return archive, nil
}
