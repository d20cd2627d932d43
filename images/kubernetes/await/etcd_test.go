package await

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// etcdFiles are those that kube-apiserver has: an authority, and what it signed for both sides.
func etcdFiles(t *testing.T) (args []string, serving tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"--etcd-cafile=" + filepath.Join(dir, "tls.crt"), "--etcd-certfile=" + filepath.Join(dir, "tls.crt"),
		"--etcd-keyfile=" + filepath.Join(dir, "tls.key"),
	}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS has an etcd take connections at a port of loopback, from who shows a certificate.
func serveTLS(t *testing.T, port int, serving tls.Certificate) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port), &tls.Config{
		Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}()
		}
	}()
}

// The etcd of events comes after that of all else: until then kube-apiserver is alive, not ready, and says what it
// waits for. Of several members, one is enough.
func TestEtcdIsWaitedFor(t *testing.T) {
	args, serving := etcdFiles(t)
	port, events, lost := freePort(t), freePort(t), freePort(t)
	main := freePort(t)
	serveTLS(t, main, serving)
	said := &bytes.Buffer{}
	begun := false
	log := writer(func(line string) {
		said.WriteString(line)
		if begun {
			return
		}
		begun = true
		for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusNotFound} {
			if code, err := probe(port, path); code != want {
				t.Errorf("%s: %d, %v, want %d", path, code, err, want)
			}
		}
		serveTLS(t, events, serving)
	})
	address := func(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }
	err := Etcd(t.Context(), Program{
		Name: "server", Port: port, Alive: "/livez", Log: log, Args: append(args,
			"--bind-address=127.0.0.1", "--etcd-servers="+address(lost)+","+address(main),
			"--etcd-servers-overrides=/events#"+address(lost)+";"+address(events)+",/leases#"+address(main)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"server: waiting until its etcd takes connections: " + address(lost) + ": ", address(events) + ": ",
		"server: waiting no longer\n",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("got %q, want %q", said, want)
		}
	}
	if strings.Contains(said.String(), address(main)) {
		t.Errorf("it waits for an etcd that is there: %s", said)
	}
}

// What kube-apiserver has to say itself, it says at once.
func TestEtcdIsNotWaitedFor(t *testing.T) {
	args, serving := etcdFiles(t)
	foreign, _ := etcdFiles(t)
	port := freePort(t)
	serveTLS(t, port, serving)
	refused := "https://127.0.0.1:" + strconv.Itoa(freePort(t))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no flags":                         {nil, ""},
		"an etcd that is there":            {append(args, "--etcd-servers=https://127.0.0.1:"+strconv.Itoa(port)), ""},
		"an etcd that is not trusted":      {append(foreign, "--etcd-servers=https://127.0.0.1:"+strconv.Itoa(port)), ""},
		"no address":                       {[]string{"--etcd-servers=etcd"}, ""},
		"an address without a port":        {[]string{"--etcd-servers=https://127.0.0.1"}, ""},
		"an authority that does not exist": {[]string{"--etcd-servers=" + refused, "--etcd-cafile=/none"}, "--etcd-cafile"},
		"a key that does not exist": {
			[]string{"--etcd-servers=" + refused, "--etcd-certfile=/none", "--etcd-keyfile=/none"}, "--etcd-certfile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := &bytes.Buffer{}
			err := Etcd(t.Context(), Program{Name: "server", Args: test.args, Log: said})
			got := said.String()
			if err != nil || !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %v, %q", err, got)
			}
		})
	}
}

// kube-apiserver ends when it is told to, also while its etcd is away.
func TestAWaitForEtcdEndsWithItsProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	etcd := "http://127.0.0.1:" + strconv.Itoa(freePort(t))
	err := Etcd(ctx, Program{
		Name: "server", Log: writer(func(string) { cancel() }), Args: []string{"--secure-port=0", "--etcd-servers=" + etcd},
	})
	if err == nil || !strings.Contains(err.Error(), etcd) {
		t.Errorf("got %v", err)
	}
}
