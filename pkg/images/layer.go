package images

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// LayerEntry is one file, folder or link that a layer adds.
type LayerEntry struct {
	// Path in the image, without a leading slash.
	Path string
	// Source is a file of this machine that holds the content; Content is used when it is empty.
	Source  string
	Content []byte
	// Link makes the entry a symbolic link.
	Link string
	Mode fs.FileMode
	// UID and GID own the entry.
	UID, GID int
}

// WriteLayer stores a layer of the given entries. The archive depends on the entries' content only: no times, sorted
// by path, missing parent folders added.
func (s Store) WriteLayer(entries []LayerEntry) (Layer, error) {
	return s.writeTar(func(w *tar.Writer) error {
		for _, entry := range withParents(entries) {
			if err := writeEntry(w, entry); err != nil {
				return fmt.Errorf("layer entry %s: %w", entry.Path, err)
			}
		}
		return nil
	})
}

// WriteTreeLayer stores a layer of everything below dir, with owners and modes as they are there.
func (s Store) WriteTreeLayer(dir string) (Layer, error) {
	return s.writeTar(func(w *tar.Writer) error { return writeTree(w, dir) })
}

func (s Store) writeTar(write func(*tar.Writer) error) (Layer, error) {
	reader, writer := io.Pipe()
	go func() {
		archive := tar.NewWriter(writer)
		err := write(archive)
		if err == nil {
			err = archive.Close()
		}
		writer.CloseWithError(err)
	}()
	digest, size, err := s.WriteBlob(reader)
	return Layer{Digest: digest, Size: size}, err
}

func withParents(entries []LayerEntry) []LayerEntry {
	known := map[string]bool{".": true}
	for _, entry := range entries {
		known[entry.Path] = true
	}
	all := append([]LayerEntry{}, entries...)
	for _, entry := range entries {
		for dir := path.Dir(entry.Path); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, LayerEntry{Path: dir, Mode: fs.ModeDir | 0o755})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

func writeEntry(w *tar.Writer, entry LayerEntry) error {
	header := tar.Header{
		Name: entry.Path, Mode: tarMode(entry.Mode), Uid: entry.UID, Gid: entry.GID, Format: tar.FormatPAX,
		ModTime: time.Unix(0, 0),
	}
	switch {
	case entry.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, entry.Link, 0o777
		return w.WriteHeader(&header)
	case entry.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, entry.Path+"/"
		return w.WriteHeader(&header)
	case entry.Source == "":
		header.Typeflag, header.Size = tar.TypeReg, int64(len(entry.Content))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(entry.Content)
		return err
	}
	file, err := os.Open(entry.Source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

// tarMode turns a Go file mode into the bits of a tar header.
func tarMode(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

func writeTree(w *tar.Writer, dir string) error {
	links := map[uint64]string{}
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return nil
		}
		return writeTreeEntry(w, file, name, info, links)
	})
}

func writeTreeEntry(w *tar.Writer, file, name string, info fs.FileInfo, links map[uint64]string) error {
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(file); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name, header.Format = name, tar.FormatPAX
	header.Uname, header.Gname, header.AccessTime, header.ChangeTime = "", "", time.Time{}, time.Time{}
	header.ModTime = header.ModTime.Truncate(time.Second)
	if info.IsDir() && !strings.HasSuffix(header.Name, "/") {
		header.Name += "/"
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
		if first, seen := links[stat.Ino]; seen {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
		} else {
			links[stat.Ino] = name
		}
	}
	if err := w.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}
