package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// store keeps values of one kind as one JSON file each. Every write replaces a file as a whole, so a process that is
// killed leaves either the old or the new value.
type store[T any] struct {
	dir string
	// secret says that nobody else may read the files.
	secret bool
}

func (s store[T]) path(name string) string {
	return filepath.Join(s.dir, name+".json")
}

// load reads all values, by name.
func (s store[T]) load() (map[string]T, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]T{}, nil
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string]T, len(entries))
	for _, entry := range entries {
		name, isValue := strings.CutSuffix(entry.Name(), ".json")
		if !isValue {
			continue
		}
		var value T
		if err := readJSON(filepath.Join(s.dir, entry.Name()), &value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

func (s store[T]) put(name string, value T) error {
	if s.secret {
		return replaceJSON(s.path(name), value, 0o600)
	}
	return writeJSON(s.path(name), value)
}

func (s store[T]) remove(name string) error {
	return removeFile(s.path(name))
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces a file that others may read.
func writeJSON(path string, value any) error { return replaceJSON(path, value, 0o644) }

// replaceJSON replaces the file in one step: written beside it, flushed, renamed.
func replaceJSON(path string, value any, mode os.FileMode) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(append(data, '\n')); err != nil {
		file.Close()
		return err
	}
	if err := errors.Join(file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
