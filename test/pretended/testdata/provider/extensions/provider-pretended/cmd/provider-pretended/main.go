// provider-pretended is an extension for a cloud that does not exist.
package main

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-pretended/pkg/infrastructure"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "provider-pretended:", err)
		os.Exit(1)
	}
}

func run() error {
	scheme, err := command.Scheme()
	if err != nil {
		return err
	}
	setup := func(_ context.Context, mgr manager.Manager) error {
		return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Infrastructure]{
			Kind: "Infrastructure", Type: infrastructure.Type, Actuator: infrastructure.Actuator{},
		})
	}
	return command.New("provider-pretended", "Extension for a cloud that does not exist", scheme, setup).
		ExecuteContext(ctrl.SetupSignalHandler())
}
