package await

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// answerProbes says at the port that the program will have itself that it is alive, and nothing else, until end is
// called. As with the program itself, that tells nothing of what it needs. It goes on waiting where the port cannot be
// had: kubelet is patient for some minutes.
func (p Program) answerProbes() (end func()) {
	port := p.flag("secure-port")
	if port == "" {
		port = strconv.Itoa(p.Port)
	}
	if port == "0" {
		return func() {}
	}
	certificate, err := selfSigned()
	if err != nil {
		p.say("probes get no answer: %v", err)
		return func() {}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(p.flag("bind-address"), port))
	if err != nil {
		p.say("probes get no answer: %v", err)
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+cmp.Or(p.Alive, "/healthz"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{
		Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.ServeTLS(listener, "", "") })
	return func() {
		_ = server.Close()
		serving.Wait()
	}
}

// selfSigned is a certificate that kubelet takes from a probe's endpoint, as it takes any. Its key is never stored.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key of a serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("serving certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
