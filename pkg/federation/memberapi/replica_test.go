package memberapi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
)

// What replicas share is for them, fits together, and is good for long enough.
func TestCertificateOfReplicas(t *testing.T) {
	now := time.Now()
	made := func(host string) (certificate, key []byte) {
		certificate, key, err := newCertificate(host, now)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, key
	}
	certificate, key := made(host())
	_, keyOfAnother := made(host())
	foreign, foreignKey := made("another.host")
	for name, test := range map[string]struct {
		certificate, key []byte
		at               time.Time
		want             bool
	}{
		"new":                     {certificate, key, now, true},
		"in eight years":          {certificate, key, now.Add(8 * renewal), true},
		"in its last year":        {certificate, key, now.Add(certificateLife - renewal + time.Hour), false},
		"the key of another":      {certificate, keyOfAnother, now, false},
		"of another host":         {foreign, foreignKey, now, false},
		"none":                    {nil, nil, now, false},
		"without its key":         {certificate, nil, now, false},
		"something else as a key": {certificate, []byte("key"), now, false},
	} {
		if got := IsCertificate(test.certificate, test.key, test.at); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A replica is ready while it listens, with the certificate in its files.
func TestReplicaIsReadyWhileItListens(t *testing.T) {
	certificate, key, err := NewCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	if _, _, err := readCertificate(certFile, keyFile); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("without files: %v", err)
	}
	for file, content := range map[string][]byte{certFile: certificate, keyFile: key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &replica{server: &Server{log: logr.Discard(), tunnels: tunnel.New(2)}, address: "127.0.0.1:0"}
	var authority []byte
	if r.certificate, authority, err = readCertificate(certFile, keyFile); err != nil ||
		string(authority) != string(certificate) {
		t.Fatalf("read %s, %v", authority, err)
	}
	if r.NeedLeaderElection() {
		t.Error("a replica that does not lead does not serve")
	}
	if err := r.isReady(nil); err == nil {
		t.Error("it is ready before it listens")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	err = wait.PollUntilContextCancel(t.Context(), time.Millisecond, true,
		func(context.Context) (bool, error) { return r.isReady(nil) == nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil || r.isReady(nil) == nil {
		t.Errorf("it ended with %v, and is ready: %v", err, r.isReady(nil) == nil)
	}
}
