package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"
)

const (
	keystonePath = "/v3"
	// maxSegments is how many segments Swift lets a large object have, if it is not configured otherwise: with
	// partSize, an object has at most 15 GiB.
	maxSegments = 1000
)

// SwiftOptions say where a container of OpenStack Swift is.
type SwiftOptions struct {
	Connection
	// AuthURL is that of Keystone, with the path /v3 or without. One with http is not encrypted in transit.
	AuthURL string
	// Region of the catalog that the store is of; empty: the only one.
	Region string
	// Bucket is the container, which must exist.
	Bucket string
	// Credentials are asked for with each request; see SwiftCredentialsIn.
	Credentials func() (SwiftCredentials, error)
}

// Swift keeps objects in a container of OpenStack Swift. What is larger than one part is a static large object, whose
// segments lie beside it, with names that no object can have. Delete removes them; those of a Put that a crash ended
// stay until its object is deleted.
type Swift struct {
	options  SwiftOptions
	identity string
	client   *http.Client
	services *sessions[SwiftCredentials, gophercloud.ServiceClient]
}

// NewSwift returns a store and connects to nothing.
func NewSwift(options SwiftOptions) (*Swift, error) {
	identity, err := parseURL(options.AuthURL)
	if err != nil {
		return nil, fmt.Errorf("the URL of Keystone: %w", err)
	}
	if identity.Scheme == "http" && len(options.CA) > 0 {
		return nil, errors.New("a CA is given for a Keystone that does not use TLS")
	}
	if options.Bucket == "" || strings.Contains(options.Bucket, "/") || options.Credentials == nil {
		return nil, errors.New("a store of Swift needs a bucket, without slashes, and credentials")
	}
	client, err := options.repeating()
	if err != nil {
		return nil, err
	}
	root := strings.TrimSuffix(strings.TrimSuffix(identity.String(), "/"), keystonePath)
	return &Swift{
		options: options, identity: root + keystonePath + "/", client: client,
		services: newSessions[SwiftCredentials, gophercloud.ServiceClient](),
	}, nil
}

// service is what the credentials give access to. It is got anew when they change or the token ends.
func (s *Swift) service(ctx context.Context) (*gophercloud.ServiceClient, error) {
	credentials, err := s.options.Credentials()
	if err != nil {
		return nil, err
	}
	return s.services.get(ctx, credentials,
		func(ctx context.Context) (*gophercloud.ServiceClient, time.Time, error) {
			service, end, err := s.authenticate(ctx, credentials)
			if err != nil {
				return nil, time.Time{}, fmt.Errorf("getting a token of Keystone: %w", err)
			}
			return service, end, nil
		})
}

func (s *Swift) authenticate(
	ctx context.Context, credentials SwiftCredentials,
) (*gophercloud.ServiceClient, time.Time, error) {
	identity := &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{HTTPClient: *s.client}, Endpoint: s.identity,
	}
	result := tokens.Create(ctx, identity, credentials.auth())
	if result.Err != nil {
		return nil, time.Time{}, swiftReasoned(result.Err)
	}
	token, err := result.ExtractToken()
	if err != nil || token.ID == "" {
		return nil, time.Time{}, fmt.Errorf("%w: there is no token in it", errAnswer)
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: there is no catalog in it", errAnswer)
	}
	endpoint, err := s.endpoint(catalog)
	if err != nil {
		return nil, time.Time{}, err
	}
	return &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{HTTPClient: *s.client, TokenID: token.ID}, Endpoint: endpoint,
	}, token.ExpiresAt, nil
}

