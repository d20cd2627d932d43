//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	dashboardURL = "https://dashboard.garden.local.trellis.garden"
	issuerURL    = "https://login.garden.local.trellis.garden"
)

// longJourneys has people do in the browser also what takes minutes; make test-browser sets it.
var longJourneys = flag.Bool("long-journeys", false, "in the browser, a shoot also sleeps and gets new credentials")

// dashboardUsers are those of the landscape's issuer.
var dashboardUsers = []string{"operator", "project-admin", "viewer"}

// inBrowser runs a file of test/browser, which does in a browser what people do.
func inBrowser(file string) func(t *testing.T) {
	return func(t *testing.T) {
		l := open(t)
		runBrowserTests(t, l, "--test", "--test-reporter=spec", "--test-concurrency=1", "src/"+file+".test.ts")
	}
}

// TestFilesOfTheBrowser: each file of test/browser with tests is in a row.
func TestFilesOfTheBrowser(t *testing.T) {
	files, err := filepath.Glob("../browser/src/*.test.ts")
	rows, readErr := os.ReadFile("rows_test.go")
	if err := errors.Join(err, readErr); err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		if !strings.Contains(string(rows), fmt.Sprintf("inBrowser(%q)", name)) {
			t.Errorf("no row runs %s", file)
		}
	}
}

// browserTypes checks the types of what runs in the browser: Node drops them unread.
func browserTypes(t *testing.T) {
	runBrowserTests(t, open(t), "node_modules/typescript/lib/tsc.js", "--noEmit")
}

func runBrowserTests(t *testing.T, l *landscape, arguments ...string) {
	t.Helper()
	cache := filepath.Join(l.root, ".cache")
	node, browser := filepath.Join(cache, "browser/bin/node"), filepath.Join(cache, "rootfs/browser")
	for _, path := range []string{node, browser} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("there is no browser in this clone; get it with `make browser` (%v)", err)
		}
	}
	work := t.TempDir()
	l.trustInBrowser(t, browser, work)
	command := exec.CommandContext(t.Context(), node, arguments...)
	command.Dir = filepath.Join(l.root, "test/browser")
	// The browser's profile lies in the folder that the browser sees.
	command.Env = append(os.Environ(), "TMPDIR="+work, "TRELLIS_BROWSER_ROOT="+browser, "TRELLIS_BROWSER_WORK="+work,
		"TRELLIS_BROWSER_LANDSCAPE="+l.describeToBrowser(t, work))
	out, err := command.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v; pictures are in %s", strings.Join(arguments, " "), err, l.pictures())
	}
}

// pictures is where tests in the browser leave what pages looked like.
func (l *landscape) pictures() string { return filepath.Join(l.state, "pictures") }

// describeToBrowser writes for the tests in the browser what they have to know of the landscape.
func (l *landscape) describeToBrowser(t *testing.T, work string) string {
	t.Helper()
	passwords := map[string]string{}
	for _, user := range dashboardUsers {
		passwords[user] = l.dashboardPassword(t, user)
	}
	kubeconfigs := map[string]string{"garden": l.garden(), "runtime": l.runtime()}
	for _, shoot := range []string{"fleet", "member1", "member2"} {
		kubeconfigs[shoot] = l.shoot(t, shoot).kubeconfig
	}
	data, err := json.Marshal(map[string]any{
		"dashboard": dashboardURL, "login": issuerURL, "gateway": l.gardenGateway(t), "passwords": passwords,
		"work": work, "pictures": l.pictures(), "kubectl": l.bin("kubectl"), "kubeconfigs": kubeconfigs,
		"longJourneys": *longJourneys,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "landscape.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dashboardPassword is that of a user of the landscape's issuer.
func (l *landscape) dashboardPassword(t *testing.T, user string) string {
	t.Helper()
	out := l.runtimeKubectl().run(t, "-n", "garden", "get", "secret", "local-issuer", "-o",
		fmt.Sprintf("jsonpath={.data.password-%s}", user))
	password, err := base64.StdEncoding.DecodeString(out)
	if err != nil || len(password) == 0 {
		t.Fatalf("the password of %s: %q, %v", user, out, err)
	}
	return string(password)
}

// gardenGateway is where all host names of the landscape are reached.
func (l *landscape) gardenGateway(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.garden())
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return server.Host
}

// trustInBrowser makes the landscape's authorities the only ones that were added to those of the browser, for a browser
// with this folder as its home.
func (l *landscape) trustInBrowser(t *testing.T, browser, work string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.garden())
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(work, ".pki/nssdb")
	if err := os.MkdirAll(database, 0o700); err != nil {
		t.Fatal(err)
	}
	certutil := func(arguments ...string) {
		t.Helper()
		arguments = append([]string{browser, work, "/usr/bin/certutil", "-d", "sql:" + database}, arguments...)
		script := filepath.Join(l.root, "test/browser/inside.sh")
		if out, err := exec.CommandContext(t.Context(), script, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("certutil %v: %v: %s", arguments, err, out)
		}
	}
	certutil("-N", "--empty-password")
	count := 0
	for block, rest := pem.Decode(config.CAData); block != nil; block, rest = pem.Decode(rest) {
		path := filepath.Join(work, fmt.Sprintf("authority-%d.pem", count))
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		certutil("-A", "-n", fmt.Sprintf("landscape %d", count), "-t", "C,,", "-i", path)
		count++
	}
	if count == 0 {
		t.Fatal("the garden's kubeconfig has no authority")
	}
}
