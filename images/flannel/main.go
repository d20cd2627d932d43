// The flanneld program of the landscape: flannel's own packages with the two backends that need no C compiler
// (vxlan and host-gw), and the flags of the published flanneld that the extension for flannel sets.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"k8s.io/klog/v2"
)

type options struct {
	kubeSubnetManager bool
	ipMasquerade      bool
	networkInterface  string
	kubeconfig        string
	subnetFile        string
	networkConfig     string
	resyncSeconds     int
}

func main() {
	var o options
	flag.BoolVar(&o.kubeSubnetManager, "kube-subnet-mgr", true,
		"take the node's subnet from its podCIDR (the only mode that is offered)")
	flag.BoolVar(&o.ipMasquerade, "ip-masq", false, "masquerade what leaves the pod network")
	flag.StringVar(&o.networkInterface, "iface", "",
		"interface for traffic between nodes; default: that of the default route")
	flag.StringVar(&o.kubeconfig, "kubeconfig-file", "", "kubeconfig; default: the pod's service account")
	flag.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "file for the CNI plugin")
	flag.StringVar(&o.networkConfig, "net-config-path", "/etc/kube-flannel/net-conf.json", "network configuration")
	flag.IntVar(&o.resyncSeconds, "iptables-resync", 30, "seconds between checks of the firewall rules")
	klog.InitFlags(nil)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "flanneld:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if !o.kubeSubnetManager {
		return fmt.Errorf("--kube-subnet-mgr=false: only the Kubernetes subnet manager is built in")
	}
	subnets, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, "flannel.alpha.coreos.com", o.networkConfig, true)
	if err != nil {
		return fmt.Errorf("subnet manager: %w", err)
	}
	config, err := subnets.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.networkConfig, err)
	}
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return fmt.Errorf("IP families of %s: %w", o.networkConfig, err)
	}
	external, err := ipmatch.LookupExtIface(o.networkInterface, "", "", stack, ipmatch.PublicIPOpts{})
	if err != nil {
		return fmt.Errorf("finding the interface between nodes: %w", err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	driver, err := backend.NewManager(ctx, subnets, external).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("backend %q: %w", config.BackendType, err)
	}
	network, err := driver.RegisterNetwork(ctx, &group, config)
	if err != nil {
		return fmt.Errorf("registering the node's subnet: %w", err)
	}
	firewall := &iptables.IPTablesManager{}
	if err := firewall.Init(ctx, &group); err != nil {
		return fmt.Errorf("firewall: %w", err)
	}
	if o.ipMasquerade {
		err := firewall.SetupAndEnsureMasqRules(ctx, config.Network, ip.IP4Net{}, ip.IP4Net{}, config.IPv6Network,
			ip.IP6Net{}, ip.IP6Net{}, network.Lease(), o.resyncSeconds)
		if err != nil {
			return fmt.Errorf("masquerading: %w", err)
		}
	}
	firewall.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, o.resyncSeconds)
	if err := subnets.HandleSubnetFile(o.subnetFile, config, o.ipMasquerade, network.Lease().Subnet,
		network.Lease().IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("writing %s: %w", o.subnetFile, err)
	}
	group.Go(func() { network.Run(ctx) })
	subnets.CompleteLease(ctx, network.Lease(), &group)
	<-ctx.Done()
	return nil
}
