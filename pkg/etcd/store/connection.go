package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer bounds answers that are read whole: pages of listings, tokens, errors. Pages have at most 5,000 names.
	maxAnswer = 32 << 20
	// answerTimeout bounds a request and its answer, but for an object's content, which the caller's context bounds.
	answerTimeout = 5 * time.Minute
	// firstDelay is before the first repetition of a request, longestDelay bounds it and what the store asks for.
	firstDelay   = time.Second
	longestDelay = 30 * time.Second

	// octets is the type of content that all objects are told to have.
	octets = "application/octet-stream"
)

// errAnswer says that a store answers what no store should. What it answers is not told: that may be what the request
// was permitted by.
var errAnswer = errors.New("the answer is none of such a store")

// Connection says how a store is connected to.
type Connection struct {
	// CA is a PEM bundle that the store's certificate must be verified by; empty: the system's.
	CA []byte
	// Dial connects to the store; nil: directly, or through the proxy of the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RetryDelay is before a request is repeated, doubled each time; 0: a second.
	RetryDelay time.Duration
}

func (c *Connection) retryDelay() time.Duration {
	if c.RetryDelay > 0 {
		return c.RetryDelay
	}
	return firstDelay
}

// client makes requests whose answers are bounded, and follows no redirections: they would take what permits a request
// to another host.
func (c *Connection) client() (*http.Client, error) {
	dial, proxy := c.Dial, (func(*http.Request) (*url.URL, error))(nil)
	if dial == nil {
		dial, proxy = (&net.Dialer{Timeout: 10 * time.Second}).DialContext, http.ProxyFromEnvironment
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("the CA of the store has no certificate in PEM")
		}
	}
	return &http.Client{Transport: bounded{timeout: answerTimeout, next: &http.Transport{
		DialContext: dial, Proxy: proxy, TLSClientConfig: settings,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16,
		MaxResponseHeaderBytes: 1 << 20, DisableCompression: true,
	}}}, nil
}

// repeating is a client that repeats requests which may succeed later.
func (c *Connection) repeating() (*http.Client, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	client.Transport = repeating{next: client.Transport, delay: c.retryDelay()}
	return client, nil
}

// parseURL holds a URL to what requests with secrets can be made to. Its errors do not have it: it may have a password.
func parseURL(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "https" && parsed.Scheme != "http") ||
		parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, errors.New("it is not a URL such as https://store.example.com without user, query and fragment")
	}
	return parsed, nil
}

// unbounded is the key of contexts of requests for an object's content.
type unbounded struct{}

func withContent(ctx context.Context) context.Context {
	return context.WithValue(ctx, unbounded{}, true)
}

// bounded bounds the time and the size of answers. It takes away where an answer redirects to, so that nothing follows
// that, and the words of errors that may quote an answer.
type bounded struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	whole, cancel := request.Context().Value(unbounded{}) != nil, context.CancelFunc(func() {})
	if !whole {
		var ctx context.Context
		ctx, cancel = context.WithTimeout(request.Context(), b.timeout)
		request = request.WithContext(ctx)
	}
	response, err := b.next.RoundTrip(request)
	if err != nil {
		cancel()
		return nil, unquoted(err)
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		response.Header.Del("Location")
	}
	left := int64(maxAnswer)
	if whole && response.StatusCode < 300 {
		left = math.MaxInt64
	}
	response.Body = &answer{ReadCloser: response.Body, cancel: cancel, left: left}
	return response, nil
}

// answer is the body of an answer, of which only so much may be read.
type answer struct {
	io.ReadCloser
	cancel context.CancelFunc
	left   int64
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, tooLong{}
	}
	if err != nil && err != io.EOF {
		err = unquoted(err)
	}
	return n, err
}

func (a *answer) Close() error {
	defer a.cancel()
	return a.ReadCloser.Close()
}

// tooLong is the error of an answer that has more than maxAnswer bytes.
type tooLong struct{}

func (tooLong) Error() string {
	return fmt.Sprintf("%v: it has more than %d bytes", errAnswer, maxAnswer)
}

func (tooLong) Unwrap() error { return errAnswer }

// NonRetriable keeps the client of Azure from asking again.
func (tooLong) NonRetriable() {}

// unquoted leaves errors as they are whose words are ours or of the network, and drops those of all others: they may
// quote the answer, and it the request.
func unquoted(err error) error {
	var failed *url.Error
	for errors.As(err, &failed) {
		err = failed.Err
	}
	var refused *refusal
	var network net.Error
	var certificate *tls.CertificateVerificationError
	for _, known := range []error{
		errAnswer, context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, http.ErrSchemeMismatch,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	if err == nil || errors.As(err, &refused) || errors.As(err, &network) || errors.As(err, &certificate) {
		return err
	}
	return errAnswer
}

// repeating repeats requests that the store has no time for, or that the network loses.
type repeating struct {
	next  http.RoundTripper
	delay time.Duration
}

// RoundTrip implements http.RoundTripper.
func (r repeating) RoundTrip(request *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := r.next.RoundTrip(request)
		if attempt == attempts || !passes(response, err) || request.Context().Err() != nil {
			return response, err
		}
		delay := min(r.delay<<(attempt-1), longestDelay)
		if response != nil {
			delay = max(delay, min(retryAfter(response), longestDelay))
			_ = response.Body.Close()
		}
		if request, err = again(request); err != nil {
			return nil, err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-request.Context().Done():
			timer.Stop()
			return nil, request.Context().Err()
		}
	}
}

// passes says whether the same request may succeed later.
func passes(response *http.Response, err error) bool {
	var certificate *tls.CertificateVerificationError
	if err != nil {
		return !errors.As(err, &certificate)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// again is the same request once more.
func again(request *http.Request) (*http.Request, error) {
	next := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return next, nil
	}
	if request.GetBody == nil {
		return nil, errors.New("the content of a request cannot be sent again")
	}
	var err error
	next.Body, err = request.GetBody()
	return next, err
}

// refusal is an answer with an error. It has nothing of the answer but the status and a code.
type refusal struct {
	status int
	code   string
}

func (r *refusal) Error() string {
	if r.code == "" {
		return fmt.Sprintf("the store answers %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("the store answers %d %s", r.status, r.code)
}

// maxCode is the longest code of an error that is told.
const maxCode = 64

// code is the code of an error as the store tells it, if it is one: a word of letters.
func code(text string) string {
	noLetter := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
	if len(text) > maxCode || strings.ContainsFunc(text, noLetter) {
		return ""
	}
	return text
}

// refused is the error of an answer, with the reason of a Store's error where there is one: of the code, or else of
// the status.
func refused(status int, text string, reasons map[string]error) error {
	r := &refusal{status: status, code: code(text)}
	reason, found := reasons[text]
	if !found {
		reason = statusReason(status)
	}
	if reason == nil {
		return r
	}
	return fmt.Errorf("%w: %w", reason, r)
}

// statusReason is the reason that an HTTP status says by itself.
func statusReason(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrPermission
	case http.StatusInsufficientStorage:
		return ErrFull
	}
	return nil
}
