package backup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// onlyAccess leaves out what is none of these keys.
func onlyAccess(data map[string][]byte) map[string][]byte {
	result := map[string][]byte{}
	for key := range (bucket.Access{}).SecretData() {
		if value, found := data[key]; found {
			result[key] = value
		}
	}
	return result
}

// empty deletes all objects of a directory of a bucket.
func empty(ctx context.Context, access map[string][]byte, name, directory string) error {
	s, err := store.NewS3(store.S3Options{
		Endpoint: string(access[bucket.KeyEndpoint]), Region: string(access[bucket.KeyRegion]), Bucket: name,
		PathStyle: true, CA: access[bucket.KeyCA],
		Credentials: func() (store.S3Credentials, error) {
			return store.S3Credentials{
				AccessKeyID:     string(access[bucket.KeyAccessKeyID]),
				SecretAccessKey: string(access[bucket.KeySecretAccessKey]),
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
	address, err := netip.ParseAddrPort(parsed.Host)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of the bucket is %q; the local cloud has one with address and port",
			endpoint)
	}
	return bucket.Way(namespace, address), nil
}
