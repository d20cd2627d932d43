package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/issuer"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// keyAnnouncement is how long a new key is published before it signs. Servers read keys again when they meet one that
// they do not know, and every few minutes.
const keyAnnouncement = 10 * time.Minute

type issuerFlags struct {
	listen, url, namespace, secret, certFile, keyFile string
	clients                                           []string
	lifetime, period                                  time.Duration
	verbosity                                         int
}

func issuerCommand() *cobra.Command {
	var flags issuerFlags
	cmd := &cobra.Command{
		Use:   "issuer",
		Short: "Serve a small OIDC issuer with three users",
		Long: `issuer is an OIDC provider for a landscape: code flow with PKCE, and users ` +
			strings.Join(issuer.Users(), ", ") + `. It makes their passwords, and
the keys that sign tokens, and keeps both in --secret.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runIssuer(cmd.Context(), flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", ":8443", "address for browsers and clients")
	f.StringVar(&flags.url, "url", "", "URL of the issuer: https://HOST[:PORT]")
	f.StringVar(&flags.namespace, "namespace", "garden", "namespace of the Secret")
	f.StringVar(&flags.secret, "secret", "landscape-issuer",
		"Secret with passwords ("+issuer.PasswordPrefix+"<user>) and signing keys; it is made")
	f.StringArrayVar(&flags.clients, "client", nil,
		"ID=URL of a client and where people are led back; once for each URL")
	f.StringVar(&flags.certFile, "tls-cert-file", "", "certificate of the server, read again for each connection")
	f.StringVar(&flags.keyFile, "tls-private-key-file", "", "its key")
	f.DurationVar(&flags.lifetime, "token-lifetime", time.Hour, "how long ID tokens are good")
	f.DurationVar(&flags.period, "key-rotation", 24*time.Hour, "after which time another key signs")
	f.IntVarP(&flags.verbosity, "v", "v", 0, "verbosity of the log")
	command.AddKubeconfig(f)
	return cmd
}

// parseClients reads ID=URL, several times for clients with several URLs.
func parseClients(texts []string) ([]issuer.Client, error) {
	var clients []issuer.Client
	for _, text := range texts {
		id, redirect, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("--client %q: must be ID=URL", text)
		}
		index := slices.IndexFunc(clients, func(c issuer.Client) bool { return c.ID == id })
		if index < 0 {
			clients, index = append(clients, issuer.Client{ID: id}), len(clients)
		}
		clients[index].Redirects = append(clients[index].Redirects, redirect)
	}
	return clients, nil
}

func (f issuerFlags) rotation() (issuer.Rotation, error) {
	if f.period < time.Hour {
		return issuer.Rotation{}, fmt.Errorf("--key-rotation %s: must be 1h or more", f.period)
	}
	return issuer.Rotation{Period: f.period, Announcement: keyAnnouncement, Overlap: f.lifetime}, nil
}

func runIssuer(ctx context.Context, flags issuerFlags) error {
	log := command.NewLogger(flags.verbosity).WithName("issuer")
	ctrl.SetLogger(log)
	clients, err := parseClients(flags.clients)
	if err != nil {
		return err
	}
	rotation, err := flags.rotation()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return kubeconfig.Explain("the cluster with the Secret", err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	made, err := issuer.New(ctx, issuer.Options{
		URL: flags.url, Clients: clients, TokenLifetime: flags.lifetime, Clock: clock.RealClock{}, Log: log,
	}, &issuer.Store{Client: c, Namespace: flags.namespace, Name: flags.secret, Rotation: rotation})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return made.Upkeep(ctx) })
	group.Go(func() error { return serveTLS(ctx, flags, made.Handler()) })
	return group.Wait()
}

// serveTLS serves until the context ends.
func serveTLS(ctx context.Context, flags issuerFlags, handler http.Handler) error {
	server := &http.Server{
		Addr: flags.listen, Handler: handler, ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(flags.certFile, flags.keyFile)
				return &pair, err
			},
		},
	}
	if _, err := tls.LoadX509KeyPair(flags.certFile, flags.keyFile); err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ending)
	})
	defer stop()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
