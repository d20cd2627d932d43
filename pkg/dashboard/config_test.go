package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
)

func TestConfig(t *testing.T) {
	const good = `publicURL: https://dashboard.garden.example
garden: {name: local, server: "https://garden:443"}
session: {keysFile: /keys}
`
	for text, wrong := range map[string]string{
		good: "",
		good + "issuers: [{name: main, url: 'https://id.example/x', clientID: dashboard}]\n": "",
		good + "endpoints: [{domain: x, address: 'gateway:443'}]\nlimits: {sockets: 3}\n":    "",
		good + "unknown: x\n": "unknown",
		strings.Replace(good, "https://dashboard", "http://dashboard", 1):                           "publicURL",
		strings.Replace(good, "garden.example", "garden.example/path", 1):                           "publicURL",
		strings.Replace(good, "https://garden:", "http://garden:", 1):                               "garden.server",
		strings.Replace(good, "keysFile: /keys", "lifetime: 1s", 1):                                 "session.lifetime",
		strings.Replace(good, "keysFile: /keys", "", 1):                                             "session.keysFile",
		good + "issuers: [{name: A B, url: 'https://x', clientID: d}]\n":                            "issuers[0].name",
		good + "issuers: [{name: a, url: 'http://x', clientID: d}]\n":                               "issuers[0].url",
		good + "issuers: [{name: a, url: 'https://x'}]\n":                                           "issuers[0].clientID",
		good + "endpoints: [{domain: x, address: nowhere}]\n":                                       "endpoints[0].address",
		good + "limits: {sockets: -1}\n":                                                            "limits.sockets",
		good + "terminals: {image: 'a b'}\n":                                                        "terminals.image",
		good + "terminals: {idle: 0s}\n":                                                            "terminals.idle",
		good + "terminals: {image: 'host:5000/terminal@sha256:" + strings.Repeat("ab", 32) + "'}\n": "",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := ReadConfig(path)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s%v", text, err)
		}
		if err == nil && (config.Limits.Burst == 0 || config.Session.Lifetime.Duration != defaultLifetime) {
			t.Errorf("defaults: %+v", config)
		}
	}
}

// Who starts the program without its files is told which field or flag names them.
func TestFilesThatAreMissing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	err := Run(t.Context(), Options{Config: none}, logr.Discard())
	for _, wanted := range []string{"--config", none, "docs/contracts/dashboard.md"} {
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v does not tell of %s", err, wanted)
		}
	}
	l := newLandscape(t)
	for field, change := range map[string]func(*Config){
		"session.keysFile": func(c *Config) { c.Session.KeysFile = none },
		"garden.caFile":    func(c *Config) { c.Garden.CAFile = none },
		"issuers[1].caFile": func(c *Config) {
			c.Issuers = []IssuerConfig{{Name: "a"}, {Name: "b", CAFile: none}}
		},
		"issuers[0].clientSecretFile": func(c *Config) { c.Issuers = []IssuerConfig{{Name: "a", ClientSecretFile: none}} },
	} {
		config := *l.config
		change(&config)
		_, err := newServer(&config, fstest.MapFS{}, time.Now)
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), none) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The contract's example is one that is taken.
func TestConfigOfTheContract(t *testing.T) {
	text, err := os.ReadFile("../../docs/contracts/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := ReadConfig(path)
	if err != nil || !found || len(config.Issuers) != 1 || len(config.Endpoints) != 1 {
		t.Errorf("%v in %s", err, example)
	}
}
