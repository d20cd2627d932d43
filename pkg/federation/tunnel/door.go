package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/reply"
)

// Door leads from tunnels to the member's API, and nowhere else, for who may do there what its roles say.
type Door struct {
	// Member is the address of the API.
	Member *url.URL
	// Transport connects to it by HTTP/1.1, without credentials.
	Transport http.RoundTripper
	// Access gives the token of who may impersonate users of the fleet, and what these are called in the member.
	Access func(context.Context) (token string, called acting.Names, err error)
	// Refused is told that the member does not know a token.
	Refused func(token string)
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, err := acting.Told(r.Header)
	if err != nil {
		reply.Refusal(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/") || slices.Contains(strings.Split(r.URL.Path, "/"), "..") {
		reply.Refusal(w, apierrors.NewBadRequest(`a path in a member begins with "/", and has no ".." in it`))
		return
	}
	token, called, err := d.Access(r.Context())
	if err != nil {
		reply.Refusal(w, apierrors.NewServiceUnavailable("the member's agent may not pass requests on: "+err.Error()))
		return
	}
	protocol := r.Header.Get(upgradeHeader)
	prepare := func(out *http.Request) {
		hops := r.Header.Get(acting.HopsHeader)
		who.In(out.Header, token, called)
		if hops != "" {
			out.Header.Set(acting.HopsHeader, hops)
		}
		out.URL, out.Host = d.urlOf(r.URL), d.Member.Host
	}
	accept := func(response *http.Response) error {
		if response.StatusCode != http.StatusUnauthorized {
			return nil
		}
		d.Refused(token)
		return errors.New("it does not know the token of the agent's impersonator, which asks for another")
	}
	if protocol != "" {
		d.upgrade(w, r, protocol, prepare, accept)
		return
	}
	(&httputil.ReverseProxy{
		Transport: d.Transport, FlushInterval: -1, ModifyResponse: accept,
		Rewrite:      func(p *httputil.ProxyRequest) { prepare(p.Out) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuseUnasked(w, err) },
	}).ServeHTTP(w, r)
}

// urlOf keeps what precedes the API in the member's address.
func (d *Door) urlOf(asked *url.URL) *url.URL {
	target := *d.Member
	target.Path, target.RawQuery = strings.TrimSuffix(d.Member.Path, "/")+asked.Path, asked.RawQuery
	if asked.RawPath != "" {
		target.RawPath = strings.TrimSuffix(d.Member.EscapedPath(), "/") + asked.RawPath
	}
	return &target
}

// upgrade asks the member for another protocol, and passes on what both sides say.
func (d *Door) upgrade(w http.ResponseWriter, r *http.Request, protocol string, prepare func(*http.Request),
	accept func(*http.Response) error) {
	if len(protocol) > maxProtocol {
		reply.Refusal(w, apierrors.NewBadRequest("the protocol that is asked for has too long a name"))
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.Body, out.ContentLength, out.TransferEncoding = "", http.NoBody, 0, nil
	prepare(out)
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", protocol)
	response, err := d.Transport.RoundTrip(out)
	if err == nil {
		err = accept(response)
	}
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		refuseUnasked(w, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	member, isStream := response.Body.(io.ReadWriter)
	switch {
	case response.StatusCode != http.StatusSwitchingProtocols:
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		_ = pass(w, response.Body)
	case !isStream || !strings.EqualFold(response.Header.Get("Upgrade"), protocol):
		refuseUnasked(w, fmt.Errorf("it changes to the protocol %q, and was asked for %q",
			response.Header.Get("Upgrade"), protocol))
	default:
		keepUpgraded(w.Header(), response.Header)
		w.Header().Set(upgradeHeader, protocol)
		w.WriteHeader(http.StatusOK)
		talk(w, r.Body, member, response.Body.Close)
	}
}

// aMomentAgo, as a deadline, ends what waits.
var aMomentAgo = time.Unix(1, 0)

// talk passes bytes on in both directions, until one side has ended.
func talk(w http.ResponseWriter, fleet io.Reader, member io.ReadWriter, end func() error) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(member, fleet)
		_ = end()
	}()
	_ = pass(w, member)
	_ = end()
	_ = http.NewResponseController(w).SetReadDeadline(aMomentAgo)
	<-heard
}

// pass on what comes as it comes.
func pass(w http.ResponseWriter, from io.Reader) error {
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// refuseUnasked tells that the member could not be asked.
func refuseUnasked(w http.ResponseWriter, err error) {
	reply.Refusal(w, apierrors.NewServiceUnavailable("the member cannot be asked by its agent: "+err.Error()))
}
