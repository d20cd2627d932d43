// filetimes gives the files of a Git tree that are not ignored, and their folders, times of their last change that
// follow from their content:
//
//	go -C hack/tools build -o filetimes ./filetimes && filetimes [FOLDER...]
//
// Symbolic links in the folders named, which Git may ignore, get times that follow from what they point to.
//
// The Go command knows what a test has read by size and time, so that it takes the files of a new clone for others.
// With these times, files are the same in all clones if their content is, and others if it is not.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	err := run(".")
	for _, folder := range os.Args[1:] {
		err = errors.Join(err, setLinks(folder))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "filetimes:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "-c", "-o", "--exclude-standard")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	folders := map[string]hash.Hash{}
	for path := range bytes.SplitSeq(bytes.TrimSuffix(output, []byte{0}), []byte{0}) {
		if err := setFile(root, string(path), folders); err != nil {
			return err
		}
	}
	for folder, sum := range folders {
		if err := setTime(filepath.Join(root, folder), sum.Sum(nil)); err != nil {
			return err
		}
	}
	return nil
}

// setFile sets the time of a file, and adds its content to the sums of its folders. What is no file, or was deleted and
// is still known to Git, is left out.
func setFile(root, path string, folders map[string]hash.Hash) error {
	at := filepath.Join(root, path)
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if folders[folder] == nil {
			folders[folder] = sha256.New()
		}
		fmt.Fprintf(folders[folder], "%s %x\n", path, sum)
		if folder == "." {
			return setTime(at, sum[:])
		}
	}
}

// setLinks sets the times of the symbolic links in a folder.
func setLinks(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type() != fs.ModeSymlink {
			continue
		}
		at := filepath.Join(folder, entry.Name())
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(target))
		when := unix.NsecToTimespec(timeFrom(sum[:]).UnixNano())
		times := []unix.Timespec{when, when}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, at, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("setting the time of link %s: %w", at, err)
		}
	}
	return nil
}

// first is the earliest time that is given, and span within how much time after it the others are.
var first = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

const span = 16 * 365 * 24 * time.Hour

// setTime keeps the time of the last access.
func setTime(path string, sum []byte) error {
	return os.Chtimes(path, time.Time{}, timeFrom(sum))
}

func timeFrom(sum []byte) time.Time {
	return first.Add(time.Duration(binary.BigEndian.Uint64(sum) % uint64(span)))
}
