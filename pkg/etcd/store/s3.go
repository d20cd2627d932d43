package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

const (
	// partSize is what an upload of unknown or greater size is cut into, and the memory it takes. S3 allows 10,000
	// parts, so an object has at most 156 GiB.
	partSize = 16 << 20
	// attempts of a request to S3 before its error is returned.
	attempts = 5
	// abortTimeout bounds the clean-up after an upload that failed, which its own context may have ended.
	abortTimeout = 30 * time.Second
	// maxVersions bounds how many versions of one object Delete removes: one is usual, one more for each Put that was
	// repeated.
	maxVersions = 100
)

// Encryption at rest by the store.
type Encryption string

// The ways of encryption at rest that a store can be asked for; none is the bucket's default.
const (
	BucketDefault Encryption = ""
	AES256        Encryption = "AES256"
	KMS           Encryption = "aws:kms"
)

// S3Options say where an S3 store is and how it is used.
type S3Options struct {
	// Endpoint is a URL such as https://s3.eu-central-1.amazonaws.com. One with http is not encrypted in transit.
	Endpoint string
	// Region that requests are signed for; empty: the one that the store tells, us-east-1 if it tells none.
	Region string
	// Bucket, which must exist.
	Bucket string
	// PathStyle puts the bucket into the path of URLs and not into the host name, as most stores but AWS want it.
	PathStyle bool
	// Credentials are asked for with each request; see S3CredentialsIn.
	Credentials func() (S3Credentials, error)
	// CA is a PEM bundle that the endpoint's certificate must be verified by; empty: the system's.
	CA []byte
	// Encryption and KMSKey ask the store to encrypt objects at rest. KMSKey is for KMS only; empty: the default one.
	Encryption Encryption
	KMSKey     string
	// Dial connects to the endpoint; nil: directly, or through the proxy of the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// S3 keeps objects in a bucket of an S3 store. Where the bucket has object lock, what is protected stays.
type S3 struct {
	client     *minio.Client
	bucket     string
	encryption encrypt.ServerSide
}

// NewS3 returns a store and connects to nothing.
func NewS3(options S3Options) (*S3, error) {
	endpoint, err := url.Parse(options.Endpoint)
	if err != nil || endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" ||
		(endpoint.Scheme != "https" && endpoint.Scheme != "http") {
		return nil, fmt.Errorf("the endpoint %q is not a URL such as https://s3.example.com without a path",
			options.Endpoint)
	}
	if options.Bucket == "" || options.Credentials == nil {
		return nil, errors.New("an S3 store needs a bucket and credentials")
	}
	transport, err := options.transport(endpoint.Scheme == "https")
	if err != nil {
		return nil, err
	}
	encryption, err := options.serverSide()
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupDNS
	if options.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:        credentials.New(provider(options.Credentials)),
		Secure:       endpoint.Scheme == "https",
		Transport:    transport,
		Region:       options.Region,
		BucketLookup: lookup,
		MaxRetries:   attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", options.Endpoint, err)
	}
	return &S3{client: client, bucket: options.Bucket, encryption: encryption}, nil
}

func (o *S3Options) transport(secure bool) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	if o.Dial != nil {
		transport.DialContext, transport.Proxy = o.Dial, nil
	}
	if len(o.CA) == 0 {
		return transport, nil
	}
	if !secure {
		return nil, fmt.Errorf("a CA is given for %s, which does not use TLS", o.Endpoint)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(o.CA) {
		return nil, errors.New("the CA of the S3 store has no certificate in PEM")
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}

func (o *S3Options) serverSide() (encrypt.ServerSide, error) {
	if o.KMSKey != "" && o.Encryption != KMS {
		return nil, fmt.Errorf("a key of a KMS is given for encryption %q, it is for %q only", o.Encryption, KMS)
	}
	switch o.Encryption {
	case BucketDefault:
		return nil, nil
	case AES256:
		return encrypt.NewSSE(), nil
	case KMS:
		return encrypt.NewSSEKMS(o.KMSKey, nil)
	}
	return nil, fmt.Errorf("encryption at rest is %q, it can be %q, %q or empty", o.Encryption, AES256, KMS)
}

// provider has the client ask for credentials with each request.
type provider func() (S3Credentials, error)

func (p provider) Retrieve() (credentials.Value, error) {
	c, err := p()
	return credentials.Value{
		AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken,
		SignerType: credentials.SignatureV4,
	}, err
}

func (p provider) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return p.Retrieve()
}

