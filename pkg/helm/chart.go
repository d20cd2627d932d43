package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"path"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// LoadFS reads the chart in folder dir of a file system.
func LoadFS(fsys fs.FS, dir string) (*chart.Chart, error) {
	files, err := chartFiles(fsys, dir)
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	return loaded, nil
}

// LoadArchive reads a chart from a gzipped tar archive, as Pack or `helm package` make it.
func LoadArchive(archive []byte) (*chart.Chart, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("chart archive of %d bytes: %w", len(archive), err)
	}
	return loaded, nil
}

// Pack returns the chart in folder dir of a file system as a gzipped tar archive. The same files give the same bytes.
func Pack(fsys fs.FS, dir string) ([]byte, error) {
	loaded, err := LoadFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	files, err := chartFiles(fsys, dir)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	content := tar.NewWriter(compressed)
	for _, file := range files {
		header := &tar.Header{
			Name:    path.Join(loaded.Name(), file.Name),
			Mode:    0o644,
			Size:    int64(len(file.Data)),
			ModTime: time.Unix(0, 0).UTC(),
		}
		if err := content.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("chart %s: packing %s: %w", dir, file.Name, err)
		}
		if _, err := content.Write(file.Data); err != nil {
			return nil, fmt.Errorf("chart %s: packing %s: %w", dir, file.Name, err)
		}
	}
	if err := content.Close(); err != nil {
		return nil, fmt.Errorf("chart %s: packing: %w", dir, err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("chart %s: packing: %w", dir, err)
	}
	return archive.Bytes(), nil
}

// chartFiles returns the files of a chart in lexical order, with names relative to its folder.
func chartFiles(fsys fs.FS, dir string) ([]*loader.BufferedFile, error) {
	root, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	var files []*loader.BufferedFile
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	return files, nil
}
