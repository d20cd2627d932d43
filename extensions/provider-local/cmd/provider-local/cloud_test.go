package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// flags are the defaults of the command, with a token.
func flags(t *testing.T, token string) cloudFlags {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return cloudFlags{
		listen: "172.18.0.2:8090", dns: "172.18.0.2:5353", pool: "10.180.0.0/16", reserved: []string{"10.1.0.0/16"},
		tokenFile: path, zone: "local.example",
		tcp: []uint{443}, udp: []uint{53},
	}
}

func TestCloudOptions(t *testing.T) {
	options, err := flags(t, " secret\n").serverOptions()
	if err != nil {
		t.Fatal(err)
	}
	if options.Token != "secret" || options.Node != netip.MustParseAddr("172.18.0.2") ||
		options.Pool.String() != "10.180.0.0/16" || len(options.Reserved) != 1 {
		t.Errorf("got %+v", options)
	}
	other := flags(t, "t")
	other.node = "172.18.0.9"
	services, err := other.services()
	if err != nil || services.Node != netip.MustParseAddr("172.18.0.9") || services.DNSPort != 5353 ||
		!slices.Equal(services.TCP, []uint16{443}) || !slices.Equal(services.UDP, []uint16{53}) {
		t.Errorf("got %+v, %v", services, err)
	}
}

// A wrong flag is named, and the cloud does not start: one without a token would serve everybody.
func TestWrongFlags(t *testing.T) {
	for want, change := range map[string]func(*cloudFlags){
		"--token-file: open":                func(f *cloudFlags) { f.tokenFile = "/none" },
		"is empty; write the token into it": func(f *cloudFlags) { *f = flags(t, "\n") },
		"--pool: ":                          func(f *cloudFlags) { f.pool = "10.180.0.0" },
		"--reserved: ":                      func(f *cloudFlags) { f.reserved = []string{"10.1.0.0/16", "x"} },
		"--bastions: ":                      func(f *cloudFlags) { f.bastions = "172.18.0.208" },
		"--listen: ":                        func(f *cloudFlags) { f.listen = "172.18.0.2" },
		"--node: ":                          func(f *cloudFlags) { f.node = "node" },
		"--dns: ":                           func(f *cloudFlags) { f.dns = "172.18.0.2" },
	} {
		wrong := flags(t, "t")
		change(&wrong)
		if _, err := wrong.serverOptions(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Names of the operator are of the kind that their address has.
func TestOwnRecords(t *testing.T) {
	records := cloudFlags{
		records: map[string]string{"four.local.example": "172.18.0.2", "six.local.example": "fd00::2"},
	}.ownRecords()
	slices.SortFunc(records, func(a, b api.Record) int { return strings.Compare(a.FQDN, b.FQDN) })
	if len(records) != 2 || records[0].Type != "A" || records[1].Type != "AAAA" || records[0].TTL != ownRecordTTL {
		t.Errorf("got %+v", records)
	}
	for _, record := range records {
		if err := record.Validate(); err != nil {
			t.Errorf("%s: %v", record.FQDN, err)
		}
	}
}

// A cloud whose object store has ended would make buckets that nobody reaches.
func TestTheGateway(t *testing.T) {
	for _, program := range []string{"true", "false", "/none"} {
		if err := runGateway(t.Context(), program); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%s: got %v", program, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runGateway(ctx, "sleep", "60"); err != nil {
		t.Errorf("when the cloud ends: %v", err)
	}
}

// Who provisions for no node would provision for none, and nobody would know why.
func TestVolumesNeedANode(t *testing.T) {
	cmd := volumesCommand()
	cmd.SetArgs([]string{})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--node-name is empty") {
		t.Errorf("got %v", err)
	}
}