func (p provider) IsExpired() bool { return true }

// Put implements Store.
func (s *S3) Put(ctx context.Context, name string, reader io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	source, err := newContent(ctx, reader, size)
	if err == nil {
		_, err = s.client.PutObject(ctx, s.bucket, name, source, size, minio.PutObjectOptions{
			ContentType:          octets,
			PartSize:             partSize,
			ServerSideEncryption: s.encryption,
			// Every store knows this checksum, and buckets with object lock ask for one.
			SendContentMd5: true,
		})
	}
	if err == nil {
		return nil
	}
	if size == Unknown || size > partSize {
		s.abort(ctx, name)
	}
	return fmt.Errorf("putting %s: %w", name, s3Reasoned(err))
}

// abort drops the parts of an upload that failed, which would be paid for. It cannot do more than try: a lifecycle
// rule of the bucket has to remove what a killed process leaves.
func (s *S3) abort(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_ = s.client.RemoveIncompleteUpload(ctx, s.bucket, name)
}

// Get implements Store.
func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	core := minio.Core{Client: s.client}
	body, _, _, err := core.GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", name, s3Reasoned(err))
	}
	return body, nil
}

// List implements Store.
func (s *S3) List(ctx context.Context, prefix string) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var objects []Object
	found := s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true})
	for o := range found {
		if o.Err != nil {
			return nil, fmt.Errorf("listing objects that begin with %q: %w", prefix, s3Reasoned(o.Err))
		}
		objects = append(objects, Object{Name: o.Key, Size: o.Size, Modified: o.LastModified})
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("listing objects that begin with %q: %w", prefix, err)
	}
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, nil
}

// Delete implements Store. In a bucket with versions it removes the versions themselves: without, the object would
// only be hidden, which retention allows, and still be paid for.
func (s *S3) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for range maxVersions {
		info, err := s.client.StatObject(ctx, s.bucket, name, minio.StatObjectOptions{})
		if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
			return s.confirmMissing(ctx, name)
		}
		if err == nil {
			err = s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{VersionID: info.VersionID})
			if err != nil && retained(info) {
				err = fmt.Errorf("%w: %w", ErrImmutable, err)
			}
		}
		if err != nil {
			return fmt.Errorf("deleting %s: %w", name, s3Reasoned(err))
		}
		if info.VersionID == "" {
			return nil
		}
	}
	return fmt.Errorf("deleting %s: it had more than %d versions; delete again", name, maxVersions)
}

// confirmMissing returns no error if there is no object. The answer to a HEAD has no body, so that a bucket or a user
// that is missing looks the same there.
func (s *S3) confirmMissing(ctx context.Context, name string) error {
	body, err := s.Get(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = errors.Join(errors.New("it was put at the same time; delete again"), body.Close())
	}
	return fmt.Errorf("deleting %s: %w", name, err)
}

// retained tells by an object's headers whether retention or a legal hold protects it. Some stores refuse to delete
// it with no other words than for want of permission.
func retained(info minio.ObjectInfo) bool {
	until, err := time.Parse(time.RFC3339, info.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	return (err == nil && until.After(time.Now())) || info.Metadata.Get("X-Amz-Object-Lock-Legal-Hold") == "ON"
}

// s3Codes are the error codes of S3, and of servers with codes of their own, that have a reason.
var s3Codes = map[error][]string{
	ErrNotFound:  {minio.NoSuchKey, "NoSuchVersion"},
	ErrFull:      {"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"},
	ErrImmutable: {"ObjectLocked"},
	ErrPermission: {
		minio.AccessDenied, "InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "ExpiredToken",
		"InvalidToken",
	},
}

// s3Reasoned adds the reason of a Store's error to one of S3.
func s3Reasoned(err error) error {
	var response minio.ErrorResponse
	if errors.Is(err, ErrImmutable) || !errors.As(err, &response) {
		return err
	}
	if reason := s3Reason(response); reason != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

func s3Reason(response minio.ErrorResponse) error {
	for reason, codes := range s3Codes {
		if slices.Contains(codes, response.Code) {
			if reason == ErrPermission && strings.Contains(strings.ToLower(response.Message), "object lock") {
				return ErrImmutable
			}
			return reason
		}
	}
	return statusReason(response.StatusCode)
}
