package kubeconfig

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// apiServerAddresses names the advertised addresses that lead to a kube-apiserver.
var apiServerAddresses = map[string]bool{
	gardencorev1beta1.AdvertisedAddressExternal:             true,
	gardencorev1beta1.AdvertisedAddressInternal:             true,
	gardencorev1beta1.AdvertisedAddressUnmanaged:            true,
	gardencorev1beta1.AdvertisedAddressWildcardTLSSeedBound: true,
}

// APIServerAddresses returns the shoot's advertised addresses at which its kube-apiserver answers, in order.
func APIServerAddresses(shoot *gardencorev1beta1.Shoot) []gardencorev1beta1.ShootAdvertisedAddress {
	var addresses []gardencorev1beta1.ShootAdvertisedAddress
	for _, address := range shoot.Status.AdvertisedAddresses {
		if apiServerAddresses[address.Name] {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// render writes a kubeconfig with one cluster and context per address; the first is current. Names are
// <namespace>--<shoot>-<address name> and, for the user, <namespace>--<shoot>.
func render(shoot *gardencorev1beta1.Shoot, addresses []gardencorev1beta1.ShootAdvertisedAddress,
	clusterCA, certificatePEM, keyPEM []byte) ([]byte, error) {
	user := fmt.Sprintf("%s--%s", shoot.Namespace, shoot.Name)
	config := &clientcmdv1.Config{
		Kind:       "Config",
		APIVersion: "v1",
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: user, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: certificatePEM,
			ClientKeyData:         keyPEM,
		}}},
	}
	for _, address := range addresses {
		name := user + "-" + address.Name
		cluster := clientcmdv1.Cluster{Server: address.URL}
		// The wildcard address is served with a certificate of a public CA.
		if address.Name != gardencorev1beta1.AdvertisedAddressWildcardTLSSeedBound {
			cluster.CertificateAuthorityData = clusterCA
		}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: name, Cluster: cluster})
		config.Contexts = append(config.Contexts,
			clientcmdv1.NamedContext{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: user}})
	}
	config.CurrentContext = config.Contexts[0].Name
	return runtime.Encode(clientcmdlatest.Codec, config)
}
