// Package jump is an SSH server that leads to a few addresses and offers nothing else: no shell, no commands, no files,
// no listening. It is what bastions of the local cloud are.
package jump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"

	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/vpn/splice"
)

const (
	// maxConnections and maxChannels bound what the user takes of the node who is logged in.
	maxConnections = 32
	maxChannels    = 32
	// maxHandshakes bounds what those take of it who have not proved who they are.
	maxHandshakes = 32
	// handshakeTimeout bounds the time until a client has proved who it is.
	handshakeTimeout = 20 * time.Second
	dialTimeout      = 10 * time.Second
	// maxTries is how many keys a client may offer.
	maxTries = 6
)

// Options say whom a server lets in, and where to.
type Options struct {
	// HostKey is what the server proves itself with.
	HostKey ssh.Signer
	// AuthorizedKey is that of the one user.
	AuthorizedKey ssh.PublicKey
	// From tells whether an address may connect.
	From func(netip.Addr) bool
	// Dial connects with a destination, or says why it is none.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Log  logr.Logger
}

// Serve serves a listener until the context ends. Then it closes the listener and all connections, and returns when
// nothing of them is left.
func Serve(ctx context.Context, listener net.Listener, options Options) error {
	s := &server{Options: options, config: configFor(options), slots: make(chan struct{}, maxConnections)}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer func() {
		cancel()
		stop()
		listener.Close()
		s.running.Wait()
	}()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting connections at %s: %w", listener.Addr(), err)
		}
		s.take(ctx, connection)
	}
}

type server struct {
	Options
	config *ssh.ServerConfig
	// slots are for who has logged in, so that nobody else takes them.
	slots      chan struct{}
	handshakes handshakes
	running    sync.WaitGroup
}

func configFor(options Options) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		MaxAuthTries:  maxTries,
		ServerVersion: "SSH-2.0-bastion",
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != bastionaccess.User || !bytes.Equal(key.Marshal(), options.AuthorizedKey.Marshal()) {
				return nil, errors.New("not the user of this bastion")
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(options.HostKey)
	return config
}

// take serves a connection if its address may connect. Others are told nothing.
func (s *server) take(ctx context.Context, connection net.Conn) {
	remote, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil || !s.From(remote.Addr().Unmap()) {
		s.Log.Info("Refused by its address", "from", connection.RemoteAddr().String())
		connection.Close()
		return
	}
	s.handshakes.enter(connection)
	s.running.Go(func() {
		defer connection.Close()
		stop := context.AfterFunc(ctx, func() { connection.Close() })
		defer stop()
		if err := s.serve(ctx, connection); err != nil {
			s.Log.Info("A connection has ended", "from", remote.String(), "reason", err.Error())
		}
	})
}

// serve lets a client in if there is room, and opens what it asks for.
func (s *server) serve(ctx context.Context, connection net.Conn) error {
	client, channels, requests, err := s.login(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return errors.New("the user has too many connections")
	}
	s.Log.Info("Logged in", "from", connection.RemoteAddr().String())
	s.open(ctx, channels, requests)
	return nil
}

// login has a client prove who it is, in the place of a handshake.
func (s *server) login(connection net.Conn) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	defer s.handshakes.leave(connection)
	if err := connection.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, nil, nil, err
	}
	config := *s.config
	// The place is free before the client learns that it is in: from then on nobody may take it from them.
	config.AuthLogCallback = func(_ ssh.ConnMetadata, _ string, err error) {
		if err == nil {
			s.handshakes.leave(connection)
		}
	}
	client, channels, requests, err := ssh.NewServerConn(connection, &config)
	if err != nil {
		return nil, nil, nil, err
	}
	return client, channels, requests, connection.SetDeadline(time.Time{})
}

// open opens what a client asks for, until it has gone.
func (s *server) open(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Nothing that a client may ask for globally is granted, such as a listener.
	open.Go(func() { ssh.DiscardRequests(requests) })
	slots := make(chan struct{}, maxChannels)
	for channel := range channels {
		select {
		case slots <- struct{}{}:
		default:
			_ = channel.Reject(ssh.ResourceShortage, "too many connections through this bastion")
			continue
		}
		open.Go(func() {
			defer func() { <-slots }()
			s.lead(ctx, channel)
		})
	}
}

// lead connects a client with the destination that it asks for, until both have said all they have to say.
func (s *server) lead(ctx context.Context, asked ssh.NewChannel) {
	if asked.ChannelType() != "direct-tcpip" {
		_ = asked.Reject(ssh.UnknownChannelType, "this bastion leads to machines only, as with ssh -J")
		return
	}
	to, err := destination(asked.ExtraData())
	if err != nil {
		_ = asked.Reject(ssh.Prohibited, err.Error())
		return
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	machine, err := s.dial(dialing, to)
	cancel()
	if err != nil {
		s.Log.Info("No way", "to", to.String(), "reason", err.Error())
		_ = asked.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer machine.Close()
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	s.Log.Info("Leads", "to", to.String())
	var discarding sync.WaitGroup
	defer discarding.Wait()
	discarding.Go(func() { ssh.DiscardRequests(requests) })
	_, _, _ = splice.Join(ctx, channel, machine) // How a connection ends is for its ends to know.
}

func (s *server) dial(ctx context.Context, to netip.AddrPort) (splice.Conn, error) {
	machine, err := s.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return splice.Of(machine)
}

// destination reads where a channel of type direct-tcpip is to lead (RFC 4254, 7.2). Names are not looked up.
func destination(data []byte) (netip.AddrPort, error) {
	var asked struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if err := ssh.Unmarshal(data, &asked); err != nil {
		return netip.AddrPort{}, errors.New("the destination cannot be read")
	}
	address, err := netip.ParseAddr(asked.Host)
	if err != nil || address.Zone() != "" {
		return netip.AddrPort{}, errors.New("the destination is no IP address")
	}
	if asked.Port == 0 || asked.Port > 65535 {
		return netip.AddrPort{}, errors.New("the destination has no port")
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(asked.Port)), nil
}
