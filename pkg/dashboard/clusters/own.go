package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

// Administrator is a shoot as its administrator, if the garden lets the user be one. It is shared with nobody, and good
// for a while.
func (c *Clusters) Administrator(ctx context.Context, credential session.Credential, namespace, name string,
	lifetime time.Duration) (*Cluster, error) {
	garden, err := c.Garden(credential)
	if err != nil {
		return nil, err
	}
	raw, _, err := Kubeconfig(ctx, garden, namespace, name, LevelAdmin, lifetime)
	if err != nil {
		return nil, err
	}
	base, way, err := connectionOf(raw, c.endpoints)
	if err != nil {
		return nil, reply.Error(http.StatusBadGateway, reply.ReasonUnavailable, "shoot %s/%s: %v", namespace, name, err)
	}
	return &Cluster{
		Name: "shoot/" + namespace + "/" + name, Base: base, Transport: way, Credential: garden.Credential,
	}, nil
}

// Seed is a seed by the access that operators have stored for it, Secret garden/<seed>.login, read with the user's own
// credential. It is shared with nobody, and kept no longer than the Cluster is.
func (c *Clusters) Seed(ctx context.Context, credential session.Credential, seed string) (*Cluster, error) {
	garden, err := c.Garden(credential)
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	path := "/api/v1/namespaces/" + gardencorev1beta1.GardenNamespace + "/secrets/" + loginSecret(seed)
	if err := garden.Do(ctx, http.MethodGet, path, nil, nil, &secret); err != nil {
		return nil, SeedRefused(seed, err)
	}
	base, way, err := connectionOf(secret.Data[loginKey], c.endpoints)
	if err != nil {
		return nil, reply.Error(http.StatusBadGateway, reply.ReasonUnavailable, "seed %s, by Secret %s/%s: %v", seed,
			gardencorev1beta1.GardenNamespace, loginSecret(seed), err)
	}
	return &Cluster{Name: "seed/" + seed, Base: base, Transport: way, Credential: garden.Credential}, nil
}

// loginKey of such a Secret has a kubeconfig.
const loginKey = "kubeconfig"

func loginSecret(seed string) string { return seed + ".login" }

// SeedRefused tells who may have access to a seed, and where it is kept, of an error of reading that.
func SeedRefused(seed string, err error) error {
	secret := gardencorev1beta1.GardenNamespace + "/" + loginSecret(seed)
	switch {
	case apierrors.IsForbidden(err):
		return reply.Error(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not have access to the seed "+
			"%s: operators of the garden may, who may read Secret %s: ask one of them", seed, secret)
	case apierrors.IsNotFound(err):
		return reply.Error(http.StatusConflict, metav1.StatusReasonConflict, "the seed %s is no shoot of the garden, "+
			"and nobody has stored access to it: an operator does so with a kubeconfig in Secret %s, key %s", seed,
			secret, loginKey)
	}
	return err
}

// Close ends connections of a cluster that is shared with nobody.
func (c *Cluster) Close() {
	if base := c.way(); base != nil {
		base.CloseIdleConnections()
	}
}

func (c *Cluster) way() *http.Transport {
	if way, ok := c.Transport.(*transport); ok {
		if base, ok := way.base.(*http.Transport); ok {
			return base
		}
	}
	return nil
}

// Dial opens a WebSocket. It does not follow to where else the cluster leads. Kubernetes' own client for these knows no
// endpoints.
func (c *Cluster) Dial(ctx context.Context, path string, query url.Values, protocol string) (*websocket.Conn, error) {
	base := c.way()
	if base == nil {
		return nil, errors.New("the cluster has no connections of its own")
	}
	config := base.TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	dialer := websocket.Dialer{
		NetDialContext: base.DialContext, TLSClientConfig: config, HandshakeTimeout: 30 * time.Second,
		Subprotocols: []string{protocol}, ReadBufferSize: 4096, WriteBufferSize: 4096,
	}
	header := http.Header{"User-Agent": {userAgent}}
	if token := c.Transport.(*transport).token; token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	address := c.URL(path, query)
	address.Scheme = "wss"
	connection, response, err := dialer.DialContext(ctx, address.String(), header)
	if err != nil && response != nil {
		defer response.Body.Close()
		return nil, failure(response, http.MethodGet)
	}
	if err != nil {
		return nil, err
	}
	if connection.Subprotocol() != protocol {
		return nil, errors.Join(errors.New("the cluster does not speak "+protocol), connection.Close())
	}
	return connection, nil
}
