package environment

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// StartReplica runs one more garden-apiserver, as a process of its own that ends with the environment, and returns its
// URL. Nobody but who asks it directly uses it.
func (e *Environment) StartReplica(ctx context.Context) (string, error) {
	listen, err := freeURL("https")
	if err != nil {
		return "", err
	}
	kubeconfig, err := e.Kubeconfig(gardencorev1beta1.GardenAPIServerUser)
	if err != nil {
		return "", err
	}
	arguments := append(e.gardenAPIServerArguments(listen.Port(), kubeconfig), e.options.GardenAPIServerArguments...)
	process, err := e.startRole(roleGardenAPIServer, arguments)
	if err != nil {
		return "", err
	}
	if err := e.waitAnswer(ctx, listen.String()+"/readyz"); err != nil {
		return "", fmt.Errorf("replica of garden-apiserver: %w%s", err, process.tail())
	}
	return listen.String(), nil
}

// DirectClient returns a client of one garden-apiserver, past the garden's kube-apiserver.
func (e *Environment) DirectClient(server, user string, groups ...string) (client.Client, error) {
	config, err := e.ConfigFor(server, user, groups...)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: apis.GardenScheme()})
}
