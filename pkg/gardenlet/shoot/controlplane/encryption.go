package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
)

const (
	// annotationEncryptionStage on the Deployment of kube-apiserver tells how far a change of encryption is:
	// "<change> <stage>".
	annotationEncryptionStage = "trellis.garden/encryption-stage"
	// encryptionTimeout bounds a change: large clusters have many objects to write anew.
	encryptionTimeout = time.Hour
)

// deployKubeAPIServer deploys the API server with the stage that a change of encryption has reached.
func (c *ControlPlane) deployKubeAPIServer(ctx context.Context) error {
	stage, err := c.encryptionStage(ctx)
	if err != nil {
		return err
	}
	return c.kubeAPIServerAt(stage).Deploy(ctx)
}

// kubeAPIServerAt is the component at a stage of a change of encryption.
func (c *ControlPlane) kubeAPIServerAt(stage encryption.Stage) kubeapiserver.Interface {
	values := c.Plan.APIServer()
	values.Encryption.Stage = stage
	return kubeapiserver.New(c.Seed, c.Plan.Namespace, c.Secrets, values)
}

// changeEncryption has everything stored in etcd as it is to be, without a moment at which a server meets what it
// cannot read. Stopped at any point, it goes on from the stage that it had noted.
func (c *ControlPlane) changeEncryption(ctx context.Context) error {
	stage, err := c.encryptionStage(ctx)
	if err != nil {
		return err
	}
	record := encryption.Record{Initiated: c.Plan.Rotation.Encryption.Initiated, Stage: stage}
	if !record.UnderWay() {
		return nil
	}
	return encryption.Rotation{
		Load: func(context.Context) (encryption.Record, error) { return record, nil },
		Save: func(ctx context.Context, record encryption.Record) error {
			return c.noteEncryptionStage(ctx, record.Stage)
		},
		Deploy: func(ctx context.Context, record encryption.Record) error {
			if err := c.kubeAPIServerAt(record.Stage).Deploy(ctx); err != nil {
				return err
			}
			return component.WaitUntilRolledOut(ctx, c.Seed,
				&appsv1.Deployment{ObjectMeta: c.Plan.Meta(kubeapiserver.Name)})
		},
		Rewrite: c.rewriteObjects,
		Clock:   clock.RealClock{},
		Until:   c.Plan.Rotation.Encryption.Until(),
	}.Run(ctx)
}

// encryptionStage reads how far this change is.
func (c *ControlPlane) encryptionStage(ctx context.Context) (encryption.Stage, error) {
	change := c.Plan.Rotation.Encryption
	if !change.Changes() {
		return change.Stage(""), nil
	}
	deployment := &appsv1.Deployment{}
	err := c.Seed.Get(ctx, c.Plan.Key(kubeapiserver.Name), deployment)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Deployment %s: %w", c.Plan.Key(kubeapiserver.Name), err)
	}
	return change.Stage(reachedStage(deployment.Annotations[annotationEncryptionStage], c.encryptionChange())), nil
}

// reachedStage returns the stage that an annotation notes for a change; empty when it is about another one.
func reachedStage(annotation, change string) encryption.Stage {
	noted, stage, _ := strings.Cut(annotation, " ")
	if noted != change {
		return ""
	}
	return encryption.Stage(stage)
}

// noteEncryptionStage remembers a stage before anything of it is done.
func (c *ControlPlane) noteEncryptionStage(ctx context.Context, stage encryption.Stage) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		annotationEncryptionStage: c.encryptionChange() + " " + string(stage),
	}}})
	if err != nil {
		return err
	}
	return c.Seed.Patch(ctx, &appsv1.Deployment{ObjectMeta: c.Plan.Meta(kubeapiserver.Name)},
		client.RawPatch(types.MergePatchType, patch))
}

// encryptionChange tells changes apart.
func (c *ControlPlane) encryptionChange() string {
	change := c.Plan.Rotation.Encryption
	hash := sha256.New()
	fmt.Fprintln(hash, change.Initiated.Unix(), change.From, c.Plan.APIServer().Encryption.Scheme())
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// rewriteObjects writes every object anew that is encrypted now, or was before.
func (c *ControlPlane) rewriteObjects(ctx context.Context) error {
	config, err := access.AdminConfig(ctx, c.Seed, c.Plan.Namespace)
	if err != nil {
		return err
	}
	names := slices.Clone(c.Plan.APIServer().Encryption.Scheme().Resources)
	if from := c.Plan.Rotation.Encryption.From; from != nil {
		names = append(names, from.Resources...)
	}
	resources, err := servedResources(config, names)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	count, err := encryption.Rewrite(ctx, objects, resources)
	c.Log.Info("Objects were written anew, encrypted as they are to be", "count", count, "resources", names)
	return err
}

// servedResources finds the versions in which resources are served. What the API server does not know has no objects.
func servedResources(config *rest.Config, names []string) ([]schema.GroupVersionResource, error) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	var resources []schema.GroupVersionResource
	for _, name := range names {
		group := schema.ParseGroupResource(name)
		resource, err := mapper.ResourceFor(group.WithVersion(""))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding resource %s: %w", name, err)
		}
		if !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	return resources, nil
}
