package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/trellis-garden/trellis/pkg/trellisctl"
	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// file is one of an archive.
type file struct {
	name    string
	content []byte
	mode    int64
}

// manFolder is where man finds pages below a folder of its path.
const manFolder = "share/man/man1/"

// contents are the files of a platform's archive: the program first, and the man pages in the order of their names
// where there is a man to read them.
func contents(p platform, version string, program, license []byte) []file {
	files := []file{{p.program(), program, 0o755}, {"LICENSE", license, 0o644}}
	if p.system == "windows" {
		return files
	}
	pages := reference.Man(trellisctl.NewCommand(), version)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		files = append(files, file{manFolder + name, []byte(pages[name]), 0o644})
	}
	return files
}

// pack makes an archive that is always the same for the same files.
func pack(files []file) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: f.mode, ModTime: time.Unix(0, 0),
			Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return b.Bytes(), err
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

//go:embed krew.yaml.tmpl
var krewTemplate string

// krewPlatform is what the template says of a platform.
type krewPlatform struct{ System, Processor, Archive, Checksum, Program string }

// krew is the manifest with the checksums of all archives.
func krew(version, base string, checksums map[platform]string) ([]byte, error) {
	parsed, err := template.New("krew").Option("missingkey=error").Parse(krewTemplate)
	if err != nil {
		return nil, err
	}
	var all []krewPlatform
	for _, p := range platforms {
		all = append(all, krewPlatform{p.system, p.processor, p.archive(), checksums[p], p.program()})
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, map[string]any{
		"Version": version, "Base": strings.TrimSuffix(base, "/"), "Platforms": all,
	})
	return b.Bytes(), err
}
