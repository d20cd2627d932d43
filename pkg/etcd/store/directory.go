package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	partialSuffix = ".part"
	// abandoned is the age after which a file that was never completed is taken for what a dead process left.
	abandoned = 24 * time.Hour
)

// Directory keeps objects as files below a directory. What was put is on disk.
type Directory struct {
	root *os.Root
}

// NewDirectory makes the directory if it is missing, and removes what a Put left in it that a crash ended more than a
// day ago.
func NewDirectory(dir string) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, reasoned(fmt.Errorf("making the store's directory: %w", err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, reasoned(fmt.Errorf("opening the store's directory: %w", err))
	}
	d := &Directory{root: root}
	if err := d.removeAbandoned(time.Now()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// Close ends the use of the directory.
func (d *Directory) Close() error { return d.root.Close() }

// Put implements Store.
func (d *Directory) Put(ctx context.Context, name string, reader io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	source, err := newContent(ctx, reader, size)
	if err == nil {
		err = d.makeParents(path.Dir(name))
	}
	if err == nil {
		err = d.replace(name, source)
	}
	if err != nil {
		return reasoned(fmt.Errorf("putting %s: %w", name, err))
	}
	return nil
}

// replace writes a file beside the one it is to be, which takes its place when it is whole and on disk.
func (d *Directory) replace(name string, source io.Reader) error {
	partial := name + "." + rand.Text() + partialSuffix
	file, err := d.root.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, source)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = d.root.Rename(partial, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(partial))
	}
	return d.sync(path.Dir(name))
}

// makeParents makes a directory and those above it, each known to the disk before something is put into it.
func (d *Directory) makeParents(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := d.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := d.makeParents(path.Dir(dir)); err != nil {
		return err
	}
	if err := d.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.sync(path.Dir(dir))
}

func (d *Directory) sync(dir string) error {
	file, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Get implements Store.
func (d *Directory) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := errors.Join(checkName(name), ctx.Err()); err != nil {
		return nil, err
	}
	file, err := d.root.Open(name)
	if err == nil {
		var info fs.FileInfo
		if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
			err = ErrNotFound
		}
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return nil, reasoned(fmt.Errorf("getting %s: %w", name, err))
	}
	return file, nil
}

// List implements Store.
func (d *Directory) List(ctx context.Context, prefix string) ([]Object, error) {
	var objects []Object
	err := d.walk(func(name string, info fs.FileInfo) error {
		if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, partialSuffix) {
			objects = append(objects, Object{Name: name, Size: info.Size(), Modified: info.ModTime()})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, reasoned(fmt.Errorf("listing objects that begin with %q: %w", prefix, err))
	}
	// The walk goes by directory, which is another order where a name has a character below the slash.
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, nil
}

// walk visits all regular files. One that is removed meanwhile is not there.
func (d *Directory) walk(visit func(name string, info fs.FileInfo) error) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.Type().IsRegular() {
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && name != "." {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(name, info)
	})
}

// Delete implements Store.
func (d *Directory) Delete(ctx context.Context, name string) error {
	if err := errors.Join(checkName(name), ctx.Err()); err != nil {
		return err
	}
	err := d.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.sync(path.Dir(name))
	}
	if err != nil {
		return reasoned(fmt.Errorf("deleting %s: %w", name, err))
	}
	return nil
}

func (d *Directory) removeAbandoned(now time.Time) error {
	return d.walk(func(name string, info fs.FileInfo) error {
		if !strings.HasSuffix(name, partialSuffix) || now.Sub(info.ModTime()) < abandoned {
			return nil
		}
		return d.root.Remove(name)
	})
}

// reasoned adds the reason of a Store's error to one of the operating system.
func reasoned(err error) error {
	for reason, causes := range map[error][]error{
		ErrNotFound:   {fs.ErrNotExist, syscall.ENOTDIR},
		ErrPermission: {fs.ErrPermission, syscall.EROFS},
		ErrFull:       {syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG},
	} {
		for _, cause := range causes {
			if errors.Is(err, cause) {
				return fmt.Errorf("%w: %w", reason, err)
			}
		}
	}
	return err
}
