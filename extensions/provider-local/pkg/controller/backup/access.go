package backup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Keys of a Secret with access to a bucket, as they are published for stores that speak S3.
const (
	keyAccessKeyID     = "accessKeyID"
	keySecretAccessKey = "secretAccessKey"
	keyRegion          = "region"
	keyEndpoint        = "endpoint"
	keyPathStyle       = "s3ForcePathStyle"
	keyCA              = "trustedCaCert"
)

// accessKeys is the content of a Secret with access to a bucket.
func accessKeys(access api.Bucket) map[string][]byte {
	return map[string][]byte{
		keyAccessKeyID: []byte(access.AccessKeyID), keySecretAccessKey: []byte(access.SecretAccessKey),
		keyRegion: []byte(access.Region), keyEndpoint: []byte(access.Endpoint), keyPathStyle: []byte("true"),
		keyCA: []byte(access.CA),
	}
}

// onlyAccess leaves out what is none of these keys.
func onlyAccess(data map[string][]byte) map[string][]byte {
	result := map[string][]byte{}
	for key := range accessKeys(api.Bucket{}) {
		if value, found := data[key]; found {
			result[key] = value
		}
	}
	return result
}

// empty deletes all objects of a directory of a bucket.
func empty(ctx context.Context, access map[string][]byte, bucket, directory string) error {
	s, err := store.NewS3(store.S3Options{
		Endpoint: string(access[keyEndpoint]), Region: string(access[keyRegion]), Bucket: bucket, PathStyle: true,
		CA: access[keyCA],
		Credentials: func() (store.S3Credentials, error) {
			return store.S3Credentials{
				AccessKeyID: string(access[keyAccessKeyID]), SecretAccessKey: string(access[keySecretAccessKey]),
			}, nil
		},
	})
	if err != nil {
		return extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	return emptyStore(ctx, store.Below(s, directory))
}

// emptyStore deletes all objects.
func emptyStore(ctx context.Context, s store.Store) error {
	objects, err := s.List(ctx, "")
	for _, object := range objects {
		err = errors.Join(err, s.Delete(ctx, object.Name))
	}
	if errors.Is(err, store.ErrPermission) {
		return extension.WithCodes(err, gardencorev1beta1.ErrorInfraUnauthorized)
	}
	return err
}

// WayToStore lets etcd out to the store. The local cloud has an address of a node, which pods of control planes do not
// reach otherwise.
func WayToStore(namespace, endpoint string) (*networkingv1.NetworkPolicy, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of the bucket: %w", err)
	}
	address := net.ParseIP(parsed.Hostname())
	port, err := strconv.ParseInt(parsed.Port(), 10, 32)
	if address == nil || err != nil {
		return nil, fmt.Errorf("the endpoint of the bucket is %q; the local cloud has one with address and port",
			endpoint)
	}
	bits := "/128"
	if address.To4() != nil {
		bits = "/32"
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "allow-to-object-store"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
				gardencorev1beta1.LabelNetworkPolicyToBackupStore: gardencorev1beta1.LabelNetworkPolicyAllowed,
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: address.String() + bits}},
				},
				Ports: []networkingv1.NetworkPolicyPort{
					{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(int32(port)))},
				},
			}},
		},
	}, nil
}