// endpoint finds the store in the catalog. The token is not sent without TLS if the credentials were sent with it.
func (s *Swift) endpoint(catalog *tokens.ServiceCatalog) (string, error) {
	var found []string
	for _, entry := range catalog.Entries {
		if entry.Type != "object-store" {
			continue
		}
		for _, e := range entry.Endpoints {
			if e.Interface == "public" &&
				(s.options.Region == "" || s.options.Region == e.Region || s.options.Region == e.RegionID) {
				found = append(found, e.URL)
			}
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the catalog has %d public endpoints of type object-store for region %q, one is needed",
			len(found), s.options.Region)
	}
	endpoint, err := parseURL(found[0])
	if err != nil {
		return "", fmt.Errorf("the endpoint of the store in the catalog: %w", err)
	}
	if endpoint.Scheme == "http" && strings.HasPrefix(s.identity, "https:") {
		return "", errors.New("the endpoint of the store in the catalog does not use TLS, Keystone does")
	}
	return strings.TrimSuffix(endpoint.String(), "/") + "/", nil
}

// do makes a request, for the second time with another token if the first is not taken.
func (s *Swift) do(ctx context.Context, request func(*gophercloud.ServiceClient) error) error {
	for first := true; ; first = false {
		service, err := s.service(ctx)
		if err != nil {
			return err
		}
		err = request(service)
		if !first || !gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return swiftReasoned(err)
		}
		s.services.drop(service)
	}
}

// swiftReasoned makes an error of Swift's client one of a Store. It does not tell the answer's words.
func swiftReasoned(err error) error {
	var response gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &response) {
		return unquoted(err)
	}
	reasons := map[string]error{}
	// Swift says 413 both of an object that is too large and of a quota, other servers that speak its protocol 403.
	if response.Actual == http.StatusRequestEntityTooLarge || response.Actual == http.StatusForbidden {
		if bytes.Contains(bytes.ToLower(response.Body), []byte("quota")) {
			reasons[""] = ErrFull
		}
	}
	return refused(response.Actual, "", reasons)
}

// Put implements Store.
func (s *Swift) Put(ctx context.Context, name string, reader io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	to := &swiftUpload{store: s, name: name, prefix: name + "." + rand.Text() + partialSuffix + "/"}
	if err := putParts(ctx, reader, size, to); err != nil {
		return fmt.Errorf("putting %s: %w", name, err)
	}
	return nil
}

// swiftUpload puts segments, of which a manifest makes an object.
type swiftUpload struct {
	store        *Swift
	name, prefix string
	segments     []swiftSegment
}

// swiftSegment is an entry of a manifest.
type swiftSegment struct {
	Path string `json:"path"`
	ETag string `json:"etag"`
	Size int    `json:"size_bytes"`
}

// create puts one object. Swift holds its content to the checksum.
func (s *Swift) create(ctx context.Context, name, sum, manifest string, content []byte) error {
	return s.do(ctx, func(service *gophercloud.ServiceClient) error {
		return objects.Create(ctx, service, s.options.Bucket, name, objects.CreateOpts{
			Content: bytes.NewReader(content), ContentType: octets, ETag: sum, NoETag: sum == "",
			MultipartManifest: manifest,
		}).Err
	})
}

func hexMD5(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}

func (u *swiftUpload) whole(ctx context.Context, content []byte) error {
	return u.store.create(ctx, u.name, hexMD5(content), "", content)
}

func (u *swiftUpload) part(ctx context.Context, content []byte, last bool) error {
	if len(u.segments) == maxSegments {
		return fmt.Errorf("the content is longer than %d segments of %d bytes, which is what Swift takes", maxSegments,
			partSize)
	}
	name, sum := fmt.Sprintf("%s%06d", u.prefix, len(u.segments)), hexMD5(content)
	if err := u.store.create(ctx, name, sum, "", content); err != nil {
		return err
	}
	u.segments = append(u.segments, swiftSegment{
		Path: path.Join(u.store.options.Bucket, name), ETag: sum, Size: len(content),
	})
	if !last {
		return nil
	}
	manifest, err := json.Marshal(u.segments)
	if err != nil {
		return err
	}
	return u.store.create(ctx, u.name, "", "put", manifest)
}

func (u *swiftUpload) abort(ctx context.Context) {
	for _, segment := range u.segments {
		_, name, _ := strings.Cut(segment.Path, "/")
		_ = u.store.remove(ctx, name)
	}
}

