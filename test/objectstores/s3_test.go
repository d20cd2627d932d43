// Package objectstores holds stores of backups to servers that others wrote: an S3 gateway that keeps objects as files,
// inside of this process. It is a module of its own, so that the product does not depend on it.
package objectstores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

const (
	accessKey, secretKey = "id", "of-nobody-else"
	region               = "here"
	// endpoint is never looked up: all connections go to the gateway's socket.
	endpoint = "s3.example.com"
)

// socket is where the gateway listens, the only one of this process.
var socket string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "objectstores")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket = filepath.Join(dir, "s3.socket")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, dir) }()
	code := m.Run()
	cancel()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, "the gateway ended:", err)
		return 1
	}
	return code
}

// serve runs the gateway, whose buckets are folders, until ctx is done.
func serve(ctx context.Context, dir string) error {
	objects, versions := filepath.Join(dir, "objects"), filepath.Join(dir, "versions")
	sidecar := filepath.Join(dir, "meta")
	for _, folder := range []string{objects, versions, sidecar} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	metadata, err := meta.NewSideCar(sidecar)
	if err != nil {
		return err
	}
	files, err := posix.New(objects, metadata, posix.PosixOpts{VersioningDir: versions, SideCarDir: sidecar})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, files, &embedgw.Config{
		RootUserAccess: accessKey, RootUserSecret: secretKey, Region: region, Ports: []string{socket},
		MaxConnections: 100, MaxRequests: 100, MultipartMaxParts: 10_000, Quiet: true,
	})
}

func dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", socket)
}

// client makes what no store of ours makes: buckets.
func client(t *testing.T) *minio.Client {
	t.Helper()
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		t.Fatal(err)
	}
	transport.DialContext = dial
	c, err := minio.New(endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: region, Transport: transport,
		BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var buckets atomic.Int64

// newBucket makes a bucket. The first attempts may come before the gateway listens; the client makes others.
func newBucket(t *testing.T, lock bool) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", buckets.Add(1))
	err := client(t).MakeBucket(t.Context(), name, minio.MakeBucketOptions{Region: region, ObjectLocking: lock})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func options(bucket string) store.S3Options {
	return store.S3Options{
		Endpoint: "http://" + endpoint, Region: region, Bucket: bucket, PathStyle: true, Dial: dial,
		Credentials: func() (store.S3Credentials, error) {
			return store.S3Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}, nil
		},
	}
}

func open(t *testing.T, options store.S3Options) store.Store {
	t.Helper()
	s, err := store.NewS3(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	storetest.Run(t, 1100, func(t *testing.T) store.Store { return open(t, options(newBucket(t, false))) })
}

func TestS3WithVersions(t *testing.T) {
	storetest.Run(t, 10, func(t *testing.T) store.Store {
		bucket := newBucket(t, false)
		if err := client(t).EnableVersioning(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		return open(t, options(bucket))
	})
}

// What is deleted from a bucket with versions takes no space any more.
func TestDeletionLeavesNoVersions(t *testing.T) {
	bucket := newBucket(t, false)
	if err := client(t).EnableVersioning(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	s := open(t, options(bucket))
	for range 3 {
		storetest.Put(t, s, "a", []byte("content"))
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	all := minio.ListObjectsOptions{WithVersions: true, Recursive: true}
	for left := range client(t).ListObjects(t.Context(), bucket, all) {
		t.Errorf("left is %s, version %s, %v", left.Key, left.VersionID, left.Err)
	}
}

func TestWhatIsLockedStays(t *testing.T) {
	bucket := newBucket(t, true)
	mode, days, unit := minio.Compliance, uint(1), minio.Days
	if err := client(t).SetBucketObjectLockConfig(t.Context(), bucket, &mode, &days, &unit); err != nil {
		t.Fatal(err)
	}
	s := open(t, options(bucket))
	for name, content := range map[string][]byte{
		"small": []byte("content"), "in parts": storetest.Bytes(storetest.Large),
	} {
		if err := s.Put(t.Context(), name, bytes.NewReader(content), store.Unknown); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, store.ErrImmutable) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := storetest.Get(t, s, name); !bytes.Equal(got, content) {
			t.Errorf("%s: got %d bytes of %d", name, len(got), len(content))
		}
	}
	if got := storetest.Names(t, s, ""); len(got) != 2 {
		t.Errorf("listed %q", got)
	}
}

func TestWrongCredentials(t *testing.T) {
	bucket := newBucket(t, false)
	storetest.Put(t, open(t, options(bucket)), "a", []byte("content"))
	for name, credentials := range map[string]store.S3Credentials{
		"another key":    {AccessKeyID: "another", SecretAccessKey: secretKey},
		"another secret": {AccessKeyID: accessKey, SecretAccessKey: "another"},
	} {
		wrong := options(bucket)
		wrong.Credentials = func() (store.S3Credentials, error) { return credentials, nil }
		s := open(t, wrong)
		_, got := s.Get(t.Context(), "a")
		_, listed := s.List(t.Context(), "")
		for operation, err := range map[string]error{
			"get": got, "list": listed, "put": s.Put(t.Context(), "a", bytes.NewReader(nil), 0),
			"delete": s.Delete(t.Context(), "a"),
		} {
			if !errors.Is(err, store.ErrPermission) {
				t.Errorf("%s, %s: got %v", name, operation, err)
			}
		}
	}
}

func TestABucketThatIsMissingIsNotEmpty(t *testing.T) {
	s := open(t, options("nowhere"))
	_, listed := s.List(t.Context(), "")
	_, got := s.Get(t.Context(), "a")
	for operation, err := range map[string]error{"list": listed, "get": got, "delete": s.Delete(t.Context(), "a")} {
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v", operation, err)
		}
	}
}
