package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// cluster is the part of a Kubernetes API that lists and watches Services, Namespaces and TLSRoutes.
type cluster struct {
	// hasCRD says whether TLSRoutes are served.
	hasCRD atomic.Bool
	// added are Services that watchers are told of.
	added chan *corev1.Service
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	routes, namespaces := strings.HasSuffix(r.URL.Path, "/tlsroutes"), strings.HasSuffix(r.URL.Path, "/namespaces")
	switch {
	case routes && !c.hasCRD.Load():
		c.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case query.Has("sendInitialEvents"):
		c.fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case query.Has("watch"):
		c.watch(w, r, !routes && !namespaces)
	case routes:
		list := gatewayv1.TLSRouteList{Items: []gatewayv1.TLSRoute{*tlsRoute("demo", 0, 443, "api.example.org")}}
		list.TypeMeta = metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "TLSRouteList"}
		list.ResourceVersion = "1"
		_ = json.NewEncoder(w).Encode(list)
	case namespaces:
		list := corev1.NamespaceList{Items: []corev1.Namespace{
			*namespace("demo", map[string]string{
				vpnv1alpha1.AnnotationHosts: "api.example.org", vpnv1alpha1.AnnotationPublicKey: publicKey,
			}),
		}}
		list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}
		list.ResourceVersion = "1"
		_ = json.NewEncoder(w).Encode(list)
	default:
		list := corev1.ServiceList{Items: []corev1.Service{*service("demo", "kube-apiserver", "10.2.0.1")}}
		list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}
		list.ResourceVersion = "1"
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (c *cluster) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason,
		Code: int32(code),
	})
}

func (c *cluster) watch(w http.ResponseWriter, r *http.Request, services bool) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	added := c.added
	if !services {
		added = nil
	}
	for version := 2; ; version++ {
		select {
		case <-r.Context().Done():
			return
		case s := <-added:
			s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
			s.ResourceVersion = fmt.Sprint(version)
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": s})
			w.(http.Flusher).Flush()
		}
	}
}

type report struct {
	routes  Routes
	servers []transport.Server
}

func TestWatcherWaitsForTheCRDAndFollowsChanges(t *testing.T) {
	c := &cluster{added: make(chan *corev1.Service)}
	api := httptest.NewServer(c)
	defer api.CloseClientConnections()
	reports := make(chan report, 100)
	watcher, err := NewWatcher(logr.Discard(), &rest.Config{Host: api.URL}, "garden",
		func(routes Routes, servers []transport.Server) {
			reports <- report{routes, servers}
		})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- watcher.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	<-watcher.Synced()
	if watcher.RoutesSynced() {
		t.Error("TLSRoutes count as known without their CRD")
	}
	c.added <- tunnelService("demo", publicKey, "10.2.0.2")
	await(t, reports, "the WireGuard server", func(r report) bool {
		return len(r.servers) == 1 && r.routes.Len() == 0 && !r.routes.complete
	})

	c.hasCRD.Store(true)
	await(t, reports, "the route", func(r report) bool {
		backend, ok := r.routes.Lookup("api.example.org")
		return ok && backend.Address.String() == "10.2.0.1:443" && len(r.servers) == 1 && r.routes.complete
	})
}

func await(t *testing.T, reports <-chan report, what string, condition func(report) bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case r := <-reports:
			if condition(r) {
				return
			}
		case <-timeout:
			t.Fatalf("%s was not reported", what)
		}
	}
}
