// Package store keeps objects where backups of etcd are kept: in a directory, or in a bucket of an object store. It
// knows nothing of what is in them; pkg/etcd/backup does. Every store behaves as storetest tells.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Reasons for which a store refuses. The errors of a Store wrap them where one applies; other errors, such as those
// of the network or of a bucket that does not exist, may pass or need a person.
var (
	// ErrNotFound says that there is no object of this name. A bucket that is missing is another error: it must not
	// look like one without backups.
	ErrNotFound = errors.New("there is no such object")
	// ErrPermission says that the credentials are wrong or do not suffice.
	ErrPermission = errors.New("the credentials do not permit it")
	// ErrFull says that no space or quota is left.
	ErrFull = errors.New("the store has no space or quota left")
	// ErrImmutable says that retention or a legal hold protects the object. It can be deleted later.
	ErrImmutable = errors.New("retention protects the object")
	// ErrName says that no store would take this name.
	ErrName = errors.New("not a name of an object")
)

// Unknown is the size of content that is not known before it is read.
const Unknown int64 = -1

// maxName is the longest name, in bytes, that all stores take.
const maxName = 512

// Object is what a listing tells of an object.
type Object struct {
	// Name is slash-separated and relative to the store.
	Name string
	// Size in bytes.
	Size int64
	// Modified is when it was put, by the clock of the store.
	Modified time.Time
}

// Store keeps objects by name. All methods can be called concurrently.
type Store interface {
	// Put stores what content has up to its end; size is its length in bytes, or Unknown. The object appears whole or
	// not at all, and replaces one of the same name. Content that fails, or is not as long as size, is an error.
	Put(ctx context.Context, name string, content io.Reader, size int64) error
	// Get opens an object, which the caller closes. Content that breaks off is an error of reading it.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the objects whose names begin with prefix, sorted by name.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
}

// checkName holds names to what every store can take and give back in listings.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%w: %q has %d bytes, 1 to %d are allowed", ErrName, name, len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fmt.Errorf("%w: %q has control characters or backslashes or is not UTF-8", ErrName, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasSuffix(part, partialSuffix) {
			return fmt.Errorf("%w: %q has a part that is empty, a dot or two, or ends in %s", ErrName, name,
				partialSuffix)
		}
	}
	return nil
}

// Below is the part of a store whose names begin with prefix and a slash; names of the result lack these.
func Below(s Store, prefix string) Store {
	if prefix = strings.Trim(prefix, "/"); prefix == "" {
		return s
	}
	return below{store: s, prefix: prefix + "/"}
}

type below struct {
	store  Store
	prefix string
}

// name is an object's name in the whole store. The prefix must not make a wrong name right.
func (b below) name(name string) (string, error) {
	return b.prefix + name, checkName(name)
}

func (b below) Put(ctx context.Context, name string, content io.Reader, size int64) error {
	whole, err := b.name(name)
	if err != nil {
		return err
	}
	return b.store.Put(ctx, whole, content, size)
}

func (b below) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	whole, err := b.name(name)
	if err != nil {
		return nil, err
	}
	return b.store.Get(ctx, whole)
}

func (b below) List(ctx context.Context, prefix string) ([]Object, error) {
	objects, err := b.store.List(ctx, b.prefix+prefix)
	for i := range objects {
		objects[i].Name = strings.TrimPrefix(objects[i].Name, b.prefix)
	}
	return objects, err
}

func (b below) Delete(ctx context.Context, name string) error {
	whole, err := b.name(name)
	if err != nil {
		return err
	}
	return b.store.Delete(ctx, whole)
}
