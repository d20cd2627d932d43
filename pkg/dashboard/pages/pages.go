// Package pages serves the pages of the dashboard, which the build puts into the folder dist. Without them there is a
// line that says so.
package pages

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

//go:embed all:dist
var dist embed.FS

// Embedded are the pages that were built into the program.
func Embedded() fs.FS {
	result, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // The name is a constant.
	}
	return result
}

const index = "index.html"

// Handler serves pages: files as they are, and index.html for each path of a page, as pages find their way themselves.
type Handler struct{ Files fs.FS }

// encodings of files that were compressed by the build, in the order of preference.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// hashed are names that change with what is in the file, such as index-Bq3vX9aT.js.
var hashed = regexp.MustCompile(`^assets/.*[.-][A-Za-z0-9_-]{8,}\.[a-z0-9]+$`)

// types of files, which do not depend on what the machine knows.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
	".woff2": "font/woff2", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		reply.Failure(w, reply.Error(http.StatusMethodNotAllowed, "MethodNotAllowed", "pages are read"))
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" || strings.HasPrefix(path.Base(name), ".") || !h.has(name) {
		if strings.HasPrefix(name, "assets/") {
			http.NotFound(w, r) // A page of another version asks for it; index.html would be no script.
			return
		}
		name = index
	}
	h.serve(w, r, name)
}

// Built tells whether there are pages.
func (h *Handler) Built() bool { return h.has(index) }

func (h *Handler) has(name string) bool {
	info, err := fs.Stat(h.Files, name)
	return err == nil && info.Mode().IsRegular()
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) {
	file, encoding, err := h.open(r, name)
	if errors.Is(err, fs.ErrNotExist) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w,
			"This dashboard was built without its pages: run the build of the folder dashboard first.\n")
		return
	}
	if err != nil {
		reply.Failure(w, err)
		return
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Type", typeOf(name))
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache")
	if hashed.MatchString(name) {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
	}
	if info, err := file.Stat(); err == nil {
		header.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, file)
	}
}

// open gives a file as it was compressed, if the browser takes that.
func (h *Handler) open(r *http.Request, name string) (fs.File, string, error) {
	for _, encoding := range encodings {
		if !accepts(r, encoding.name) {
			continue
		}
		if file, err := h.Files.Open(name + encoding.suffix); err == nil {
			return file, encoding.name, nil
		}
	}
	file, err := h.Files.Open(name)
	return file, "", err
}

func accepts(r *http.Request, encoding string) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			return strings.ReplaceAll(quality, " ", "") != "q=0"
		}
	}
	return false
}

func typeOf(name string) string {
	extension := path.Ext(name)
	if known, found := types[extension]; found {
		return known
	}
	if known := mime.TypeByExtension(extension); known != "" {
		return known
	}
	return "application/octet-stream"
}
