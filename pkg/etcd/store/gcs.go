package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
)

const (
	// gcsEndpoint is where Google serves the JSON API, gcsPath its path there and anywhere else.
	gcsEndpoint = "https://storage.googleapis.com"
	gcsPath     = "/storage/v1"
	gcsScope    = "https://www.googleapis.com/auth/devstorage.read_write"
	// maxErrorAnswer bounds how much of an error is looked at for its code.
	maxErrorAnswer = 64 << 10
)

// castagnoli is the polynomial of the checksum that all objects of GCS have.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// GCSOptions say where a bucket of Google Cloud Storage is.
type GCSOptions struct {
	Connection
	// Endpoint of the JSON API: a URL with https, with the path /storage/v1 or none; empty: Google's.
	Endpoint string
	// Bucket, which must exist.
	Bucket string
	// Credentials are asked for with each request; see GCSCredentialsIn.
	Credentials func() (GCSCredentials, error)
}

// GCS keeps objects in a bucket of Google Cloud Storage. What a retention policy or a hold protects stays. Where
// objects have versions, Delete leaves the older ones to a lifecycle rule.
type GCS struct {
	options GCSOptions
	// endpoint is scheme and host.
	endpoint *url.URL
	client   *http.Client
	tokens   *sessions[GCSCredentials, string]
}

// NewGCS returns a store and connects to nothing.
func NewGCS(options GCSOptions) (*GCS, error) {
	if options.Endpoint == "" {
		options.Endpoint = gcsEndpoint
	}
	endpoint, err := parseURL(options.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of GCS: %w", err)
	}
	path := strings.TrimSuffix(endpoint.Path, "/")
	if endpoint.Scheme != "https" || (path != "" && path != gcsPath) {
		return nil, fmt.Errorf("the endpoint of GCS is no URL such as %s%s", gcsEndpoint, gcsPath)
	}
	if options.Bucket == "" || options.Credentials == nil {
		return nil, errors.New("a store of GCS needs a bucket and credentials")
	}
	client, err := options.repeating()
	if err != nil {
		return nil, err
	}
	return &GCS{
		options: options, endpoint: &url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host}, client: client,
		tokens: newSessions[GCSCredentials, string](),
	}, nil
}

// token permits requests. It is got for the service account, and again when that changes.
func (s *GCS) token(ctx context.Context) (*string, error) {
	credentials, err := s.options.Credentials()
	if err != nil {
		return nil, err
	}
	return s.tokens.get(ctx, credentials, func(ctx context.Context) (*string, time.Time, error) {
		config := jwt.Config{
			Email: credentials.ClientEmail, PrivateKey: []byte(credentials.PrivateKey),
			PrivateKeyID: credentials.PrivateKeyID, TokenURL: credentials.TokenURI, Scopes: []string{gcsScope},
		}
		client := &http.Client{Transport: within{ctx: ctx, next: s.client.Transport}}
		token, err := config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("getting a token for the service account: %w", tokenError(ctx, err))
		}
		if token.AccessToken == "" {
			return nil, time.Time{}, fmt.Errorf("getting a token for the service account: %w", errAnswer)
		}
		return &token.AccessToken, token.Expiry, nil
	})
}

// within has the requests of a client that knows no contexts end with one.
type within struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w within) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(request.WithContext(w.ctx))
}

// tokenError is for a client that does not wrap what it returns, and whose errors have the answer.
func tokenError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var response *oauth2.RetrieveError
	if !errors.As(err, &response) || response.Response == nil {
		return errors.New("the service that issues tokens cannot be reached, or its answer is none")
	}
	reasons := map[string]error{}
	if response.Response.StatusCode == http.StatusBadRequest {
		reasons[""] = ErrPermission
	}
	return refused(response.Response.StatusCode, "", reasons)
}

// url of something of the bucket. The last element is an object's name, which has slashes.
func (s *GCS) url(prefix, suffix string, query url.Values) string {
	path := prefix + gcsPath + "/b/" + url.PathEscape(s.options.Bucket) + "/o" + suffix
	return s.endpoint.String() + path + "?" + query.Encode()
}

func (s *GCS) object(name string, query url.Values) string {
	return s.url("", "/"+url.PathEscape(name), query)
}

// do makes a request, for the second time with another token if the first is not taken. The caller closes the answer.
func (s *GCS) do(
	ctx context.Context, method, address string, header http.Header, body []byte,
) (*http.Response, error) {
	for first := true; ; first = false {
		token, err := s.token(ctx)
		if err != nil {
			return nil, err
		}
		request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
		if err != nil {
			return nil, errAnswer
		}
		for key, values := range header {
			request.Header[key] = values
		}
		request.Header.Set("Authorization", "Bearer "+*token)
		response, err := s.client.Do(request)
		if err != nil {
			return nil, unquoted(err)
		}
		if response.StatusCode != http.StatusUnauthorized || !first {
			return response, nil
		}
		_ = response.Body.Close()
		s.tokens.drop(token)
	}
}

