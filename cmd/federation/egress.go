package main

import (
	"fmt"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
)

// egressFlags are about the proxy by which the process leaves its seed.
type egressFlags struct {
	proxy string
	files tlsfiles.Files
}

func (e *egressFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&e.proxy, "egress-proxy", "",
		"host:port of the HTTP CONNECT proxy, with TLS, that decides where members and webhooks may be; without one "+
			"they are connected to directly")
	flags.StringVar(&e.files.Cert, "egress-cert-file", "",
		"certificate for --egress-proxy (PEM); read again when it changes")
	flags.StringVar(&e.files.Key, "egress-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&e.files.CA, "egress-ca-file", "", "CA of --egress-proxy (PEM)")
}

// apply has the controllers leave through the proxy, if there is one.
func (e *egressFlags) apply(options *controllers.Options) error {
	if e.proxy == "" {
		return nil
	}
	d, err := dialer.New(e.proxy, e.files, ctrl.Log.WithName("egress"))
	if err != nil {
		return fmt.Errorf("--egress-proxy: %w", err)
	}
	options.Dial = d.DialContext
	return nil
}
