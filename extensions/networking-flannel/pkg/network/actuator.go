package network

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/managedresource"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Type is the spec.type this extension is responsible for.
const Type = "flannel"

const resourceName = "extension-networking-flannel"

// Actuator delivers flannel to shoots.
type Actuator struct {
	Client client.Client
	Images imagevector.Vector
}

// Reconcile writes the ManagedResource with flannel for the shoot.
func (a *Actuator) Reconcile(ctx context.Context, _ logr.Logger, network *extensionsv1alpha1.Network,
	shootCluster *cluster.Cluster) error {
	values, err := a.values(network, shootCluster)
	if err != nil {
		return err
	}
	objects, err := Objects(values)
	if err != nil {
		return err
	}
	return managedresource.Apply(ctx, a.Client, network.Namespace, resourceName, managedresource.ClassShoot, objects...)
}

// Delete removes flannel; it returns once the objects are gone from the shoot.
func (a *Actuator) Delete(ctx context.Context, _ logr.Logger, network *extensionsv1alpha1.Network,
	_ *cluster.Cluster) error {
	gone, err := managedresource.Delete(ctx, a.Client, network.Namespace, resourceName)
	if err == nil && !gone {
		return &extension.RequeueAfter{
			After: time.Second, Cause: fmt.Errorf("waiting for ManagedResource %s/%s to be gone", network.Namespace,
				resourceName),
		}
	}
	return err
}

func (a *Actuator) values(network *extensionsv1alpha1.Network, shootCluster *cluster.Cluster) (Values, error) {
	var raw []byte
	if network.Spec.ProviderConfig != nil {
		raw = network.Spec.ProviderConfig.Raw
	}
	config, err := ParseConfig(raw)
	if err != nil {
		return Values{}, extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	host, err := apiServerHost(shootCluster.Shoot)
	if err != nil {
		return Values{}, err
	}
	flannelImage, err := a.Images.Find("flannel")
	if err != nil {
		return Values{}, err
	}
	pluginsImage, err := a.Images.Find("cni-plugins")
	if err != nil {
		return Values{}, err
	}
	return Values{
		Config: config, PodCIDR: network.Spec.PodCIDR, APIServerHost: host, FlannelImage: flannelImage.String(),
		PluginsImage: pluginsImage.String(),
	}, nil
}

// apiServerHost is the host of the first advertised address, external before internal.
func apiServerHost(shoot *gardencorev1beta1.Shoot) (string, error) {
	for _, wanted := range []string{"external", "internal"} {
		for _, address := range shoot.Status.AdvertisedAddresses {
			if address.Name != wanted {
				continue
			}
			parsed, err := url.Parse(address.URL)
			if err != nil {
				return "", fmt.Errorf("status.advertisedAddresses of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
			}
			return parsed.Hostname(), nil
		}
	}
	return "", fmt.Errorf("Shoot %s/%s advertises no address of its API server yet", shoot.Namespace, shoot.Name)
}
