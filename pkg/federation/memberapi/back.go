package memberapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// handBack has the kube-apiserver answer in the version that it serves by itself.
func (s *Server) handBack(w http.ResponseWriter, r *http.Request, who caller) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		refuse(w, apierrors.NewRequestEntityTooLargeError(err.Error()))
		return
	}
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	kind := r.Header.Get("Content-Type")
	if strings.Contains(kind, "cbor") || strings.Contains(kind, "protobuf") {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Method, clusterv1alpha1.GroupVersion.WithResource("clusters").GroupResource(), "", "the body must be JSON or YAML", 0, true))
		return
	}
	if body, err = toStored(body, kind); err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	s.back.ServeHTTP(w, r)
}

type callerKey struct{}

// handingBack is a proxy for requests whose context has their caller.
func handingBack(config *rest.Config) (*httputil.ReverseProxy, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			who, _ := r.In.Context().Value(callerKey{}).(caller)
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = base.Scheme, base.Host, base.Host
			r.Out.URL.Path = "/apis/" + stored + strings.TrimPrefix(r.In.URL.Path, prefix)
			r.Out.URL.RawPath = ""
			who.actInFleet(r.Out.Header)
			acceptJSON(r.Out.Header)
		},
		ModifyResponse: func(response *http.Response) error {
			response.Header.Del("Content-Length")
			response.ContentLength = -1
			response.Body = newAnswer(response.Body)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
	}, nil
}
