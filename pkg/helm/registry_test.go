package helm

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trellis-garden/trellis/pkg/egress"
)

// chartRegistry is a registry behind TLS that asks for a password and counts requests.
type chartRegistry struct {
	*httptest.Server
	requests atomic.Int32
}

func newChartRegistry(t *testing.T) *chartRegistry {
	r := &chartRegistry{}
	serve := registry.New(registry.Logger(log.New(t.Output(), "", 0)))
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		if user, password, _ := req.BasicAuth(); user != "reader" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *chartRegistry) host() string { return strings.TrimPrefix(r.URL, "https://") }

func (r *chartRegistry) artifact(reference string) Artifact {
	auth := base64.StdEncoding.EncodeToString([]byte("reader:secret"))
	return Artifact{
		Reference:    r.host() + "/" + reference,
		DockerConfig: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.host(), auth),
		CABundle:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}),
	}
}

// push stores a chart as helm does, and returns its digest.
func (r *chartRegistry) push(t *testing.T, reference, archive string, mediaType types.MediaType) string {
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: static.NewLayer([]byte(archive), mediaType)})
	if err != nil {
		t.Fatal(err)
	}
	artifact := r.artifact(reference)
	parsed, err := name.ParseReference(artifact.Reference)
	if err != nil {
		t.Fatal(err)
	}
	options, release, err := artifact.options(t.Context(), parsed, egress.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := remote.Write(parsed, image, options...); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestPullByTagAndDigest(t *testing.T) {
	r, puller, now := newChartRegistry(t), &Puller{}, time.Unix(0, 0)
	digest := r.push(t, "charts/one:v1", "first", chartLayer)
	tagged, pinned := r.artifact("charts/one:v1"), r.artifact("charts/one@"+digest)
	pull := func(artifact Artifact, want string, asks bool) {
		t.Helper()
		before := r.requests.Load()
		got, err := puller.pull(t.Context(), artifact, now)
		if err != nil || string(got) != want {
			t.Fatalf("pulled %q, %v; want %q", got, err, want)
		}
		if asked := r.requests.Load() > before; asked != asks {
			t.Errorf("the registry was asked: %v, want %v", asked, asks)
		}
	}
	pull(tagged, "first", true)
	pull(pinned, "first", true)
	r.push(t, "charts/one:v1", "second", chartLayer)
	pull(tagged, "first", false)
	now = now.Add(tagPeriod)
	pull(tagged, "second", true)
	pull(pinned, "first", false)
	now = now.Add(2 * keepPeriod)
	pull(tagged, "second", true)
	if len(puller.charts) != 1 {
		t.Errorf("%d charts are kept, want the one that was asked for", len(puller.charts))
	}
}

func TestPullFails(t *testing.T) {
	r := newChartRegistry(t)
	r.push(t, "charts/image:v1", "a layer", types.DockerLayer)
	r.push(t, "charts/huge:v1", strings.Repeat("x", maxArchive+1), chartLayer)
	for _, test := range []struct {
		reference, want string
		change          func(*Artifact)
	}{
		{"charts/none:v1", "NAME_UNKNOWN", nil},
		{"charts/image:v1", "it is no chart", nil},
		{"charts/huge:v1", "is larger than 20 MiB", nil},
		{"charts/UPPER:v1", "could not parse reference", nil},
		{"charts/image:v1", "no certificate in PEM", func(a *Artifact) { a.CABundle = []byte("?") }},
		{"charts/image:v1", "certificate", func(a *Artifact) { a.CABundle = nil }},
		{"charts/image:v1", "is no docker configuration", func(a *Artifact) { a.DockerConfig = []byte("?") }},
		{"charts/image:v1", "no credentials for the registry", func(a *Artifact) { a.DockerConfig = []byte("{}") }},
		{"charts/image:v1", "401", func(a *Artifact) { a.DockerConfig = nil }},
	} {
		artifact := r.artifact(test.reference)
		if test.change != nil {
			test.change(&artifact)
		}
		_, err := (&Puller{}).Pull(t.Context(), artifact)
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), artifact.Reference) {
			t.Errorf("%s: %v, want %q", test.reference, err, test.want)
		}
	}
}
