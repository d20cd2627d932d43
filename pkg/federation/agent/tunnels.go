package agent

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
)

// tunnels serve the member's API in the fleet. Without them the agent does all else.
func (a *agent) tunnels(ctx context.Context) error {
	door, err := a.door()
	if err != nil {
		return err
	}
	fleet, _, err := rest.DefaultServerUrlFor(a.way.invited)
	if err != nil {
		return err
	}
	var state logOnce
	(&tunnel.Keeper{
		Fleet: upgrading{a.way}, Member: door, Pause: tunnel.DefaultPause,
		URL: fleet.JoinPath("apis", clusterv1alpha1.KarmadaGroupVersion.String(), "clusters", a.invited.member,
			tunnel.Subresource).String(),
		Say: func(text string, values ...any) { state.say(a.log.WithName("tunnel"), text, values...) },
	}).Run(ctx)
	return nil
}

// door leads from the fleet to the member as the impersonator, and never as the agent.
func (a *agent) door() (*tunnel.Door, error) {
	config := rest.AnonymousClientConfig(a.Member)
	// HTTP/2 knows no upgrades, which exec needs.
	config.NextProtos, config.DisableCompression = []string{"http/1.1"}, true
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the member at %s: %w", config.Host, err)
	}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the member at %s: %w", config.Host, err)
	}
	i := &impersonator{member: a.member, namespace: a.Namespace}
	return &tunnel.Door{Member: address, Transport: transport, Access: i.access, Refused: i.refused}, nil
}
