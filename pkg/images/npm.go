package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxPackage is more than any package has that is fetched here.
	maxPackage = 256 << 20
	// packagePatience is how long one may take.
	packagePatience = 10 * time.Minute
)

// npmPackage is a package of npm's registry, by its content.
type npmPackage struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
}

// npmRegistry is the registry that npm of this user has: by its variables, its files, or npm itself. None is assumed.
func npmRegistry(ctx context.Context, getenv func(string) string) (string, error) {
	found := getenv("npm_config_registry")
	if found == "" {
		found = getenv("NPM_CONFIG_REGISTRY")
	}
	for _, file := range npmFiles(getenv) {
		if found == "" {
			found = registryIn(file)
		}
	}
	if found == "" {
		output, err := exec.CommandContext(ctx, "npm", "config", "get", "registry").Output()
		if err == nil {
			found = strings.TrimSpace(string(output))
		}
	}
	parsed, err := url.Parse(found)
	if found == "" || err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return "", fmt.Errorf("npm's registry is %q: name one with `registry=URL` in ~/.npmrc, or in NPM_CONFIG_REGISTRY",
			found)
	}
	return strings.TrimSuffix(found, "/"), nil
}

// npmFiles are the files of npm's configuration, those of the user first.
func npmFiles(getenv func(string) string) []string {
	user, all := getenv("NPM_CONFIG_USERCONFIG"), getenv("NPM_CONFIG_GLOBALCONFIG")
	if user == "" {
		user = filepath.Join(getenv("HOME"), ".npmrc")
	}
	if all == "" {
		all = "/etc/npmrc"
	}
	return []string{user, all}
}

// registryIn is the registry that a file names; empty if it names none.
func registryIn(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), "=")
		if found && strings.TrimSpace(name) == "registry" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// fetch unpacks the package into a folder, after its content was found to be the one that is wanted.
func (p npmPackage) fetch(ctx context.Context, registry, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, packagePatience)
	defer cancel()
	address := fmt.Sprintf("%s/%s/-/%s-%s.tgz", registry, p.Name, path.Base(p.Name), p.Version)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("package %s %s: the registry answers %s", p.Name, p.Version, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxPackage))
	if err != nil {
		return fmt.Errorf("package %s %s: %w", p.Name, p.Version, err)
	}
	sum := sha512.Sum512(content)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.Integrity {
		return fmt.Errorf("package %s %s is %s, and has to be %s: it is not used", p.Name, p.Version, got, p.Integrity)
	}
	if err := unpackPackage(content, dir); err != nil {
		return fmt.Errorf("package %s %s: %w", p.Name, p.Version, err)
	}
	return nil
}

// unpackPackage writes the files of a package below a folder, without the folder that all of them are in.
func unpackPackage(content []byte, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	decompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	archive := tar.NewReader(decompressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, found := strings.Cut(path.Clean(header.Name), "/")
		if header.Typeflag != tar.TypeReg || !found {
			continue
		}
		if err := writeInto(root, name, header.FileInfo().Mode().Perm()|0o644, archive); err != nil {
			return err
		}
	}
}

// writeInto writes a file below a folder, out of which no name leads.
func writeInto(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
