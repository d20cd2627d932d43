package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/objectstore"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
	"github.com/trellis-garden/trellis/test/ports"
)

// start runs the gateway over a folder of its own, as the cloud does.
func start(t *testing.T) *objectstore.Store {
	t.Helper()
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	address, dir := fmt.Sprintf("127.0.0.1:%d", port), t.TempDir()
	objects, err := objectstore.New(dir, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, objectstore.Files{Dir: dir}, address) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("the gateway ended:", err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
			return objects
		}
		if time.Now().After(deadline) {
			t.Fatal("the gateway does not listen:", err)
		}
	}
}

// open is the store as the etcd of a shoot opens it.
func open(t *testing.T, access api.Bucket, bucket string) store.Store {
	t.Helper()
	s, err := store.NewS3(store.S3Options{
		Endpoint: access.Endpoint, Region: access.Region, Bucket: bucket, PathStyle: true, CA: []byte(access.CA),
		Credentials: func() (store.S3Credentials, error) {
			return store.S3Credentials{AccessKeyID: access.AccessKeyID, SecretAccessKey: access.SecretAccessKey}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The gateway allows one instance in a process, so there is one test.
func TestBuckets(t *testing.T) {
	objects, ctx := start(t), t.Context()
	put := func(bucket string) api.Bucket {
		t.Helper()
		access, err := objects.Put(ctx, bucket)
		if err != nil {
			t.Fatal(err)
		}
		return access
	}
	const one, two = "6f2c1e5a-6c53-4b6f-9d3f-2b3a4c5d6e7f", "two"
	access := put(one)
	if again := put(one); again != access {
		t.Errorf("a bucket that is there is reached by %+v, not by %+v", again, access)
	}
	other := put(two)
	own := open(t, access, one)
	for _, name := range []string{
		"shoot--a--uid/etcd-main/full", "shoot--a--uid/etcd-main/delta", "shoot--b--uid/full",
	} {
		storetest.Put(t, own, name, storetest.Bytes(storetest.Large))
	}

	foreign := open(t, other, one)
	_, got := foreign.Get(ctx, "shoot--b--uid/full")
	_, listed := foreign.List(ctx, "")
	for operation, err := range map[string]error{
		"get": got, "list": listed, "delete": foreign.Delete(ctx, "shoot--b--uid/full"),
		"put": foreign.Put(ctx, "shoot--b--uid/full", bytes.NewReader(nil), 0),
	} {
		if !errors.Is(err, store.ErrPermission) {
			t.Errorf("the user of another bucket, %s: %v", operation, err)
		}
	}

	if err := objects.Remove(ctx, one); !errors.Is(err, objectstore.ErrNotEmpty) {
		t.Errorf("removing a bucket with objects: %v", err)
	}
	for _, name := range storetest.Names(t, own, "") {
		if err := own.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := objects.Remove(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := own.List(ctx, ""); !errors.Is(err, store.ErrPermission) {
		t.Errorf("the user of a bucket that is gone: %v", err)
	}
}
