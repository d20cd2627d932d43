package landscape

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// imagesInUse is the folder, in a state folder, of the image vectors that the landscape may run by: that of the last
// `up` that ended well, and those of later ones. By them builds know which images have to stay.
const imagesInUse = "images"

// useNoImages says that the landscape uses none: it has just begun.
func (l *Landscape) useNoImages() error {
	if err := os.MkdirAll(l.path(imagesInUse), 0o755); err != nil {
		return fmt.Errorf("images in use: %w", err)
	}
	return nil
}

// useImages adds those that were built last to what the landscape uses. One that an older program started used others
// that nobody wrote down: it goes on without a list until an `up` ends well.
func (l *Landscape) useImages() error {
	if _, err := os.Stat(l.path(imagesInUse)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := l.addImages()
	return err
}

// useImagesOnly says that the landscape uses those that were built last, and no others any more.
func (l *Landscape) useImagesOnly() error {
	name, err := l.addImages()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(l.path(imagesInUse))
	if err != nil {
		return fmt.Errorf("images in use: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == name {
			continue
		}
		if err := os.Remove(l.path(imagesInUse, entry.Name())); err != nil {
			return fmt.Errorf("images in use: %w", err)
		}
	}
	return nil
}

// addImages adds the image vector of the last build, and returns the name of its file.
func (l *Landscape) addImages() (name string, err error) {
	vector, err := l.builtVector()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(vector))
	name = hex.EncodeToString(sum[:8]) + ".yaml"
	if err := replaceFile(l.path(imagesInUse, name), []byte(vector), 0o644); err != nil {
		return "", fmt.Errorf("images in use: %w", err)
	}
	return name, nil
}

// vectorsOfAll are the image vectors that the landscapes of a repository may run by. The error says of which landscape
// that is not known.
func vectorsOfAll(root string) ([]imagevector.Vector, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("landscapes of the repository: %w", err)
	}
	var all []imagevector.Vector
	for _, entry := range entries {
		name, isState := strings.CutPrefix(entry.Name(), stateFolder)
		if !isState {
			continue
		}
		l := &Landscape{Name: strings.TrimPrefix(name, "-"), Root: root}
		if name == "" {
			l.Name = DefaultName
		}
		vectors, err := l.vectorsInUse()
		if err != nil {
			return nil, err
		}
		all = append(all, vectors...)
	}
	return all, nil
}

// vectorsInUse are the image vectors that the landscape may run by: none when it was never started.
func (l *Landscape) vectorsInUse() (all []imagevector.Vector, err error) {
	if s, err := l.state(); err != nil || s.Name == "" {
		return nil, err
	}
	entries, err := os.ReadDir(l.path(imagesInUse))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("an older program started landscape %s and did not write down which images it uses: %s "+
			"does, and %s ends it", l.Name, l.make("up"), l.make("down"))
	}
	if err != nil {
		return nil, fmt.Errorf("images in use: %w", err)
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		path := l.path(imagesInUse, entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("images in use: %w", err)
		}
		vector, err := imagevector.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("images in use: %s: %w", path, err)
		}
		all = append(all, vector)
	}
	return all, nil
}
