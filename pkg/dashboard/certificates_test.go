package dashboard

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Until when the garden's certificates are good is what the API itself shows, and what the server has.
func TestCertificatesOfTheGarden(t *testing.T) {
	l := newLandscape(t)
	dir := t.TempDir()
	pair := l.garden.Server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	files := [2]string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	for i, block := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(files[i], pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.dashboard.certificateFiles = files
	var told struct {
		Items []struct {
			What    string
			Expires time.Time
		}
	}
	l.as("bob-token").do("GET", "/api/certificates", "").read(t, &told)
	var whats []string
	for _, item := range told.Items {
		whats = append(whats, item.What)
		if !item.Expires.Equal(l.garden.Server.Certificate().NotAfter) {
			t.Errorf("%s expires %s", item.What, item.Expires)
		}
	}
	if strings.Join(whats, " ") != "kube-apiserver authority dashboard" {
		t.Errorf("got %v", whats)
	}
	want(t, "without a session", l.browser().do("GET", "/api/certificates", ""), 401, "Unauthorized")
}
