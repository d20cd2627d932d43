// Package bucket is how a cloud tells of an S3 bucket that etcds are backed up to, and what they need to get there: a
// Secret and a way. The landscape asks for one for the garden's etcd, and an extension for those of shoots.
package bucket

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Access is how a bucket is reached by S3, as the cloud writes it in JSON. All is empty where the cloud has no object
// store.
type Access struct {
	// Endpoint is a URL; the bucket is in the path of requests, not in the name of the host.
	Endpoint string `json:"endpoint,omitempty"`
	// Region that requests are signed for.
	Region string `json:"region,omitempty"`
	// AccessKeyID and SecretAccessKey are of a user who gets to this bucket only.
	AccessKeyID     string `json:"accessKeyID,omitempty"`
	SecretAccessKey string `json:"secretAccessKey,omitempty"`
	// CA is the authority of the endpoint's certificate, in PEM.
	CA string `json:"ca,omitempty"`
}

// Keys of a Secret with access to a bucket, as they are published for stores that speak S3.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeyRegion          = "region"
	KeyEndpoint        = "endpoint"
	KeyPathStyle       = "s3ForcePathStyle"
	KeyCA              = "trustedCaCert"
)

// SecretData is the content of a Secret by which etcd-steward gets to the bucket; its name goes beside.
func (a Access) SecretData() map[string][]byte {
	return map[string][]byte{
		KeyAccessKeyID: []byte(a.AccessKeyID), KeySecretAccessKey: []byte(a.SecretAccessKey),
		KeyRegion: []byte(a.Region), KeyEndpoint: []byte(a.Endpoint), KeyPathStyle: []byte("true"),
		KeyCA: []byte(a.CA),
	}
}

// Way lets etcds of a namespace out to a store, which they do not reach otherwise where it has an address of a node.
func Way(namespace string, store netip.AddrPort) *networkingv1.NetworkPolicy {
	address := store.Addr().Unmap()
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "allow-to-object-store"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
				gardencorev1beta1.LabelNetworkPolicyToBackupStore: gardencorev1beta1.LabelNetworkPolicyAllowed,
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{
					CIDR: netip.PrefixFrom(address, address.BitLen()).String(),
				}}},
				Ports: []networkingv1.NetworkPolicyPort{
					{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(int32(store.Port())))},
				},
			}},
		},
	}
}
