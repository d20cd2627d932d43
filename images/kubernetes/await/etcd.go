package await

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// Etcd returns when each etcd of --etcd-servers and --etcd-servers-overrides takes connections at one of its addresses;
// at once where a flag or a file is of no use, as the program says that itself. Meanwhile kubelet finds the program
// alive at its own port, and not ready. An error says that ctx ended, and what was waited for.
func Etcd(ctx context.Context, p Program) error {
	etcds := append([]string{p.flag("etcd-servers")}, strings.Split(p.flag("etcd-servers-overrides"), ",")...)
	trust, err := p.trustInEtcd()
	if err != nil {
		p.say("not waiting for etcd: %v", err)
		return nil
	}
	return p.await(ctx, "its etcd takes connections", func(ctx context.Context) error {
		for _, etcd := range etcds {
			if err := unreachable(ctx, etcd, trust); err != nil {
				return err
			}
		}
		return nil
	})
}

// trustInEtcd is by which authorities an etcd is one, and what the program shows itself.
func (p Program) trustInEtcd() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if path := p.flag("etcd-cafile"); path != "" {
		authorities, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("--etcd-cafile: %s holds no certificate", path)
		}
	}
	if path := p.flag("etcd-certfile"); path != "" {
		pair, err := tls.LoadX509KeyPair(path, p.flag("etcd-keyfile"))
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile and --etcd-keyfile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// unreachable is why none of an etcd's members takes a connection; nil where one does. An entry of
// --etcd-servers-overrides is group/resource#address;address, one of --etcd-servers has addresses with commas between
// them. What is no address is not waited for.
func unreachable(ctx context.Context, etcd string, trust *tls.Config) error {
	if _, addresses, overrides := strings.Cut(etcd, "#"); overrides {
		etcd = addresses
	}
	var reasons []string
	for _, address := range strings.FieldsFunc(etcd, func(r rune) bool { return r == ',' || r == ';' }) {
		server, err := url.Parse(address)
		if err != nil || server.Port() == "" {
			return nil
		}
		err = connect(ctx, server, trust)
		var certificate *tls.CertificateVerificationError
		if err == nil || errors.As(err, &certificate) {
			return nil
		}
		reasons = append(reasons, address+": "+err.Error())
	}
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(reasons, "; "))
}

func connect(ctx context.Context, server *url.URL, trust *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patienceForAnAnswer)
	defer cancel()
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if server.Scheme == "https" {
		dialer = &tls.Dialer{Config: trust}
	}
	conn, err := dialer.DialContext(ctx, "tcp", server.Host)
	if err != nil {
		return err
	}
	return conn.Close()
}
