package tunnel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http2"

	"github.com/trellis-garden/trellis/pkg/federation/acting"
)

// Tunnel to a member: a http.RoundTripper that knows upgrades.
type Tunnel struct {
	conn   *closing
	client *http2.ClientConn
	places places
}

// newTunnel speaks HTTP/2 as the client, whoever has opened the connection.
func newTunnel(conn *closing) (*Tunnel, error) {
	base := &http.Transport{
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: streamBuffer * maxStreams,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: pingTimeout,
		},
	}
	transport, err := http2.ConfigureTransports(base)
	if err != nil {
		return nil, err
	}
	transport.MaxHeaderListSize, transport.StrictMaxConcurrentStreams = maxHeader, true
	client, err := transport.NewClientConn(conn)
	if err != nil {
		return nil, err
	}
	return &Tunnel{conn: conn, client: client}, nil
}

// lasts tells whether the tunnel takes requests.
func (t *Tunnel) lasts() bool {
	select {
	case <-t.conn.closed:
		return false
	default:
		return t.client.CanTakeNewRequest()
	}
}

// bare is a context without values: those of a request would have the member's informational answers be passed on.
type bare struct{ context.Context }

// Value implements context.Context.
func (bare) Value(any) any { return nil }

// RoundTrip implements http.RoundTripper.
func (t *Tunnel) RoundTrip(request *http.Request) (*http.Response, error) {
	release, err := t.places.take(request.Header.Get(acting.ImpersonateUser))
	if err != nil {
		return nil, err
	}
	request = request.Clone(bare{request.Context()})
	protocol := upgradeOf(request.Header)
	request.Header.Del("Connection")
	request.Header.Del("Upgrade")
	var response *http.Response
	if protocol == "" {
		response, err = t.plain(request, release)
	} else {
		response, err = t.upgrade(request, protocol, release)
	}
	if err != nil {
		release()
	}
	return response, err
}

// upgradeOf is the protocol that a request wants to change to.
func upgradeOf(header http.Header) string {
	for _, value := range header.Values("Connection") {
		if slices.ContainsFunc(strings.Split(value, ","),
			func(option string) bool { return strings.EqualFold(strings.TrimSpace(option), "upgrade") }) {
			return header.Get("Upgrade")
		}
	}
	return ""
}

func (t *Tunnel) plain(request *http.Request, release func()) (*http.Response, error) {
	response, err := t.client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Header.Del(upgradeHeader)
	response.Body = &body{response.Body, release}
	return response, nil
}

// upgrade gives an answer like one of HTTP/1.1: what is written to its body goes to the member.
func (t *Tunnel) upgrade(request *http.Request, protocol string, release func()) (*http.Response, error) {
	if len(protocol) > maxProtocol {
		return nil, errors.New("the protocol that is asked for has too long a name")
	}
	in, out := io.Pipe()
	request.Header.Set(upgradeHeader, protocol)
	request.Body, request.ContentLength = in, -1
	response, err := t.client.RoundTrip(request)
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	if response.StatusCode != http.StatusOK || response.Header.Get(upgradeHeader) != protocol {
		_ = out.Close()
		response.Header.Del(upgradeHeader)
		response.Body = &body{response.Body, release}
		return response, nil
	}
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}
	keepUpgraded(header, response.Header)
	response.Header = header
	// Who writes it to a client would add to one of another version, or of unknown length, that the connection closes.
	response.Proto, response.ProtoMajor, response.ProtoMinor, response.ContentLength = "HTTP/1.1", 1, 1, 0
	response.Status, response.StatusCode = "101 "+http.StatusText(http.StatusSwitchingProtocols),
		http.StatusSwitchingProtocols
	response.Body = &both{body{response.Body, release}, out}
	return response, nil
}

// body gives its place in the tunnel to another when it is closed.
type body struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// both is a stream of bytes in both directions.
type both struct {
	body
	out *io.PipeWriter
}

// Write implements io.Writer.
func (b *both) Write(p []byte) (int, error) { return b.out.Write(p) }

// Close implements io.Closer.
func (b *both) Close() error { return errors.Join(b.out.Close(), b.body.Close()) }