// call makes a request of which the answer is JSON, for result if it is not nil.
func (s *GCS) call(
	ctx context.Context, method, address string, header http.Header, body []byte, result any,
) (http.Header, error) {
	response, err := s.do(ctx, method, address, header, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 {
		return nil, gcsRefusal(response)
	}
	if result == nil {
		return response.Header, nil
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, unquoted(err)
	}
	if json.Unmarshal(text, result) != nil {
		return nil, errAnswer
	}
	return response.Header, nil
}

// gcsReasons are the reasons of GCS' errors that are reasons of a Store's.
var gcsReasons = map[string]error{
	"retentionPolicyNotMet": ErrImmutable,
	"objectUnderActiveHold": ErrImmutable,
	"quotaExceeded":         ErrFull,
	// These pass, although their status is that of a permission that is missing.
	"rateLimitExceeded":     nil,
	"userRateLimitExceeded": nil,
}

// gcsRefusal is the error that an answer tells. One of what does not exist has no reason: it may be the bucket.
func gcsRefusal(response *http.Response) error {
	var told struct {
		Error struct {
			Errors []struct{ Reason string }
		}
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorAnswer))
	reason := ""
	if json.Unmarshal(text, &told) == nil && len(told.Error.Errors) > 0 {
		reason = told.Error.Errors[0].Reason
	}
	return refused(response.StatusCode, reason, gcsReasons)
}

func missing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound
}

// confirmMissing is for an answer that says that something does not exist: only where the bucket does, is it the
// object.
func (s *GCS) confirmMissing(ctx context.Context, err error) error {
	if !missing(err) {
		return err
	}
	var page gcsPage
	query := url.Values{"maxResults": {"1"}, "fields": {"kind"}}
	if _, err := s.call(ctx, http.MethodGet, s.url("", "", query), nil, nil, &page); err != nil {
		return fmt.Errorf("looking whether there is a bucket %q: %w", s.options.Bucket, err)
	}
	return fmt.Errorf("%w: %w", ErrNotFound, err)
}

// Put implements Store.
func (s *GCS) Put(ctx context.Context, name string, reader io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := putParts(ctx, reader, size, &gcsUpload{store: s, name: name}); err != nil {
		return fmt.Errorf("putting %s: %w", name, err)
	}
	return nil
}

// gcsUpload puts an object in one request, or in a session that is resumed for each part.
type gcsUpload struct {
	store   *GCS
	name    string
	session string
	sent    int64
	sum     uint32
}

// gcsObject is what GCS tells of an object.
type gcsObject struct {
	Name        string     `json:"name"`
	ContentType string     `json:"contentType,omitempty"`
	Size        string     `json:"size,omitempty"`
	CRC32C      string     `json:"crc32c,omitempty"`
	Updated     *time.Time `json:"updated,omitempty"`
}

func encodeCRC(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// whole has GCS hold the content to a checksum.
func (u *gcsUpload) whole(ctx context.Context, content []byte) error {
	described, err := json.Marshal(gcsObject{
		Name: u.name, ContentType: octets, CRC32C: encodeCRC(crc32.Checksum(content, castagnoli)),
	})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for _, part := range []struct {
		kind    string
		content []byte
	}{{"application/json", described}, {octets, content}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.kind}})
		if err == nil {
			_, err = w.Write(part.content)
		}
		if err != nil {
			return err
		}
	}
	if err := parts.Close(); err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"multipart/related; boundary=" + parts.Boundary()}}
	query := url.Values{"uploadType": {"multipart"}, "fields": {"name"}}
	_, err = u.store.call(ctx, http.MethodPost, u.store.url("/upload", "", query), header, body.Bytes(), nil)
	return err
}

// begin begins a session.
func (u *gcsUpload) begin(ctx context.Context) error {
	described, err := json.Marshal(gcsObject{Name: u.name, ContentType: octets})
	if err != nil {
		return err
	}
	query := url.Values{"uploadType": {"resumable"}, "fields": {"size,crc32c"}}
	header := http.Header{"Content-Type": {"application/json"}, "X-Upload-Content-Type": {octets}}
	got, err := u.store.call(ctx, http.MethodPost, u.store.url("/upload", "", query), header, described, nil)
	if err != nil {
		return err
	}
	session, err := url.Parse(got.Get("Location"))
	if err != nil || session.Scheme != u.store.endpoint.Scheme || session.Host != u.store.endpoint.Host ||
		session.User != nil {
		return fmt.Errorf("%w: an upload is to go to another host", errAnswer)
	}
	u.session = session.String()
	return nil
}

func (u *gcsUpload) part(ctx context.Context, content []byte, last bool) error {
	if u.session == "" {
		if err := u.begin(ctx); err != nil {
			return err
		}
	}
	u.sum = crc32.Update(u.sum, castagnoli, content)
	for {
		taken, err := u.send(ctx, content, last)
		if err != nil {
			return err
		}
		content, u.sent = content[taken:], u.sent+int64(taken)
		if len(content) == 0 {
			return nil
		}
	}
}

