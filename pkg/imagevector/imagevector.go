// Package imagevector resolves the name of an image to where it is pulled from, through charts/images.yaml. Operators
// replace entries with a file named by the environment variable IMAGE_VECTOR_OVERWRITE (same format; an entry replaces
// the one with the same name).
package imagevector

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
	"github.com/trellis-garden/trellis/pkg/version"
)

// OverwriteEnv names the environment variable that holds the path of a file with overriding entries.
const OverwriteEnv = "IMAGE_VECTOR_OVERWRITE"

// ownRepository prefixes the images that are built and released with Trellis and therefore carry its version.
const ownRepository = "ghcr.io/trellis-garden/"

// digestForm is that of digests in the image specification of OCI.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Source is one entry of the vector.
type Source struct {
	// Name is what code asks for, e.g. "kube-apiserver".
	Name string `json:"name"`
	// Repository is the image without its tag.
	Repository string `json:"repository"`
	// Tag is the tag or, when it starts with "sha256:", the digest. Empty: Trellis' own images take the version of the
	// build, others must be asked for with Version or Tag.
	Tag string `json:"tag,omitempty"`
	// Digests are what tags stand for, such as v1.36.3: sha256:… . Where there are any, a tag that is not among them is
	// an error, so that whoever controls a registry cannot give another image for a tag. Empty: tags are taken as the
	// registry answers them.
	Digests map[string]string `json:"digests,omitempty"`
}

// Image is a resolved image. It has a tag, a digest ("sha256:…") or both; the digest decides then, and the tag is for
// people.
type Image struct {
	Repository string
	Tag        string
	Digest     string
}

// String returns the reference: repository[:tag][@digest].
func (i Image) String() string {
	reference := i.Repository
	if i.Tag != "" {
		reference += ":" + i.Tag
	}
	if i.Digest != "" {
		reference += "@" + i.Digest
	}
	return reference
}

// ParseImage takes a reference apart; it is the reverse of Image.String.
func ParseImage(reference string) (Image, error) {
	image := Image{}
	image.Repository, image.Digest, _ = strings.Cut(reference, "@")
	// A colon before the last slash is that of a port.
	if colon := strings.LastIndex(image.Repository, ":"); colon > strings.LastIndex(image.Repository, "/") {
		image.Repository, image.Tag = image.Repository[:colon], image.Repository[colon+1:]
	}
	if image.Repository == "" || image.Tag == "" && image.Digest == "" {
		return Image{}, fmt.Errorf("%q is no reference of the form repository:tag or repository@digest", reference)
	}
	return image, nil
}

// Vector holds the sources by name.
type Vector map[string]Source

// Embedded reads the vector that the program was built with.
func Embedded() (Vector, error) {
	data, err := charts.FS.ReadFile("images.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded image vector: %w", err)
	}
	vector, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("charts/images.yaml: %w", err)
	}
	return vector, nil
}

// Load reads the embedded vector and applies the operator's overwrites.
func Load() (Vector, error) {
	vector, err := Embedded()
	if err != nil {
		return nil, err
	}
	data, err := Overwrite()
	if err != nil || data == nil {
		return vector, err
	}
	overwrites, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("image vector %s (from %s): %w", os.Getenv(OverwriteEnv), OverwriteEnv, err)
	}
	return vector.merge(overwrites), nil
}

// Overwrite returns the operator's file with overriding entries, for handing it on; nil when there is none.
func Overwrite() ([]byte, error) {
	path := os.Getenv(OverwriteEnv)
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the image vector named by %s: %w", OverwriteEnv, err)
	}
	return data, nil
}

// Parse reads a vector; unknown fields, repeated names and entries without a repository are errors.
func Parse(data []byte) (Vector, error) {
	var file struct {
		Images []Source `json:"images"`
	}
	if err := strictyaml.Unmarshal(data, &file, nil); err != nil {
		return nil, err
	}
	vector := make(Vector, len(file.Images))
	for i, source := range file.Images {
		if source.Name == "" || source.Repository == "" {
			return nil, fmt.Errorf("images[%d]: name and repository must be set", i)
		}
		if _, found := vector[source.Name]; found {
			return nil, fmt.Errorf("images[%d]: %q is listed twice", i, source.Name)
		}
		for tag, digest := range source.Digests {
			if !digestForm.MatchString(digest) {
				return nil, fmt.Errorf("images[%d].digests[%s]: %q is not sha256: and 64 hexadecimal digits", i, tag,
					digest)
			}
		}
		vector[source.Name] = source
	}
	return vector, nil
}

func (v Vector) merge(overwrites Vector) Vector {
	for name, source := range overwrites {
		if source.Tag == "" {
			source.Tag = v[name].Tag
		}
		v[name] = source
	}
	return v
}

// FindOption changes how Find chooses the tag.
type FindOption func(*Image)

// Version sets the tag to "v<version>" unless the vector fixes one; for images released with Kubernetes.
func Version(version string) FindOption {
	return func(image *Image) {
		if image.Tag == "" {
			image.Tag = "v" + strings.TrimPrefix(version, "v")
		}
	}
}

// Tag sets the tag, whatever the vector says.
func Tag(tag string) FindOption {
	return func(image *Image) { image.Tag = tag }
}

// Find resolves the image with this name.
func (v Vector) Find(name string, options ...FindOption) (Image, error) {
	source, found := v[name]
	if !found {
		return Image{}, fmt.Errorf("image %q is not in the image vector; add it to charts/images.yaml", name)
	}
	image := Image{Repository: source.Repository, Tag: source.Tag}
	for _, option := range options {
		option(&image)
	}
	if image.Tag == "" && strings.HasPrefix(image.Repository, ownRepository) {
		image.Tag = version.Version
	}
	if image.Tag == "" {
		return Image{}, fmt.Errorf("image %q (%s) has no tag in the image vector and was asked for without a version",
			name, source.Repository)
	}
	return source.pin(image)
}

// pin adds the digest that the vector has for the tag.
func (s Source) pin(image Image) (Image, error) {
	if strings.HasPrefix(image.Tag, "sha256:") {
		image.Tag, image.Digest = "", image.Tag
		return image, nil
	}
	if len(s.Digests) == 0 {
		return image, nil
	}
	image.Digest = s.Digests[image.Tag]
	if image.Digest == "" {
		return Image{}, fmt.Errorf("image %q (%s): the image vector has digests, but none of tag %q; add it to "+
			"digests of the entry", s.Name, s.Repository, image.Tag)
	}
	return image, nil
}
