package proxy

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// accepted are the types in which objects may be sent.
var accepted = map[string]bool{
	"application/json": true, "application/yaml": true, "application/apply-patch+yaml": true,
	"application/json-patch+json": true, "application/merge-patch+json": true,
	"application/strategic-merge-patch+json": true,
}

// metadataOnly asks for objects without what is in them.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// Serve passes a request on to a cluster. The path is the part of the request's that the cluster is to see, escaped.
func Serve(w http.ResponseWriter, r *http.Request, rules Rules, path Path, cluster *clusters.Cluster) error {
	if err := Check(r, rules, path); err != nil {
		return err
	}
	request, err := outgoing(r, path, cluster)
	if err != nil {
		return err
	}
	response, err := cluster.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified || response.StatusCode < 200 {
		return reply.Error(http.StatusBadGateway, reply.ReasonUnavailable,
			"the cluster leads elsewhere, which is refused")
	}
	if response.StatusCode == http.StatusUnauthorized {
		return reply.Error(http.StatusUnauthorized, reply.ReasonSessionExpired,
			"the cluster does not take the credential any more")
	}
	return passBack(w, path, response)
}

// Check tells whether a request is passed on.
func Check(r *http.Request, rules Rules, path Path) error {
	if err := rules.Check(path, r.Method, r.URL.Query()); err != nil {
		return reply.Error(http.StatusForbidden, reply.ReasonNotProxied, "%v", err)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete && r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !accepted[kind] {
		return reply.Error(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
			"Content-Type must be JSON, YAML, or a patch of Kubernetes")
	}
	return nil
}

// outgoing has of a request what the cluster needs, and nothing else.
func outgoing(r *http.Request, path Path, cluster *clusters.Cluster) (*http.Request, error) {
	target := cluster.URL(path.String(), path.query(r.Method, r.URL.Query()))
	var body io.Reader = r.Body
	if r.Method == http.MethodGet {
		body = http.NoBody
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = r.ContentLength
	if r.Method == http.MethodGet {
		request.ContentLength = 0
	}
	if kind := r.Header.Get("Content-Type"); kind != "" && r.Method != http.MethodGet {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", accept(r, path))
	return request, nil
}

// accept is JSON in the form that was asked for. Tables of Secrets would tell of what is in them.
func accept(r *http.Request, path Path) string {
	switch wanted := r.Header.Get("Accept"); {
	case IsSecret(path.Group, path.Resource):
		return metadataOnly
	case path.Subresource == "log":
		return "*/*"
	case strings.Contains(wanted, "as=Table;"), strings.Contains(wanted, "as=PartialObjectMetadata"):
		return wanted
	}
	return "application/json"
}

// passBack answers as the cluster did. Nothing that it says is run by a browser.
func passBack(w http.ResponseWriter, path Path, response *http.Response) error {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	body := io.Reader(response.Body)
	switch {
	case err == nil && kind == "application/json":
		body = newTrimmer(response.Body, HiddenOf(path.Group, path.Resource))
		w.Header().Set("Content-Type", "application/json")
	case path.Subresource == "log":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	default:
		return reply.Error(http.StatusBadGateway, reply.ReasonUnavailable, "the cluster did not answer in JSON")
	}
	for _, name := range []string{"Warning", "Retry-After", "Audit-Id"} {
		for _, value := range response.Header.Values(name) {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(response.StatusCode)
	if path.Subresource == "log" {
		return copyFlushing(w, body)
	}
	_, err = io.Copy(w, body)
	return asAborted(err)
}

// copyFlushing sends lines as they come.
func copyFlushing(w http.ResponseWriter, body io.Reader) error {
	controller := http.NewResponseController(w)
	buffer := make([]byte, 8<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return asAborted(err)
			}
			if err := controller.Flush(); err != nil {
				return asAborted(err)
			}
		}
		if err != nil {
			return asAborted(err)
		}
	}
}

// asAborted ends the connection of an answer that is not whole, so that nobody takes it for one.
func asAborted(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	panic(http.ErrAbortHandler)
}
