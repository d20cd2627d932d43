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
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/reply"
)

// handBack has the kube-apiserver answer in the version that it serves by itself.
func (s *Server) handBack(w http.ResponseWriter, r *http.Request, who caller) {
	who, err := who.handedBack()
	if err != nil {
		reply.Refusal(w, apierrors.NewForbidden(clustersResource, "", err))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		reply.Refusal(w, apierrors.NewRequestEntityTooLargeError(err.Error()))
		return
	}
	if err != nil {
		reply.Refusal(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	kind := r.Header.Get("Content-Type")
	if strings.Contains(kind, "cbor") || strings.Contains(kind, "protobuf") {
		reply.Refusal(w, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Method,
			clusterv1alpha1.GroupVersion.WithResource("clusters").GroupResource(), "", "the body must be JSON or YAML",
			0, true))
		return
	}
	if body, err = toStored(body, kind); err != nil {
		reply.Refusal(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	s.back.ServeHTTP(w, r)
}

type callerKey struct{}

// mayHandBack tells whether a fleet lets the user of config impersonate for requests on Clusters, which Kubernetes does
// from 1.36 on.
func mayHandBack(config *rest.Config) (func(context.Context) error, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: fleetv1alpha1.MastersGroup, Groups: []string{fleetv1alpha1.MastersGroup},
	}
	config.GroupVersion, config.APIPath = &clusterv1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	asked, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := asked.Get().Resource(clustersResource.Resource).Param("limit", "1").Do(ctx).Error()
		if apierrors.IsForbidden(err) {
			return &noWayBackError{err}
		}
		return err
	}, nil
}

// noWayBackError says that requests cannot be handed back.
type noWayBackError struct{ refusal error }

func (e *noWayBackError) Error() string {
	return "the fleet serves Clusters by itself, without clusters/proxy: that needs Kubernetes 1.36, or 1.35 with " +
		"the feature gate ConstrainedImpersonation: " + e.refusal.Error()
}

func (e *noWayBackError) Unwrap() error { return e.refusal }

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
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { reply.Refusal(w, err) },
	}, nil
}
