package images

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// sharedFolder has what clones of one user need not make each for itself: an entry, which is a folder with files and a
// list of them, for each key. A key is a checksum of all that the files depend on. An entry is written beside, and gets
// its name when it is whole, so that neither builds side by side nor a killed one leave half of it. All of it may be
// removed at any time.
//
// A nil folder has nothing and keeps nothing.
type sharedFolder struct{ root *os.Root }

const (
	// sharedEntries is the part of the folder that holds the entries.
	sharedEntries = "images"
	// sharedList is the list of an entry's files.
	sharedList = "files.json"
	// unfinished begins the names of entries that are being written, or were when their build was killed.
	unfinished = ".new-"
	// sharedFor is how long an entry stays that nobody takes.
	sharedFor = 14 * 24 * time.Hour
	// writtenFor is longer than any entry takes to be written.
	writtenFor = 24 * time.Hour
)

// sharedFile is a file of an entry.
type sharedFile struct {
	Name   string      `json:"name"`
	Mode   fs.FileMode `json:"mode"`
	SHA256 string      `json:"sha256"`
	// Built is the time of the file in all clones, so that the Go command knows the tests that have read it.
	Built time.Time `json:"built"`
}

// openShared makes the folder at a path if it is missing, and forgets what nobody used lately. A folder is refused in
// which others could lay programs that this user then runs.
func openShared(path string) (*sharedFolder, error) {
	if path == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	outer, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	root, err := openOwn(filepath.Join(path, sharedEntries))
	if err != nil {
		return nil, err
	}
	s := &sharedFolder{root}
	if err := s.forget(time.Now()); err != nil {
		root.Close()
		return nil, fmt.Errorf("%s: removing what nobody used: %w", path, err)
	}
	return s, nil
}

// openOwn opens a folder that belongs to this user, and that nobody else may write. What is used later is what was
// looked at: it is opened first.
func openOwn(path string) (*os.Root, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = errors.New("it is a link")
	}
	if err == nil {
		err = ownedOnly(opened, os.Geteuid())
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("opening %s, which is made anew once it is removed: %w", path, err)
	}
	return root, nil
}

// ownedOnly fails when another than the user may write a folder.
func ownedOnly(info fs.FileInfo, user int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("its owner is unknown")
	case int(stat.Uid) != user:
		return fmt.Errorf("it belongs to user %d, not to %d", stat.Uid, user)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write it (mode %v)", info.Mode().Perm())
	}
	return nil
}

func (s *sharedFolder) close() {
	if s != nil {
		s.root.Close()
	}
}

// forget removes entries that nobody took for a while, and what killed builds left.
func (s *sharedFolder) forget(now time.Time) error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		limit := sharedFor
		if strings.HasPrefix(entry.Name(), unfinished) {
			limit = writtenFor
		}
		if now.Sub(info.ModTime()) > limit {
			if err := s.remove(entry.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove takes an entry its name first, so that another one may get it at any time.
func (s *sharedFolder) remove(key string) error {
	temporary := unfinished + rand.Text()
	err := s.root.Rename(key, temporary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, s.root.RemoveAll(temporary))
}

// keep copies files into the entry of a key. Who was first stays: another build wrote the same.
func (s *sharedFolder) keep(key string, paths ...string) error {
	if s == nil {
		return nil
	}
	temporary := unfinished + rand.Text()
	if err := s.root.Mkdir(temporary, 0o700); err != nil {
		return err
	}
	var list []sharedFile
	for _, path := range paths {
		file, err := s.copyIn(path, temporary)
		if err != nil {
			return errors.Join(err, s.root.RemoveAll(temporary))
		}
		list = append(list, file)
	}
	data, err := json.Marshal(list)
	if err == nil {
		err = s.root.WriteFile(filepath.Join(temporary, sharedList), data, 0o600)
	}
	if err == nil {
		err = s.root.Rename(temporary, key)
	}
	if errors.Is(err, fs.ErrExist) {
		return s.root.RemoveAll(temporary)
	}
	if err != nil {
		return errors.Join(err, s.root.RemoveAll(temporary))
	}
	return nil
}

func (s *sharedFolder) copyIn(path, entry string) (sharedFile, error) {
	source, err := os.Open(path)
	if err != nil {
		return sharedFile{}, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return sharedFile{}, err
	}
	name := filepath.Base(path)
	target, err := s.root.OpenFile(filepath.Join(entry, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return sharedFile{}, err
	}
	sum, err := copySummed(target, source)
	return sharedFile{Name: name, Mode: info.Mode().Perm(), SHA256: sum, Built: info.ModTime()}, err
}

// take copies the files of a key's entry into a folder, and tells whether there is one. An entry that is not what was
// kept is removed, none of it is taken, and the error says so.
func (s *sharedFolder) take(key, dir string) (taken bool, err error) {
	if s == nil {
		return false, nil
	}
	if _, err := s.root.Lstat(key); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	list, err := s.list(key)
	for i := 0; i < len(list) && err == nil; i++ {
		err = s.copyOut(key, list[i], filepath.Join(dir, list[i].Name+".new"))
	}
	if err != nil {
		for _, file := range list {
			err = errors.Join(err, removeIfThere(filepath.Join(dir, file.Name+".new")))
		}
		return false, errors.Join(fmt.Errorf("entry %s: %w", key, err), s.remove(key))
	}
	for _, file := range list {
		path := filepath.Join(dir, file.Name)
		if err := os.Rename(path+".new", path); err != nil {
			return false, err
		}
	}
	now := time.Now()
	// Another build may have removed it meanwhile, as may anybody.
	if err := s.root.Chtimes(key, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// list reads which files an entry has. All of them lie in its folder.
func (s *sharedFolder) list(key string) (list []sharedFile, err error) {
	data, err := s.root.ReadFile(filepath.Join(key, sharedList))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", sharedList, err)
	}
	for _, file := range list {
		if file.Name != filepath.Base(file.Name) || !filepath.IsLocal(file.Name) {
			return nil, fmt.Errorf("%s names %q, which is no file of the entry", sharedList, file.Name)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s names no file", sharedList)
	}
	return list, nil
}

// copyOut copies a file of an entry. It is compared while it is copied, so that nothing can change in between.
func (s *sharedFolder) copyOut(key string, file sharedFile, path string) error {
	source, err := s.root.Open(filepath.Join(key, file.Name))
	if err != nil {
		return err
	}
	defer source.Close()
	if err := removeIfThere(path); err != nil {
		return err
	}
	target, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum, err := copySummed(target, source)
	if err != nil {
		return err
	}
	if sum != file.SHA256 {
		return fmt.Errorf("%s has checksum %s, want %s", file.Name, sum, file.SHA256)
	}
	return errors.Join(os.Chmod(path, file.Mode.Perm()), os.Chtimes(path, time.Time{}, file.Built))
}

// copySummed copies all of a file, closes the copy, and returns the checksum of what was copied.
func copySummed(target io.WriteCloser, source io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(io.MultiWriter(target, sum), source)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, target.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
