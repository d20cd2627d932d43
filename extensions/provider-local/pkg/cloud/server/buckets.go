package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// buckets is for clouds without an object store: a folder for each bucket, and in it one for each directory.
type buckets struct{ dir string }

// put creates a bucket or, if the directory is not empty, a directory of a bucket.
func (b buckets) put(_ context.Context, bucket, directory string) (api.Bucket, error) {
	path, err := b.path(bucket, directory)
	if err != nil {
		return api.Bucket{}, err
	}
	if directory == "" {
		return api.Bucket{}, os.MkdirAll(path, 0o700)
	}
	err = os.Mkdir(path, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return api.Bucket{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return api.Bucket{}, fmt.Errorf("%w: there is no bucket %q", errInvalid, bucket)
	}
	return api.Bucket{}, err
}

// remove removes a directory with all that it holds, or a bucket that has none.
func (b buckets) remove(_ context.Context, bucket, directory string) error {
	path, err := b.path(bucket, directory)
	if err != nil {
		return err
	}
	if directory != "" {
		return os.RemoveAll(path)
	}
	held, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return fmt.Errorf("%w: bucket %q still has the directory %q", errConflict, bucket, held[0].Name())
	}
	return os.Remove(path)
}

// path is the folder of a bucket or directory.
func (b buckets) path(bucket, directory string) (string, error) {
	if err := validNames(bucket, directory); err != nil {
		return "", err
	}
	return filepath.Join(b.dir, bucket, directory), nil
}

// validNames refuses names of buckets and directories that are none.
func validNames(bucket, directory string) error {
	for _, name := range []string{bucket, directory} {
		if name == "" && bucket != "" {
			continue
		}
		if err := api.ValidateName(name); err != nil {
			return fmt.Errorf("%w: %w", errInvalid, err)
		}
	}
	return nil
}
