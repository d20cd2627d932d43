package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/objectstore"
)

// ObjectStore keeps buckets that are reached by S3.
type ObjectStore interface {
	// Put makes a bucket with a user of its own.
	Put(ctx context.Context, bucket string) (api.Bucket, error)
	// Remove deletes a bucket with its user; one with objects is refused with objectstore.ErrNotEmpty.
	Remove(ctx context.Context, bucket string) error
}

// objects keeps buckets in an object store. Who has access to a bucket makes and removes what is in it, by S3.
type objects struct{ store ObjectStore }

func (o objects) put(ctx context.Context, bucket, directory string) (api.Bucket, error) {
	if err := objectNames(bucket, directory); err != nil {
		return api.Bucket{}, err
	}
	return o.store.Put(ctx, bucket)
}

func (o objects) remove(ctx context.Context, bucket, directory string) error {
	if err := objectNames(bucket, directory); err != nil {
		return err
	}
	err := o.store.Remove(ctx, bucket)
	if errors.Is(err, objectstore.ErrNotEmpty) {
		return fmt.Errorf("%w: bucket %q: %w", errConflict, bucket, err)
	}
	return err
}

// objectNames refuses names of buckets that are none, and directories.
func objectNames(bucket, directory string) error {
	if directory != "" {
		return fmt.Errorf("%w: bucket %q is reached by S3, and its directory %q with it: use the access to the bucket",
			errInvalid, bucket, directory)
	}
	return validNames(bucket, "")
}
