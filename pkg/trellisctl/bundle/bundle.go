// Package bundle writes the archive of a bug report. All that comes in is redacted, sizes are bounded, and what is
// missing is told in a file of the archive.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/redact"
)

// MissingFile tells what could not be read, and why.
const MissingFile = "missing.txt"

// maxMissing bounds MissingFile, which comes on top of the archive's bound.
const maxMissing = 1 << 20

// Archive is a .tar.gz that is being written.
type Archive struct {
	compressed *gzip.Writer
	files      *tar.Writer
	folder     string
	now        time.Time
	// left is how many bytes may still come, before compression.
	left    int64
	count   int
	names   map[string]bool
	missing []string
}

// New begins an archive with one folder, of at most so many bytes before compression.
func New(out io.Writer, folder string, limit int64, now time.Time) *Archive {
	compressed := gzip.NewWriter(out)
	return &Archive{
		compressed: compressed, files: tar.NewWriter(compressed), folder: segment(folder), now: now, left: limit,
		names: map[string]bool{},
	}
}

// Object adds an object of an API as YAML.
func (a *Archive) Object(object map[string]any, path ...string) error {
	return a.Objects([]map[string]any{object}, path...)
}

// Objects adds a file with several objects.
func (a *Archive) Objects(objects []map[string]any, path ...string) error {
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(redact.Object(object))
		if err != nil {
			a.Missing(strings.Join(path, "/"), err)
			return nil
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return a.Text(b.String(), path...)
}

// Text adds a file. One that does not fit any more is told as missing.
func (a *Archive) Text(text string, path ...string) error {
	text = redact.Text(text)
	name := a.name(path)
	if int64(len(text)) > a.left {
		a.Missing(name, fmt.Errorf("its %d bytes are more than the %d that are left of the archive's size", len(text),
			a.left))
		return nil
	}
	a.left -= int64(len(text))
	a.count++
	return a.write(name, text)
}

// Missing notes what cannot be in the archive.
func (a *Archive) Missing(what string, why error) {
	a.missing = append(a.missing, oneLine(redact.Text(fmt.Sprintf("%s: %v", what, why))))
}

// Count is how many files there are, and how many things are missing.
func (a *Archive) Count() (files, missing int) { return a.count, len(a.missing) }

// Close writes what is missing and ends the archive.
func (a *Archive) Close() error {
	text := strings.Join(a.missing, "\n") + "\n"
	if len(a.missing) == 0 {
		text = "Nothing is missing.\n"
	}
	if len(text) > maxMissing {
		text = text[:maxMissing] + "\n… and more\n"
	}
	return errors.Join(a.write(a.name([]string{MissingFile}), text), a.files.Close(), a.compressed.Close())
}

func (a *Archive) write(name, text string) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: a.folder + "/" + name, Size: int64(len(text)), Mode: 0o600, ModTime: a.now,
	}
	if err := a.files.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(a.files, text)
	return err
}

// name is a path in the archive that leads nowhere else, and that no other file has: parts of it come from servers.
func (a *Archive) name(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = segment(part)
	}
	name := strings.Join(parts, "/")
	for i := 2; a.names[name]; i++ {
		name = fmt.Sprintf("%s-%d", strings.Join(parts, "/"), i)
	}
	a.names[name] = true
	return name
}

// segment is one part of a path, of letters and digits that mean nothing to any system.
func segment(part string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_.", r):
			return r
		}
		return '_'
	}, part)
	if strings.Trim(clean, ".") == "" {
		return "_"
	}
	return clean[:min(len(clean), 200)]
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}
