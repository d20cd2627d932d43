package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/objectstore"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// ownRecordTTL is how long, in seconds, resolvers may remember names of the operator.
const ownRecordTTL = 120

type cloudFlags struct {
	listen, dns, forward, zone, stateDir, tokenFile, pool, node string
	objects, objectProgram, nodeName, bastions                  string
	reserved                                                    []string
	records                                                     map[string]string
	tcp, udp                                                    []uint
	volumes                                                     bool
	verbosity                                                   int
}

func cloudCommand() *cobra.Command {
	var flags cloudFlags
	cmd := &cobra.Command{
		Use:   "cloud",
		Short: "Run the local cloud on this node",
		Long: `cloud serves an HTTP API for networks, DNS records and bastions, answers DNS for its zone, and provisions volumes of the
StorageClass with provisioner ` + volumes.Provisioner + `. It changes bridges and firewall of the network namespace it runs in, and
keeps all state below --state-dir.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCloud(cmd.Context(), flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", "172.18.0.2:8090", "address of the API")
	f.StringVar(&flags.dns, "dns", "172.18.0.2:5353", "address of the DNS server, UDP and TCP")
	f.StringVar(&flags.forward, "forward", "",
		"resolver (host:port) for names outside the zone; empty: no such name exists")
	f.StringVar(&flags.zone, "zone", "local.trellis.garden", "DNS zone")
	f.StringToStringVar(&flags.records, "record", nil,
		"names of the zone with their addresses (NAME=ADDRESS) that clients cannot change")
	f.StringVar(&flags.stateDir, "state-dir", "/var/lib/local-cloud", "folder for all state")
	f.StringVar(&flags.tokenFile, "token-file", "/etc/local-cloud/token",
		"file with the bearer token that clients must present")
	f.StringVar(&flags.pool, "pool", "10.180.0.0/16", "range of the networks of machines")
	f.StringSliceVar(&flags.reserved, "reserved", []string{"172.18.0.0/24", "10.1.0.0/16", "10.2.0.0/16"},
		"networks of the node that networks of machines must not overlap")
	f.StringVar(&flags.node, "node", "", "address of the node that machines may use (default: that of --listen)")
	f.UintSliceVar(&flags.tcp, "machine-tcp-ports", []uint{53, 443, 5000, 5353, 8090, 8443, 9000},
		"TCP ports of the node that machines may use")
	f.UintSliceVar(&flags.udp, "machine-udp-ports", []uint{53, 5353, 51820},
		"UDP ports of the node that machines may use")
	f.StringVar(&flags.objects, "object-store", "",
		"address (host:port) at which buckets are served by S3; empty: buckets are folders")
	f.StringVar(&flags.objectProgram, "object-store-program", "/usr/local/bin/objectstore", "program that serves them")
	f.StringVar(&flags.bastions, "bastions", "",
		"range of the addresses that bastions get, of a network of the node; empty: there are no bastions")
	f.BoolVar(&flags.volumes, "volumes", true, "provision volumes in the cluster this runs in")
	f.StringVar(&flags.nodeName, "node-name", "",
		"name of the node, to which volumes are bound (default: to none; all nodes must share the folder then)")
	f.IntVarP(&flags.verbosity, "v", "v", 0, "verbosity of the log")
	command.AddKubeconfig(f)
	return cmd
}

func runCloud(ctx context.Context, flags cloudFlags) error {
	log := command.NewLogger(flags.verbosity).WithName("cloud")
	ctrl.SetLogger(log)
	options, err := flags.serverOptions()
	if err != nil {
		return err
	}
	options.Log = log
	group, ctx := errgroup.WithContext(ctx)
	if flags.objects != "" {
		objects, err := objectstore.New(filepath.Join(flags.stateDir, "objectstore"), flags.objects)
		if err != nil {
			return err
		}
		options.Objects = objects
		group.Go(func() error { return runGateway(ctx, flags.objectProgram, objects.Arguments()...) })
	}
	group.Go(func() error { return server.New(options).Run(ctx) })
	if flags.volumes {
		mgr, err := volumesManager(volumes.Options{Dir: filepath.Join(flags.stateDir, "volumes"), Node: flags.nodeName},
			log)
		if err != nil {
			return err
		}
		group.Go(func() error { return mgr.Start(ctx) })
	}
	return group.Wait()
}

// runGateway runs the program that serves the buckets until the context ends. When it ends by itself, so does the
// cloud.
func runGateway(ctx context.Context, program string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the object store %s has ended: %w", program, cmp.Or(err, errors.New("without an error")))
}

// volumesManager provisions volumes in the cluster that this runs in.
func volumesManager(options volumes.Options, log logr.Logger) (manager.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("%w; or turn volumes off with --volumes=false",
			kubeconfig.Explain("the cluster for volumes", err))
	}
	config.QPS, config.Burst = 50, 100
	scheme, err := command.Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, command.Inside(scheme, log))
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for volumes: %w", err)
	}
	return mgr, volumes.Add(mgr, options)
}

func (f cloudFlags) serverOptions() (server.Options, error) {
	token, err := readToken(f.tokenFile)
	if err != nil {
		return server.Options{}, err
	}
	pool, err := netip.ParsePrefix(f.pool)
	if err != nil {
		return server.Options{}, fmt.Errorf("--pool: %w", err)
	}
	var reserved []netip.Prefix
	for _, text := range f.reserved {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return server.Options{}, fmt.Errorf("--reserved: %w", err)
		}
		reserved = append(reserved, prefix)
	}
	var bastions netip.Prefix
	if f.bastions != "" {
		if bastions, err = netip.ParsePrefix(f.bastions); err != nil {
			return server.Options{}, fmt.Errorf("--bastions: %w", err)
		}
	}
	services, err := f.services()
	if err != nil {
		return server.Options{}, err
	}
	return server.Options{
		Listen: f.listen, DNS: f.dns, Forward: f.forward, Zone: f.zone, Records: f.ownRecords(), StateDir: f.stateDir,
		Token: token,
		Pool:  pool, Reserved: reserved, Bastions: bastions, Node: services.Node,
		Host: server.LinuxHost{Services: services},
	}, nil
}

func (f cloudFlags) ownRecords() []api.Record {
	var records []api.Record
	for name, address := range f.records {
		record := api.Record{FQDN: name, Type: "A", Values: []string{address}, TTL: ownRecordTTL}
		if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() {
			record.Type = "AAAA"
		}
		records = append(records, record)
	}
	return records
}

func (f cloudFlags) services() (server.Services, error) {
	node := f.node
	if node == "" {
		host, _, err := net.SplitHostPort(f.listen)
		if err != nil {
			return server.Services{}, fmt.Errorf("--listen: %w", err)
		}
		node = host
	}
	address, err := netip.ParseAddr(node)
	if err != nil {
		return server.Services{}, fmt.Errorf("--node: %w", err)
	}
	dns, err := netip.ParseAddrPort(f.dns)
	if err != nil {
		return server.Services{}, fmt.Errorf("--dns: %w", err)
	}
	return server.Services{Node: address, TCP: ports(f.tcp), UDP: ports(f.udp), DNSPort: dns.Port()}, nil
}

func ports(values []uint) []uint16 {
	result := make([]uint16, 0, len(values))
	for _, value := range values {
		result = append(result, uint16(value))
	}
	return result
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("--token-file: %s is empty; write the token into it", path)
	}
	return token, nil
}
