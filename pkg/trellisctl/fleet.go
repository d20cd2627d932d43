package trellisctl

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
)

// fleetAccess are the flags that say which fleet a command is about: the targeted shoot, or the one that a kubeconfig
// leads to.
type fleetAccess struct {
	kubeconfig, context string
}

func (a *fleetAccess) flags(command *cobra.Command) {
	command.Flags().StringVar(&a.kubeconfig, "fleet-kubeconfig", "",
		"kubeconfig of the fleet (default: the targeted shoot, see --project and --shoot)")
	command.Flags().StringVar(&a.context, "fleet-context", "",
		"context in the fleet's kubeconfig (default: its current one)")
}

// Fleet is a connection to a fleet's API.
type Fleet struct {
	Client client.Client
	Config *rest.Config
	// Address of the API for others, if it is not that of the configuration: URL, or empty.
	Address string
}

// fleet connects to the fleet that the flags name.
func (c *cli) fleet(ctx context.Context, access fleetAccess) (*Fleet, error) {
	config, address, err := c.fleetConfig(ctx, access)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	fleet, err := client.New(config, client.Options{Scheme: fleetscheme.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the fleet at %s: %w", config.Host, err)
	}
	if _, err := fleet.RESTMapper().RESTMapping(clusterv1alpha1.GroupVersion.WithKind("Cluster").
		GroupKind()); err != nil {
		return nil, explainAccess(config.Host, err)
	}
	return &Fleet{Client: fleet, Config: config, Address: address}, nil
}

// explainAccess says what to do about an API that cannot be used as a fleet's.
func explainAccess(host string, err error) error {
	const fetch = "kubeconfigs are valid for an hour unless --expiration says otherwise, and none of before a " +
		"rotation of the fleet's credentials; " +
		"fetch another with `trellisctl kubeconfig`"
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the API at %s is not that of a fleet: it serves no kind Cluster. A fleet is a shoot with "+
			"the extension federation; name one "+
			"with --project and --shoot, or --fleet-kubeconfig. If it is one, its controllers have not started yet",
			host)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the fleet at %s does not accept the credentials: %w; %s", host, err, fetch)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("the fleet at %s has a certificate of another authority than the kubeconfig: %w; %s", host,
			err, fetch)
	}
	return fmt.Errorf("connecting to the fleet at %s: %w", host, err)
}

func (c *cli) fleetConfig(ctx context.Context, access fleetAccess) (config *rest.Config, address string, err error) {
	if access.kubeconfig != "" || access.context != "" {
		config, err = configFrom(access.kubeconfig, access.context, "--fleet-kubeconfig")
		return config, "", err
	}
	session, err := c.connect()
	if err != nil {
		return nil, "", fmt.Errorf("%w; or name the fleet with --fleet-kubeconfig FILE", err)
	}
	if session.Target.Shoot == "" {
		return nil, "", errors.New("which fleet? Add --project NAME --shoot NAME (the fleet's), or " +
			"--fleet-kubeconfig FILE")
	}
	shoot, err := session.Shoot(ctx)
	if err != nil {
		return nil, "", err
	}
	kubeconfig, err := session.ShootKubeconfig(ctx, shoot, AccessAdmin, time.Hour)
	if err != nil {
		return nil, "", err
	}
	config, err = clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, "", err
	}
	if config.ServerName != "" {
		// The garden's endpoints have it reached by another way than others have.
		address = externalAddress(shoot)
	}
	return bounded(config), address, nil
}

// externalAddress is the URL of a shoot's API; empty if it has none yet.
func externalAddress(shoot *gardencorev1beta1.Shoot) string {
	for _, address := range shoot.Status.AdvertisedAddresses {
		if address.Name == gardencorev1beta1.AdvertisedAddressExternal {
			return address.URL
		}
	}
	return ""
}

// configFrom reads a kubeconfig as kubectl does.
func configFrom(path, context, flag string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return bounded(config), nil
}
