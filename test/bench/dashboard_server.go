package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// dashboardServer is where browsers find the dashboard, and how they know it.
type dashboardServer struct {
	// url is the origin of its pages, and health the address of its metrics.
	url, health string
	tls         *tls.Config
	pages       *http.Client
}

// configure writes the files of a dashboard in front of a garden, and returns its arguments. It ends TLS itself, as its
// Deployment has it, with a certificate of the garden's authority.
func (s *dashboardServer) configure(folder string, garden *rest.Config) ([]string, error) {
	listen, errListen := address()
	health, errHealth := address()
	if err := errors.Join(errListen, errHealth); err != nil {
		return nil, err
	}
	s.url, s.health = "https://"+listen, health
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	s.tls.RootCAs.AppendCertsFromPEM(garden.CAData)
	s.pages = &http.Client{Transport: &http.Transport{TLSClientConfig: s.tls, ForceAttemptHTTP2: true}}
	sealing := make([]byte, 32)
	_, _ = rand.Read(sealing)
	path := func(name string) string { return filepath.Join(folder, name) }
	config, err := yaml.Marshal(map[string]any{
		"publicURL": s.url,
		"garden":    map[string]any{"name": "bench", "server": garden.Host, "caFile": path("ca.crt")},
		"session":   map[string]any{"keysFile": path("keys")},
	})
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"config.yaml": config, "ca.crt": garden.CAData, "tls.crt": garden.CertData, "tls.key": garden.KeyData,
		"keys": []byte(base64.StdEncoding.EncodeToString(sealing)),
	} {
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{
		"--config=" + path("config.yaml"), "--listen=" + listen, "--health-address=" + health,
		"--tls-cert-file=" + path("tls.crt"), "--tls-key-file=" + path("tls.key"),
	}, nil
}

// load gets a file as a browser does, and returns how large it was on the way.
func (s *dashboardServer) load(ctx context.Context, file string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/"+file, nil)
	if err != nil {
		return 0, err
	}
	// With a header of one's own, the client leaves the body as it is.
	request.Header.Set("Accept-Encoding", "gzip, deflate, br")
	response, err := s.pages.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", request.URL, response.Status)
	}
	return int(size), err
}

// pagesFolder has the pages that are built into the dashboard.
const pagesFolder = "pkg/dashboard/pages/dist"

// firstModules are what a visitor's browser loads before it shows their projects: the entry, the frame of all pages,
// the language and the page. dashboard/scripts/sizes.mjs has the same.
var firstModules = []string{"index.html", "src/app/Shell.tsx", "src/i18n/en.ts", "src/projects/ProjectsPage.tsx"}

// worker keeps the live connection, and is in no manifest.
var worker = regexp.MustCompile(`^worker-.*\.js$`)

// firstFiles names the files of the first load among pages that were built.
func firstFiles(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, ".vite", "manifest.json"))
	if err != nil {
		return nil, err
	}
	manifest := map[string]pageFile{}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	files := []string{"index.html"}
	for _, name := range firstModules {
		if files, err = follow(manifest, name, files); err != nil {
			return nil, err
		}
	}
	assets, err := os.ReadDir(filepath.Join(folder, "assets"))
	if err != nil {
		return nil, err
	}
	for _, asset := range assets {
		if worker.MatchString(asset.Name()) {
			files = append(files, "assets/"+asset.Name())
		}
	}
	return files, nil
}

// pageFile is a file of scripts, with its styles and what it imports at once.
type pageFile struct {
	File         string
	CSS, Imports []string
}

// follow adds the files of a module, and of what it imports, to those before.
func follow(manifest map[string]pageFile, name string, files []string) ([]string, error) {
	of, found := manifest[name]
	if !found {
		return nil, fmt.Errorf("the pages have no %s: firstModules is of other pages", name)
	}
	if slices.Contains(files, of.File) {
		return files, nil
	}
	files = append(files, of.File)
	for _, style := range of.CSS {
		if !slices.Contains(files, style) {
			files = append(files, style)
		}
	}
	for _, imported := range of.Imports {
		var err error
		if files, err = follow(manifest, imported, files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// sumOf adds up the values of a gauge that have all of some labels, among metrics in Prometheus' text format.
func sumOf(text, name string, labels map[string]string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return 0, err
	}
	family, found := families[name]
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	sum := 0.0
	for _, metric := range family.GetMetric() {
		has := 0
		for _, label := range metric.GetLabel() {
			if value, wanted := labels[label.GetName()]; wanted && value == label.GetValue() {
				has++
			}
		}
		if has == len(labels) {
			sum += metric.GetGauge().GetValue()
		}
	}
	return sum, nil
}
