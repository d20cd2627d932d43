// Package clusters connects to the garden and to shoots with the credentials of whoever is logged in. What it is given
// for shoots stays here.
package clusters

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	userAgent = "trellis-dashboard"
	// maxAnswer bounds what is read of an answer that is held in memory as a whole. Of more than smallAnswer the memory
	// is counted.
	maxAnswer   = 8 << 20
	smallAnswer = 64 << 10
	// patience is how long such an answer may take.
	patience = time.Minute
)

// Cluster is the API of a cluster, as one user.
type Cluster struct {
	// Name is Garden, or shoot/<namespace>/<name>.
	Name string
	// Base of all paths.
	Base *url.URL
	// Transport shows the credential. Whatever else says who asks is taken out of requests.
	Transport http.RoundTripper
	// Credential tells apart whose connections these are, see session.Credential.
	Credential string
	// Memory is what large answers take, of all clusters and users.
	Memory *limits.Bytes
}

// Config is for clients of client-go.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: c.Base.String(), Transport: c.Transport, UserAgent: userAgent}
}

// URL of a path, which has to be escaped already.
func (c *Cluster) URL(path string, query url.Values) *url.URL {
	result := *c.Base
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		unescaped = path
	}
	result.Path, result.RawPath = c.Base.Path+unescaped, c.Base.EscapedPath()+path
	result.RawQuery = query.Encode()
	return &result
}

// Open sends a request and gives the answer if it is a good one. Callers close its body.
func (c *Cluster) Open(ctx context.Context, method, path string, query url.Values, body []byte,
	accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL(path, query).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	switch {
	case body != nil && method == http.MethodPatch:
		request.Header.Set("Content-Type", "application/merge-patch+json")
	case body != nil:
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, failure(response, method)
	}
	return response, nil
}

// Do sends a request with a body in JSON, and reads the answer.
func (c *Cluster) Do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	response, err := c.Open(ctx, method, path, query, text, "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	source := &answer{source: response.Body, of: c}
	defer source.done()
	text, err = io.ReadAll(source)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// answer is the body of one that is held in memory as a whole.
type answer struct {
	source io.Reader
	of     *Cluster
	read   int
	taken  *limits.Taken
}

// copies of a large answer are in memory while it is read, which a buffer that grows has, and what is made of it.
const copies = 4

// Read implements io.Reader.
func (a *answer) Read(into []byte) (int, error) {
	n, err := a.source.Read(into)
	if a.read += n; a.read > maxAnswer {
		return 0, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	if a.read > smallAnswer && n > 0 {
		if a.taken == nil {
			a.taken = a.of.Memory.Nothing(a.of.Credential)
		}
		if err := a.taken.Grow(int64(n) * copies); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (a *answer) done() {
	if a.taken != nil {
		a.taken.Give()
	}
}

// failure is what an API server says, in the form of its Status if it has one.
func failure(response *http.Response, method string) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	status := metav1.Status{}
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: status}
	}
	if response.StatusCode/100 == 3 {
		return reply.Error(http.StatusBadGateway, reply.ReasonUnavailable,
			"the cluster leads elsewhere, which is refused")
	}
	return apierrors.NewGenericServerResponse(response.StatusCode, method, schema.GroupResource{}, "", "", 0, true)
}

// Certificate is what the cluster's API shows to who connects, whatever it answers then.
func (c *Cluster) Certificate(ctx context.Context) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL("/version", nil).String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.TLS == nil || len(response.TLS.PeerCertificates) == 0 {
		return nil, errors.New("the cluster has shown no certificate")
	}
	return response.TLS.PeerCertificates[0], nil
}

// Told is what a page is told of an error of this cluster. Only the garden ends a session: a shoot that does not take
// its credential any more has rotated it, and the garden gives another.
func (c *Cluster) Told(err error) error {
	if c.Name == Garden || !IsLoggedOut(err) {
		return err
	}
	return reply.Error(http.StatusServiceUnavailable, reply.ReasonUnavailable,
		"%s does not take its credential any more: try again", c.Name)
}

// IsLoggedOut tells whether the API server does not take the credential.
func IsLoggedOut(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code == http.StatusUnauthorized
}
