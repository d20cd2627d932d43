package etcd

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// Member is one of those that together are to be an etcd.
type Member struct {
	Name string
	// PeerURL is where the others reach it.
	PeerURL string
}

// memberCount is how many members there are, if there is more than one. Two tolerate the loss of none, and each more
// has to confirm every write.
const memberCount = 3

// memberList reads members from a flag.
type memberList []Member

// String implements pflag.Value.
func (l *memberList) String() string {
	var all []string
	for _, m := range *l {
		all = append(all, m.Name+"="+m.PeerURL)
	}
	return strings.Join(all, ",")
}

// Set implements pflag.Value.
func (l *memberList) Set(text string) error {
	*l = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, peerURL, found := strings.Cut(part, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=URL", part)
		}
		*l = append(*l, Member{Name: name, PeerURL: peerURL})
	}
	return nil
}

// Type implements pflag.Value.
func (*memberList) Type() string { return "name=url,..." }

// hasPeers tells whether the etcd has other members, or may get them.
func (o *Options) hasPeers() bool { return len(o.Members) > 0 }

// startsSingle tells whether the etcd has no other members, as far as the options say.
func (o *Options) startsSingle() bool { return !o.hasPeers() || o.SingleMember }

// self is the steward's own member.
func (o *Options) self() Member {
	for _, m := range o.Members {
		if m.Name == o.Name {
			return m
		}
	}
	return Member{Name: o.Name, PeerURL: advertisedPeerURL}
}

// first tells whether the member is the one that begins the cluster; all others join.
func (o *Options) first() bool { return !o.hasPeers() || o.Members[0].Name == o.Name }

// others are all members but the steward's own.
func (o *Options) others() []Member {
	return slices.DeleteFunc(slices.Clone(o.Members), func(m Member) bool { return m.Name == o.Name })
}

// founder is the only member of a new cluster, for which data is built.
type founder struct {
	name, peerURL string
	// token makes the cluster another one than all others of the same members.
	token string
}

// founder is the steward's own member. What is built for one that others may join belongs to a cluster that never was
// before: a volume of an earlier one that appears again must not find itself at home.
func (o *Options) founder() founder {
	f := founder{name: o.Name, peerURL: o.self().PeerURL, token: clusterToken}
	if o.hasPeers() {
		var unique [8]byte
		_, _ = rand.Read(unique[:])
		f.token += "-" + hex.EncodeToString(unique[:])
	}
	return f
}

// peerTLS secures what members say to each other. Pods' addresses are not in certificates, so who connects must have
// one of the authority of the peers, whatever its address.
func (o *Options) peerTLS() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: o.PeerCertFile, KeyFile: o.PeerKeyFile, TrustedCAFile: o.PeerTrustedCAFile, ClientCertAuth: true,
		SkipClientSANVerify: true,
	}
}

// validatePeers names every flag about members that is wrong.
func (o *Options) validatePeers() error {
	files := map[string]string{
		"--peer-cert-file": o.PeerCertFile, "--peer-key-file": o.PeerKeyFile,
		"--peer-trusted-ca-file": o.PeerTrustedCAFile,
	}
	var all []error
	for flag, file := range files {
		if !o.hasPeers() && file != "" {
			all = append(all, fmt.Errorf("%s needs --members", flag))
		}
		if o.hasPeers() && file == "" {
			all = append(all, fmt.Errorf("%s must be set with --members: who is taken for a peer can change all data",
				flag))
		}
	}
	if !o.hasPeers() {
		if o.SingleMember {
			all = append(all, errors.New("--single-member needs --members; an etcd without them is always one"))
		}
		return errors.Join(all...)
	}
	all = append(all, o.validateMembers())
	if u, err := url.Parse(o.ListenPeerURL); err == nil && u.Scheme != "https" {
		all = append(all, fmt.Errorf("--listen-peer-urls: %q must be https with --members", o.ListenPeerURL))
	}
	if u, err := url.Parse(o.advertised()); err == nil {
		if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
			all = append(all, fmt.Errorf("--advertise-client-urls: %q is no address at which the other members find "+
				"this one", o.advertised()))
		}
	}
	return errors.Join(all...)
}

func (o *Options) validateMembers() error {
	var all []error
	if len(o.Members) != memberCount {
		all = append(all, fmt.Errorf("--members: there are %d; an etcd that others never join needs none, "+
			"any other has %d", len(o.Members), memberCount))
	}
	seen := map[string]bool{}
	for _, m := range o.Members {
		if u, err := url.Parse(m.PeerURL); err != nil || u.Scheme != "https" || u.Port() == "" || u.Path != "" {
			all = append(all, fmt.Errorf("--members: %q of %q is not a URL such as https://etcd-0.etcd-peer:2380",
				m.PeerURL, m.Name))
		}
		if m.Name == "" || seen[m.Name] || seen[m.PeerURL] {
			all = append(all, fmt.Errorf("--members: %q at %q has no name, or one or a URL that another has", m.Name,
				m.PeerURL))
		}
		seen[m.Name], seen[m.PeerURL] = true, true
	}
	if !seen[o.Name] {
		all = append(all, fmt.Errorf("--members: --name %q is not among them", o.Name))
	}
	if o.SingleMember && !o.first() {
		all = append(all, fmt.Errorf("--single-member: --name %q is not the first of --members, which the others join",
			o.Name))
	}
	return errors.Join(all...)
}

// checkAuthorities makes sure that no certificate of a client is good for a peer.
func (o *Options) checkAuthorities() error {
	if !o.hasPeers() || o.TrustedCAFile == "" {
		return nil
	}
	ofClients, err := authorities(o.TrustedCAFile)
	if err != nil {
		return fmt.Errorf("--trusted-ca-file: %w", err)
	}
	return o.checkClients(ofClients)
}

// checkClients is checkAuthorities with those of clients.
func (o *Options) checkClients(ofClients []*x509.Certificate) error {
	if !o.hasPeers() {
		return nil
	}
	ofPeers, err := authorities(o.PeerTrustedCAFile)
	if err != nil {
		return fmt.Errorf("--peer-trusted-ca-file: %w", err)
	}
	for _, peer := range ofPeers {
		for _, client := range ofClients {
			if bytes.Equal(peer.RawSubjectPublicKeyInfo, client.RawSubjectPublicKeyInfo) {
				return fmt.Errorf("--peer-trusted-ca-file %s has the authority %q of --trusted-ca-file: each client "+
					"could act as a member; give the peers an authority of their own", o.PeerTrustedCAFile,
					peer.Subject)
			}
		}
	}
	return nil
}

func authorities(file string) ([]*x509.Certificate, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := parseAuthorities(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

func parseAuthorities(bundle []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no certificate")
	}
	return all, nil
}
