package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/gateway"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// What carries tunnels is chosen here, and configured by the flags of this file.

// seedTunnel is the seed's end of a tunnel.
type seedTunnel struct {
	wireguard.SeedConfig
	keys keyFiles
}

func (t *seedTunnel) addFlags(flags *pflag.FlagSet) {
	t.keys.addFlags(flags, "seed", "shoot")
	flags.IntVar(&t.ListenPort, "listen-port", vpn.TunnelPort, "UDP port of WireGuard")
	flags.IntVar(&t.MTU, "mtu", vpn.DefaultMTU, "MTU inside the tunnel; the same at both ends")
}

func (t *seedTunnel) readKeys() (err error) {
	t.PrivateKey, t.PeerPublicKey, err = t.keys.read()
	return err
}

func (t *seedTunnel) open() (transport.SeedEnd, error) {
	config := t.SeedConfig
	config.Log = config.Log.WithName("wireguard")
	return wireguard.OpenSeed(config)
}

// shootTunnel is the shoot's end of a tunnel.
type shootTunnel struct {
	wireguard.Shoot
	keys keyFiles
	mode string
}

func (t *shootTunnel) addFlags(flags *pflag.FlagSet) {
	t.keys.addFlags(flags, "shoot", "seed")
	flags.DurationVar(&t.Keepalive, "keepalive", vpn.Keepalive, "interval of keepalives when the tunnel is idle")
	flags.StringVar(&t.mode, "mode", string(wireguard.ModeAuto), "auto, kernel or userspace")
}

// opener is to be asked for when flags are parsed.
func (t *shootTunnel) opener() (transport.ShootOpener, error) {
	shoot := t.Shoot
	var err error
	if shoot.PrivateKey, shoot.PeerPublicKey, err = t.keys.read(); err != nil {
		return nil, err
	}
	if shoot.Mode, err = wireguard.ParseMode(t.mode); err != nil {
		return nil, fmt.Errorf("--mode %w", err)
	}
	return shoot, nil
}

// keyFiles are where an end of a tunnel has its keys.
type keyFiles struct{ private, peer string }

func (k *keyFiles) addFlags(flags *pflag.FlagSet, own, other string) {
	flags.StringVar(&k.private, "private-key-file", "", "file with the "+own+"'s base64 WireGuard private key")
	flags.StringVar(&k.peer, "peer-public-key-file", "", "file with the "+other+"'s base64 WireGuard public key")
}

func (k *keyFiles) read() (private, peer wireguard.Key, err error) {
	if private, err = wireguard.ReadKeyFile(k.private); err != nil {
		return private, peer, err
	}
	peer, err = wireguard.ReadKeyFile(k.peer)
	return private, peer, err
}

// gatewayTunnels tells the tunnels of a gateway apart.
type gatewayTunnels struct{ demux.Limits }

func newGatewayTunnels() *gatewayTunnels { return &gatewayTunnels{demux.DefaultLimits} }

func (t *gatewayTunnels) addFlags(flags *pflag.FlagSet, config *gateway.Config) {
	flags.StringVar(&config.TunnelAddress, "wireguard-address", fmt.Sprintf(":%d", vpn.TunnelPort),
		"UDP address for WireGuard")
	flags.IntVar(&t.Sessions, "max-tunnels", t.Sessions, "WireGuard sessions at a time")
	flags.IntVar(&t.PerServer, "max-tunnels-per-shoot", t.PerServer, "WireGuard sessions of one Service at a time")
}
