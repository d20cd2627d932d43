package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

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