// Get implements Store.
func (s *Swift) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	var got objects.DownloadResult
	err := s.do(ctx, func(service *gophercloud.ServiceClient) error {
		got = objects.Download(withContent(ctx), service, s.options.Bucket, name, nil)
		return got.Err
	})
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", name, s.confirmMissing(ctx, err))
	}
	var sum []byte
	// Of an object of segments the checksum is that of their checksums.
	if !strings.EqualFold(got.Header.Get("X-Static-Large-Object"), "true") {
		if sum, err = hex.DecodeString(strings.Trim(got.Header.Get("ETag"), `"`)); err != nil {
			sum = nil
		}
	}
	return check(got.Body, md5.New(), sum), nil
}

// List implements Store.
func (s *Swift) List(ctx context.Context, prefix string) ([]Object, error) {
	found, err := s.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing objects that begin with %q: %w", prefix, err)
	}
	var all []Object
	for _, object := range found {
		if !isSegment.MatchString(object.Name) {
			all = append(all, object)
		}
	}
	return all, nil
}

// isSegment knows the names of segments: no object has a part of its name that ends so.
var isSegment = regexp.MustCompile(regexp.QuoteMeta(partialSuffix) + `/\d{6}$`)

// list lists segments too.
func (s *Swift) list(ctx context.Context, prefix string) ([]Object, error) {
	found := listing{prefix: prefix}
	for marker := ""; ; {
		page, err := s.page(ctx, url.Values{"prefix": {prefix}, "marker": {marker}})
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return found.sorted(), nil
		}
		for _, object := range page {
			err := found.add(Object{Name: object.Name, Size: object.Bytes, Modified: object.LastModified})
			if err != nil {
				return nil, err
			}
		}
		if next := page[len(page)-1].Name; next > marker {
			marker = next
			continue
		}
		return nil, fmt.Errorf("%w: a listing does not go on after its last page", errAnswer)
	}
}

// page is asked for without the client's own way to list, for which an answer that is no JSON is an empty page.
func (s *Swift) page(ctx context.Context, query url.Values) ([]objects.Object, error) {
	query.Set("format", "json")
	var page []objects.Object
	err := s.do(ctx, func(service *gophercloud.ServiceClient) error {
		page = nil
		address := service.ServiceURL(url.PathEscape(s.options.Bucket)) + "?" + query.Encode()
		_, err := service.Get(ctx, address, &page, &gophercloud.RequestOpts{
			OkCodes: []int{http.StatusOK, http.StatusNoContent},
		})
		return err
	})
	return page, err
}

// confirmMissing is for an answer that says that something does not exist: only where the container does, is it the
// object.
func (s *Swift) confirmMissing(ctx context.Context, err error) error {
	if !missing(err) {
		return err
	}
	if _, err := s.page(ctx, url.Values{"limit": {"1"}}); err != nil {
		return fmt.Errorf("looking whether there is a container %q: %w", s.options.Bucket, err)
	}
	return fmt.Errorf("%w: %w", ErrNotFound, err)
}

func (s *Swift) remove(ctx context.Context, name string) error {
	return s.do(ctx, func(service *gophercloud.ServiceClient) error {
		return objects.Delete(ctx, service, s.options.Bucket, name, nil).Err
	})
}

// Delete implements Store.
func (s *Swift) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := s.remove(ctx, name)
	if err == nil || missing(err) {
		// Tells too whether there is such a container.
		err = s.removeSegments(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	return nil
}

// removeSegments removes those of all uploads of an object.
func (s *Swift) removeSegments(ctx context.Context, name string) error {
	found, err := s.list(ctx, name+".")
	if err != nil {
		return fmt.Errorf("listing its segments: %w", err)
	}
	for _, object := range found {
		upload, number, _ := strings.Cut(strings.TrimPrefix(object.Name, name+"."), "/")
		if strings.Contains(number, "/") || !isSegment.MatchString(upload+"/"+number) ||
			strings.Contains(strings.TrimSuffix(upload, partialSuffix), ".") {
			continue
		}
		if err := s.remove(ctx, object.Name); err != nil && !missing(err) {
			return fmt.Errorf("deleting its segment %s: %w", object.Name, err)
		}
	}
	return nil
}
