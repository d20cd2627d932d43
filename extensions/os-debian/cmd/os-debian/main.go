// os-debian is the extension that configures machines with Debian.
package main

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/os-debian/pkg/operatingsystemconfig"
	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "os-debian:", err)
		os.Exit(1)
	}
}

func run() error {
	scheme, err := command.Scheme()
	if err != nil {
		return err
	}
	setup := func(_ context.Context, mgr manager.Manager) error {
		return extension.Add(mgr, extension.Options[*extensionsv1alpha1.OperatingSystemConfig]{
			Kind:     "OperatingSystemConfig",
			Type:     operatingsystemconfig.Type,
			Actuator: &operatingsystemconfig.Actuator{Client: mgr.GetClient()},
		})
	}
	return command.New("os-debian", "Extension that turns OperatingSystemConfigs of type debian into user data", scheme,
		setup).ExecuteContext(ctrl.SetupSignalHandler())
}
