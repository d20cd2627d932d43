// networking-flannel is the extension that gives shoots the pod network flannel.
package main

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/networking-flannel/pkg/network"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "networking-flannel:", err)
		os.Exit(1)
	}
}

func run() error {
	scheme, err := command.Scheme()
	if err != nil {
		return err
	}
	images, err := imagevector.Load()
	if err != nil {
		return err
	}
	setup := func(_ context.Context, mgr manager.Manager) error {
		return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Network]{
			Kind:     "Network",
			Type:     network.Type,
			Actuator: &network.Actuator{Client: mgr.GetClient(), Images: images},
		})
	}
	return command.New("networking-flannel", "Extension that gives shoots the pod network flannel", scheme,
		setup).ExecuteContext(ctrl.SetupSignalHandler())
}
