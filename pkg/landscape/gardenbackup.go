package landscape

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

const (
	// gardenBucket is the bucket of the local cloud that the garden's etcd is backed up to. Those of seeds are named by
	// UIDs. objectPort is where the cloud serves it.
	gardenBucket = "garden"
	objectPort   = 9000
	// backupKeyBytes is the size of the key that the garden's backups are encrypted with.
	backupKeyBytes = 32
	// mostAnswered bounds an answer of the local cloud.
	mostAnswered = 1 << 20
)

// backUpGarden makes what the garden's etcd needs to be backed up: a bucket, the Secret by which etcd gets there, and
// the way there.
func (r *run) backUpGarden(ctx context.Context, c client.Client) error {
	r.Step("bucket of the garden's etcd")
	if err := apply.Objects(ctx, c, apply.Landscape, wayToBuckets()); err != nil {
		return err
	}
	return ensureBackupSecret(ctx, c, func(ctx context.Context) (bucket.Access, error) {
		api, err := r.cloudAPI()
		if err != nil {
			return bucket.Access{}, err
		}
		return api.awaitBucket(ctx, gardenBucket)
	})
}

// ensureBackupSecret writes the Secret by which the garden's etcd gets to its backups, with access to a bucket that is
// made for it. Every seed of the landscape may ask the local cloud for access to any bucket; so the backups are
// encrypted, by a key that only the Secret has.
//
// The Secret is made once, and the bucket with it. Were a bucket that was lost made anew, an etcd that has lost its
// data too would take that for its first start, and gardenlets would find a garden without their shoots. So it waits
// for its bucket, and people decide.
func ensureBackupSecret(ctx context.Context, c client.Client,
	makeBucket func(context.Context) (bucket.Access, error)) error {
	key := client.ObjectKey{Namespace: gardenNS, Name: extensionsv1alpha1.BackupSecretName}
	err := c.Get(ctx, key, &corev1.Secret{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	made, err := makeBucket(ctx)
	if err != nil {
		return fmt.Errorf("making bucket %s for the garden's etcd: %w", gardenBucket, err)
	}
	return writeSecret(ctx, c, key.Namespace, key.Name, backupSecretData(made, newBackupKey()))
}

// newBackupKey is in base64, as etcd-steward takes keys.
func newBackupKey() []byte {
	key := make([]byte, backupKeyBytes)
	// crypto/rand never fails.
	_, _ = rand.Read(key)
	return base64.StdEncoding.AppendEncode(nil, key)
}

// wayToBuckets lets the garden's etcd out to the buckets of the local cloud, which have an address of a node. gardenlet
// restricts what pods of the namespace reach.
func wayToBuckets() *networkingv1.NetworkPolicy {
	return bucket.Way(gardenNS, netip.AddrPortFrom(netip.MustParseAddr(nodeIP), objectPort))
}

// backupSecretData has the keys that etcd-steward reads, as extensions write them for shoots.
func backupSecretData(access bucket.Access, encryptionKey []byte) map[string][]byte {
	data := access.SecretData()
	data[extensionsv1alpha1.BackupSecretBucketName], data["encryptionKey"] = []byte(gardenBucket), encryptionKey
	return data
}

// cloudAPI is the API of the local cloud.
type cloudAPI struct {
	endpoint, token string
	http            *http.Client
}

// cloudAPI connects within the network of the first node, as the host has no other way to the cloud.
func (r *run) cloudAPI() (cloudAPI, error) {
	token, err := r.cloudToken()
	if err != nil {
		return cloudAPI{}, err
	}
	processes, running := node.Running(r.nodeDir(firstNode))
	if !running {
		return cloudAPI{}, fmt.Errorf("the node with the local cloud does not run; %s starts it", r.make("up"))
	}
	return cloudAPI{endpoint: cloudEndpoint, token: string(token), http: &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DialContext: processes.Dial, DisableKeepAlives: true},
	}}, nil
}

// awaitBucket makes a bucket, as soon as the cloud does so. One that is there stays.
func (a cloudAPI) awaitBucket(ctx context.Context, name string) (made bucket.Access, err error) {
	err = await(ctx, func(ctx context.Context) (string, error) {
		status, err := a.put(ctx, "/v1/buckets/"+url.PathEscape(name), &made)
		switch {
		case err == nil:
			return "", nil
		case status/100 == 4:
			return "", err
		}
		return err.Error(), nil
	})
	if err == nil && made.Endpoint == "" {
		err = errors.New("the local cloud has no object store (--object-store)")
	}
	return made, err
}

// put asks for something and reads the answer. The status is 0 if there was none.
func (a cloudAPI) put(ctx context.Context, path string, into any) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, a.endpoint+path, nil)
	if err != nil {
		return 0, fmt.Errorf("local cloud: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("local cloud: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostAnswered))
	switch {
	case err != nil:
		return 0, fmt.Errorf("local cloud: reading the answer: %w", err)
	case response.StatusCode != http.StatusOK:
		return response.StatusCode, fmt.Errorf("local cloud: it answers with %s: %s", response.Status,
			strings.TrimSpace(string(content)))
	}
	if err := json.Unmarshal(content, into); err != nil {
		return response.StatusCode, fmt.Errorf("local cloud: decoding the answer: %w", err)
	}
	return response.StatusCode, nil
}
