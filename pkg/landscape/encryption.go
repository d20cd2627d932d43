package landscape

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// gardenEncryptionKey is the configuration name of garden-apiserver's key for encryption at rest.
	gardenEncryptionKey = "garden-apiserver-etcd-encryption-key"
	// gardenEncryptionSecret is the name that the chart expects.
	gardenEncryptionSecret = "garden-apiserver-encryption"
	// rotationConfigMap remembers in the runtime cluster how far a rotation of the garden's keys has come.
	rotationConfigMap = "encryption-key-rotation"
	rotationTimeout   = 15 * time.Minute
)

// writeGardenEncryption writes the configuration with which garden-apiserver encrypts, and returns a checksum of it.
func writeGardenEncryption(ctx context.Context, c client.Client, manager secrets.Manager,
	stage encryption.Stage) (checksum string, err error) {
	keys, err := encryption.GenerateKeys(ctx, manager, gardenEncryptionKey, stage)
	if err != nil {
		return "", err
	}
	var resources []string
	for _, resource := range registration.EncryptedResources() {
		resources = append(resources, resource.GroupResource().String())
	}
	scheme := encryption.Scheme{Provider: encryption.Secretbox, Resources: resources}
	encoded, err := yaml.Marshal(encryption.Configuration(scheme, scheme, stage, keys))
	if err != nil {
		return "", err
	}
	data := map[string][]byte{"encryption.yaml": encoded}
	return checksumOf(map[string]map[string][]byte{gardenEncryptionSecret: data}),
		writeSecret(ctx, c, gardenNS, gardenEncryptionSecret, data)
}

// RotateEncryptionKeys replaces the keys with which the garden's API servers encrypt what they store, or finishes a
// rotation that was stopped.
func (l *Landscape) RotateEncryptionKeys(ctx context.Context, progress *Progress) error {
	closeLog, err := l.openLog(progress)
	if err != nil {
		return err
	}
	defer closeLog()
	r := &run{Landscape: l, Progress: progress}
	defer r.unlock()
	if err := checkHostPhase(ctx, r); err != nil {
		return err
	}
	return r.runPhase(ctx, phase{
		title: "Rotate the garden's encryption keys", run: rotateGardenKeys, patience: rotationTimeout,
		lookAt: []string{
			fmt.Sprintf("bin/kubectl --kubeconfig %s -n %s get pods,configmap/%s", l.RuntimeKubeconfig(), gardenNS,
				rotationConfigMap),
		},
	})
}

func rotateGardenKeys(ctx context.Context, r *run) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	// manager has made the Secrets of the last deployment, so it knows which ones nothing uses any more.
	var manager secrets.Manager
	return encryption.Rotation{
		Load: func(ctx context.Context) (encryption.Record, error) { return loadRotation(ctx, c.client) },
		Save: func(ctx context.Context, record encryption.Record) error { return saveRotation(ctx, c.client, record) },
		Deploy: func(ctx context.Context, record encryption.Record) (err error) {
			if manager, err = gardenManager(ctx, c.client, record); err != nil {
				return err
			}
			if err := r.deployGarden(ctx, c, manager, record.Stage); err != nil {
				return err
			}
			r.Step("waiting for the last API server of before")
			return awaitRolledOut(ctx, c.client, kubeapiserver.Name, "garden-apiserver")
		},
		Rewrite: r.rewriteGarden,
		Drop:    func(ctx context.Context) error { return manager.Cleanup(ctx) },
		Clock:   clock.RealClock{},
	}.Run(ctx)
}

// rewriteGarden has every encrypted object of the garden written with the newest key.
func (r *run) rewriteGarden(ctx context.Context) error {
	garden, err := r.garden()
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(garden.config)
	if err != nil {
		return err
	}
	r.Step("writing encrypted objects anew")
	resources := append(registration.EncryptedResources(),
		schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	count, err := encryption.Rewrite(ctx, objects, resources)
	r.Step("%d encrypted objects were written anew", count)
	return err
}

// awaitRolledOut waits until nothing but pods of the newest templates serves.
func awaitRolledOut(ctx context.Context, c client.Client, deployments ...string) error {
	for _, name := range deployments {
		if err := component.WaitUntilRolledOut(ctx, c,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

// loadRotation reads how far the last rotation has come.
func loadRotation(ctx context.Context, c client.Client) (encryption.Record, error) {
	configMap := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: gardenNS, Name: rotationConfigMap}, configMap)
	if apierrors.IsNotFound(err) {
		return encryption.Record{}, nil
	}
	if err != nil {
		return encryption.Record{}, err
	}
	seconds, err := strconv.ParseInt(configMap.Data["initiated"], 10, 64)
	if err != nil {
		return encryption.Record{}, fmt.Errorf("ConfigMap %s/%s, data.initiated: %w: must be Unix seconds", gardenNS,
			rotationConfigMap, err)
	}
	return encryption.Record{Initiated: time.Unix(seconds, 0), Stage: encryption.Stage(configMap.Data["stage"])}, nil
}

func saveRotation(ctx context.Context, c client.Client, record encryption.Record) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: rotationConfigMap}}
	_, err := controllerutil.CreateOrPatch(ctx, c, configMap, func() error {
		configMap.Data = map[string]string{
			"initiated": strconv.FormatInt(record.Initiated.Unix(), 10), "stage": string(record.Stage),
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", gardenNS, rotationConfigMap, err)
	}
	return nil
}
