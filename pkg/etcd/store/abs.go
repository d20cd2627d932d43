package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// absDomain is that of Azure's own clouds but those of governments.
const absDomain = "blob.core.windows.net"

// absAccount is what storage accounts are called: it becomes part of a host's name.
var absAccount = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

// ABSOptions say where a container of Azure Blob Storage is.
type ABSOptions struct {
	Connection
	// Domain that the storage account's name is put before; empty: blob.core.windows.net.
	Domain string
	// Bucket is the container, which must exist.
	Bucket string
	// Credentials are asked for with each request; see ABSCredentialsIn.
	Credentials func() (ABSCredentials, error)
}

// ABS keeps objects as block blobs in a container of Azure Blob Storage. What an immutability policy or a legal hold
// protects stays. Where blobs have versions, Delete leaves the older ones to a lifecycle policy.
type ABS struct {
	options ABSOptions
	client  *http.Client
}

// NewABS returns a store and connects to nothing.
func NewABS(options ABSOptions) (*ABS, error) {
	if options.Domain == "" {
		options.Domain = absDomain
	}
	parsed, err := parseURL("https://account." + options.Domain)
	if err != nil || parsed.Path != "" {
		return nil, fmt.Errorf("the domain %q is none such as %s", options.Domain, absDomain)
	}
	if options.Bucket == "" || options.Credentials == nil {
		return nil, errors.New("a store of Azure needs a bucket and credentials")
	}
	client, err := options.client()
	if err != nil {
		return nil, err
	}
	return &ABS{options: options, client: client}, nil
}

// container makes a client for one request.
func (s *ABS) container() (*container.Client, error) {
	credentials, err := s.options.Credentials()
	if err != nil {
		return nil, err
	}
	if !absAccount.MatchString(credentials.StorageAccount) {
		return nil, errors.New("the storage account has no name of 3 to 24 small letters and digits")
	}
	key, err := container.NewSharedKeyCredential(credentials.StorageAccount, credentials.StorageKey)
	if err != nil {
		return nil, fmt.Errorf("the key of the storage account is not in base64: %w", ErrPermission)
	}
	address := "https://" + credentials.StorageAccount + "." + s.options.Domain + "/" + url.PathEscape(s.options.Bucket)
	return container.NewClientWithSharedKeyCredential(address, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: s.client,
			Retry: policy.RetryOptions{
				MaxRetries: attempts - 1, RetryDelay: s.options.retryDelay(), MaxRetryDelay: longestDelay,
			},
			Telemetry: policy.TelemetryOptions{Disabled: true},
		},
	})
}

func (s *ABS) blob(name string) (*blockblob.Client, error) {
	c, err := s.container()
	if err != nil {
		return nil, err
	}
	return c.NewBlockBlobClient(name), nil
}

// Put implements Store.
func (s *ABS) Put(ctx context.Context, name string, reader io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	to := &absUpload{store: s, name: name, id: rand.Text(), sum: md5.New()}
	if err := putParts(ctx, reader, size, to); err != nil {
		return fmt.Errorf("putting %s: %w", name, err)
	}
	return nil
}

// absUpload puts blocks, of which a list makes a blob. Blocks that no list has are gone after a week.
type absUpload struct {
	store *ABS
	name  string
	// id is part of those of the blocks, so that uploads of the same name do not take each other's.
	id     string
	blocks []string
	sum    hash.Hash
}

func (u *absUpload) whole(ctx context.Context, content []byte) error {
	blob, err := u.store.blob(u.name)
	if err != nil {
		return err
	}
	_, _ = u.sum.Write(content)
	_, err = blob.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{
		TransactionalValidation: validated(u.sum.Sum(nil)), HTTPHeaders: u.headers(),
	})
	return absReasoned(err)
}

func (u *absUpload) part(ctx context.Context, content []byte, last bool) error {
	blob, err := u.store.blob(u.name)
	if err != nil {
		return err
	}
	_, _ = u.sum.Write(content)
	id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%05d", u.id, len(u.blocks)))
	sum := md5.Sum(content)
	_, err = blob.StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(content)), &blockblob.StageBlockOptions{
		TransactionalValidation: validated(sum[:]),
	})
	u.blocks = append(u.blocks, id)
	if err == nil && last {
		_, err = blob.CommitBlockList(ctx, u.blocks, &blockblob.CommitBlockListOptions{HTTPHeaders: u.headers()})
	}
	return absReasoned(err)
}

func (u *absUpload) abort(context.Context) {}

// headers are what the blob is told to have. Content is held to its checksum when it is got.
func (u *absUpload) headers() *blob.HTTPHeaders {
	return &blob.HTTPHeaders{
		BlobContentType: new(octets), BlobContentMD5: u.sum.Sum(nil),
	}
}

func validated(sum []byte) blob.TransferValidationType { return blob.TransferValidationTypeMD5(sum) }

// Get implements Store.
func (s *ABS) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	blob, err := s.blob(name)
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", name, err)
	}
	response, err := blob.DownloadStream(withContent(ctx), nil)
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", name, absReasoned(err))
	}
	return check(response.Body, md5.New(), response.ContentMD5), nil
}

// List implements Store.
func (s *ABS) List(ctx context.Context, prefix string) ([]Object, error) {
	objects, err := s.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing objects that begin with %q: %w", prefix, err)
	}
	return objects, nil
}

func (s *ABS) list(ctx context.Context, prefix string) ([]Object, error) {
	found := listing{prefix: prefix}
	marker := ""
	for {
		c, err := s.container()
		if err != nil {
			return nil, err
		}
		page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Prefix: &prefix, Marker: &marker,
		}).NextPage(ctx)
		if err == nil {
			err = addBlobs(&found, page)
		}
		if err != nil {
			return nil, absReasoned(err)
		}
		if page.NextMarker == nil || *page.NextMarker == "" {
			return found.sorted(), nil
		}
		if err := found.endPage(); err != nil {
			return nil, err
		}
		marker = *page.NextMarker
	}
}

func addBlobs(found *listing, page container.ListBlobsFlatResponse) error {
	if page.Segment == nil {
		return errAnswer
	}
	for _, item := range page.Segment.BlobItems {
		if item == nil || item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil ||
			item.Properties.LastModified == nil {
			return errAnswer
		}
		err := found.add(Object{
			Name: *item.Name, Size: *item.Properties.ContentLength, Modified: *item.Properties.LastModified,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete implements Store.
func (s *ABS) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	client, err := s.blob(name)
	if err == nil {
		_, err = client.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeInclude)})
		err = absReasoned(err)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	return nil
}

// absCodes are the error codes of Azure that have a reason which the status does not say.
var absCodes = map[string]error{
	"BlobNotFound":                  ErrNotFound,
	"BlobImmutableDueToPolicy":      ErrImmutable,
	"BlobImmutableDueToLegalHold":   ErrImmutable,
	"ContainerImmutableDueToPolicy": ErrImmutable,
	"InsufficientStorage":           ErrFull,
}

// absReasoned makes an error of Azure's client one of a Store.
func absReasoned(err error) error {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return unquoted(err)
	}
	return refused(response.StatusCode, response.ErrorCode, absCodes)
}
