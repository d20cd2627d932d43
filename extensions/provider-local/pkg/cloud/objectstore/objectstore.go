// Package objectstore is the object store of the local cloud: buckets with a user each, who gets to nothing else. They
// are kept, and served by S3, by a gateway, a program of its own (images/objectstore), with which it shares a folder.
package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// ErrNotEmpty says that a bucket has objects.
var ErrNotEmpty = errors.New("it still has objects")

// Region that requests to the store are signed for.
const Region = "local"

// Store makes and removes buckets.
type Store struct {
	files   Files
	address string
}

// New returns the store in a folder, whose gateway serves at an address (host:port). The folder's files are written if
// they are not there.
func New(dir, address string) (*Store, error) {
	files := Files{Dir: dir}
	if err := files.prepare(address); err != nil {
		return nil, fmt.Errorf("preparing the object store in %s: %w", dir, err)
	}
	return &Store{files: files, address: address}, nil
}

// Put makes a bucket with its user, and tells how they are reached. What is there stays.
func (s *Store) Put(ctx context.Context, bucket string) (api.Bucket, error) {
	client, err := s.client()
	if err != nil {
		return api.Bucket{}, err
	}
	user, err := s.files.ensureUser(bucket)
	if err != nil {
		return api.Bucket{}, fmt.Errorf("user of bucket %s: %w", bucket, err)
	}
	if err := s.makeBucket(ctx, client, bucket); err != nil {
		return api.Bucket{}, fmt.Errorf("making bucket %s: %w", bucket, err)
	}
	policy, err := policyFor(bucket, user.AccessKeyID)
	if err != nil {
		return api.Bucket{}, err
	}
	if err := client.SetBucketPolicy(ctx, bucket, policy); err != nil {
		return api.Bucket{}, fmt.Errorf("giving bucket %s to its user: %w", bucket, err)
	}
	ca, err := os.ReadFile(s.files.path(caFile))
	return api.Bucket{
		Endpoint: "https://" + s.address, Region: Region, CA: string(ca),
		AccessKeyID: user.AccessKeyID, SecretAccessKey: user.SecretAccessKey,
	}, err
}

func (s *Store) makeBucket(ctx context.Context, client *minio.Client, bucket string) error {
	exists, err := client.BucketExists(ctx, bucket)
	if err != nil || exists {
		return err
	}
	return client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{Region: Region})
}

// Remove deletes a bucket with its user. One that is not there is no error.
func (s *Store) Remove(ctx context.Context, bucket string) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	err = client.RemoveBucket(ctx, bucket)
	switch minio.ToErrorResponse(err).Code {
	case minio.BucketNotEmpty:
		return ErrNotEmpty
	case minio.NoSuchBucket:
		err = nil
	}
	if err != nil {
		return fmt.Errorf("deleting bucket %s: %w", bucket, err)
	}
	return s.files.removeUser(bucket)
}

// client acts as the administrator of the store.
func (s *Store) client() (*minio.Client, error) {
	root, err := s.files.Root()
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(s.files.path(caFile))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return minio.New(s.address, &minio.Options{
		Creds: credentials.NewStaticV4(root.AccessKeyID, root.SecretAccessKey, ""), Secure: true, Region: Region,
		BucketLookup: minio.BucketLookupPath, MaxRetries: 3,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	})
}

// policyFor lets the user of a bucket work with its objects, and nobody else but the administrator.
func policyFor(bucket, user string) (string, error) {
	type statement struct {
		Effect    string
		Principal map[string][]string
		Action    []string
		Resource  []string
	}
	principal := map[string][]string{"AWS": {user}}
	policy := map[string]any{"Version": "2012-10-17", "Statement": []statement{
		{
			"Allow", principal, []string{"s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:GetBucketLocation"},
			[]string{"arn:aws:s3:::" + bucket},
		},
		{
			"Allow", principal, []string{
				"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload",
				"s3:ListMultipartUploadParts",
			}, []string{"arn:aws:s3:::" + bucket + "/*"},
		},
	}}
	text, err := json.Marshal(policy)
	return string(text), err
}

// Arguments are those of the gateway.
func (s *Store) Arguments() []string {
	return []string{"--dir=" + s.files.Dir, "--listen=" + s.address}
}

func (f Files) path(elements ...string) string {
	return filepath.Join(append([]string{f.Dir}, elements...)...)
}