// send sends content and returns how much of it GCS took: at least something, and of the last part all.
func (u *gcsUpload) send(ctx context.Context, content []byte, last bool) (int, error) {
	end, total := u.sent+int64(len(content)), "*"
	if last {
		total = strconv.FormatInt(end, 10)
	}
	header := http.Header{
		"Content-Type": {octets}, "Content-Range": {fmt.Sprintf("bytes %d-%d/%s", u.sent, end-1, total)},
	}
	response, err := u.store.do(ctx, http.MethodPut, u.session, header, content)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusPermanentRedirect:
		taken, err := u.taken(response.Header.Get("Range"), end)
		if err == nil && last && taken == len(content) {
			err = fmt.Errorf("%w: an upload does not end with its last part", errAnswer)
		}
		return taken, err
	case response.StatusCode >= 300:
		return 0, gcsRefusal(response)
	case !last:
		return 0, fmt.Errorf("%w: an upload ends before its last part", errAnswer)
	}
	return len(content), u.confirm(ctx, response.Body, end)
}

// taken is how many bytes more GCS has than before, by what it says that it has.
func (u *gcsUpload) taken(header string, end int64) (int, error) {
	until, found := strings.CutPrefix(header, "bytes=0-")
	has, err := strconv.ParseInt(until, 10, 64)
	if !found || err != nil || has < u.sent || has >= end {
		return 0, fmt.Errorf("%w: an upload does not go on where it was", errAnswer)
	}
	return int(has + 1 - u.sent), nil
}

// confirm deletes the object again if it is not what was sent.
func (u *gcsUpload) confirm(ctx context.Context, answer io.Reader, size int64) error {
	text, err := io.ReadAll(answer)
	if err != nil {
		return unquoted(err)
	}
	var object gcsObject
	if json.Unmarshal(text, &object) == nil && object.CRC32C == encodeCRC(u.sum) &&
		object.Size == strconv.FormatInt(size, 10) {
		return nil
	}
	err = fmt.Errorf("%w: the object is not what was put, by its size or checksum", errAnswer)
	return errors.Join(err, u.store.Delete(ctx, u.name))
}

func (u *gcsUpload) abort(ctx context.Context) {
	if u.session == "" {
		return
	}
	if response, err := u.store.do(ctx, http.MethodDelete, u.session, nil, nil); err == nil {
		_ = response.Body.Close()
	}
}

// Get implements Store.
func (s *GCS) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	address := s.object(name, url.Values{"alt": {"media"}})
	response, err := s.do(withContent(ctx), http.MethodGet, address, nil, nil)
	if err == nil && response.StatusCode != http.StatusOK {
		err = gcsRefusal(response)
		_ = response.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", name, s.confirmMissing(ctx, err))
	}
	return check(response.Body, crc32.New(castagnoli), hashOf(response.Header)), nil
}

// hashOf is the CRC32C that headers tell; nil if they tell none.
func hashOf(header http.Header) []byte {
	for _, value := range header.Values("X-Goog-Hash") {
		for hash := range strings.SplitSeq(value, ",") {
			if text, found := strings.CutPrefix(strings.TrimSpace(hash), "crc32c="); found {
				sum, err := base64.StdEncoding.DecodeString(text)
				if err == nil {
					return sum
				}
			}
		}
	}
	return nil
}

// gcsPage is a page of a listing.
type gcsPage struct {
	// Kind is asked for, as a page without objects has nothing else to be known by.
	Kind          string
	NextPageToken string
	Items         []gcsObject
}

// List implements Store.
func (s *GCS) List(ctx context.Context, prefix string) ([]Object, error) {
	objects, err := s.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing objects that begin with %q: %w", prefix, err)
	}
	return objects, nil
}

func (s *GCS) list(ctx context.Context, prefix string) ([]Object, error) {
	found := listing{prefix: prefix}
	query := url.Values{"prefix": {prefix}, "fields": {"kind,nextPageToken,items(name,size,updated)"}}
	for {
		var page gcsPage
		if _, err := s.call(ctx, http.MethodGet, s.url("", "", query), nil, nil, &page); err != nil {
			return nil, err
		}
		if err := page.addTo(&found); err != nil {
			return nil, err
		}
		if page.NextPageToken == "" {
			return found.sorted(), nil
		}
		if err := found.endPage(); err != nil {
			return nil, err
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

func (p *gcsPage) addTo(found *listing) error {
	if p.Kind != "storage#objects" {
		return errAnswer
	}
	for _, item := range p.Items {
		size, err := strconv.ParseInt(item.Size, 10, 64)
		if err != nil || item.Updated == nil {
			return errAnswer
		}
		if err := found.add(Object{Name: item.Name, Size: size, Modified: *item.Updated}); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements Store.
func (s *GCS) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := s.call(ctx, http.MethodDelete, s.object(name, nil), nil, nil, nil)
	if err != nil {
		err = s.confirmMissing(ctx, err)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	return nil
}
