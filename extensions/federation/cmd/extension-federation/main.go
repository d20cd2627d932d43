// extension-federation is the extension that makes shoots fleets.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // Schedules of hibernation name time zones.

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	"github.com/trellis-garden/trellis/extensions/federation/pkg/growth"
	"github.com/trellis-garden/trellis/extensions/federation/pkg/membership"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "extension-federation:", err)
		os.Exit(1)
	}
}

func run() error {
	scheme, err := command.Scheme()
	if err != nil {
		return err
	}
	cmd := command.New("extension-federation", "Extension that makes shoots fleets", scheme, setup)
	cmd.Long = `extension-federation runs once per seed. For every shoot with the extension "federation" it

  - brings the fleet's APIs (policies, bindings, works, clusters) into the shoot;
  - runs the federation controllers in the shoot's namespace of the seed;
  - makes every shoot of the same project that has workers a member of the fleet, with the shoot's labels, region and
    zones, and with credentials that live for a day and are renewed after half of it. A shoot with the label
    federation.trellis.garden/join=false stays out;
  - enlarges worker pools of the project's shoots, and creates shoots, as FleetGrowths say, if the annotation
    federation.trellis.garden/growth of the fleet's Shoot allows that; and gives both back.

The seed is reached by the pod's service account, the garden with the kubeconfig that $GARDEN_KUBECONFIG names.`
	return cmd.ExecuteContext(ctrl.SetupSignalHandler())
}

// setup adds the controllers.
func setup(_ context.Context, mgr manager.Manager) error {
	images, err := imagevector.Load()
	if err != nil {
		return err
	}
	image, err := images.Find("federation")
	if err != nil {
		return err
	}
	scheme := fleetscheme.Scheme()
	err = extension.Add(mgr, extension.Options[*extensionsv1alpha1.Extension]{
		Kind: "Extension", Type: fleet.Type,
		Actuator: &fleet.Actuator{Client: mgr.GetClient(), FleetScheme: scheme, Image: image.String()},
	})
	if err != nil {
		return err
	}
	garden, err := gardenConfig()
	if err != nil {
		return err
	}
	return errors.Join(
		membership.Add(mgr, garden, &membership.Reconciler{FleetScheme: scheme, Now: time.Now}),
		growth.Add(mgr, garden, &growth.Reconciler{FleetScheme: scheme, Now: time.Now}),
	)
}

// gardenConfig follows the token file beside the kubeconfig if there is one, since it is renewed while we run.
func gardenConfig() (*rest.Config, error) {
	config, err := command.GardenConfig()
	if err != nil {
		return nil, err
	}
	if config == nil {
		return nil, errors.New("the garden's kubeconfig is needed to find the shoots of a project: set " +
			command.EnvGardenKubeconfig)
	}
	token := filepath.Join(filepath.Dir(os.Getenv(command.EnvGardenKubeconfig)), "token")
	if _, err := os.Stat(token); err == nil {
		config.BearerTokenFile = token
	}
	return config, nil
}
