package landscape

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/manifests"
)

// poll is how often conditions are looked at.
const poll = 250 * time.Millisecond

// cluster is a connection to one API server.
type cluster struct {
	config *rest.Config
	client client.Client
	helm   *helm.Client
}

// clusters keeps the connections of a run.
type clusters struct{ runtime, garden *cluster }

// connect opens a connection by a kubeconfig file.
func connect(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 100, 200
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	h, err := helm.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &cluster{config: config, client: c, helm: h}, nil
}

// runtime returns the connection to the runtime cluster.
func (r *run) runtime() (*cluster, error) {
	if r.clusters.runtime == nil {
		c, err := connect(r.RuntimeKubeconfig())
		if err != nil {
			return nil, err
		}
		r.clusters.runtime = c
	}
	return r.clusters.runtime, nil
}

// garden returns the connection to the garden.
func (r *run) garden() (*cluster, error) {
	if r.clusters.garden == nil {
		c, err := connect(r.GardenKubeconfig())
		if err != nil {
			return nil, err
		}
		r.clusters.garden = c
	}
	return r.clusters.garden, nil
}

// applyYAML applies the objects of a YAML text by server-side apply and returns them.
func (c *cluster) applyYAML(ctx context.Context, text string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := c.apply(ctx, object); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (c *cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	return apply.Unstructured(ctx, c.client, apply.Landscape, object)
}

// applyPatiently tries again for as long as the API server has not yet heard of what it needs: a kind that is just
// being served, a namespace that a controller makes, a webhook or aggregated API that starts.
func (c *cluster) applyPatiently(ctx context.Context, object *unstructured.Unstructured) error {
	return await(ctx, func(ctx context.Context) (string, error) {
		if err := c.apply(ctx, object.DeepCopy()); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
}

// get reads an object of any kind.
func (c *cluster) get(ctx context.Context, gvk schema.GroupVersionKind,
	namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	return object, nil
}

// await polls until missing returns "", and returns what was missing last when the context ends. An error ends it at
// once.
func await(ctx context.Context, missing func(context.Context) (string, error)) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	last := "nothing was tried"
	for {
		what, err := missing(ctx)
		if err != nil || what == "" {
			return err
		}
		if ctx.Err() == nil {
			last = what
		}
		select {
		case <-ctx.Done():
			return errors.New(last)
		case <-ticker.C:
		}
	}
}

// awaitReady waits until workloads are ready, and reports what it waits for.
func (r *run) awaitReady(ctx context.Context, c *cluster, objects []*unstructured.Unstructured) error {
	return await(ctx, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, object := range objects {
			current, err := c.get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			reason := ""
			switch {
			case err != nil && !meta.IsNoMatchError(err):
				reason = err.Error()
			case err == nil:
				reason = helm.Unready(current)
			}
			if reason != "" {
				waiting = append(waiting, apply.Describe(c.client.Scheme(), object)+": "+reason)
			}
		}
		if len(waiting) > 0 {
			r.reached(fmt.Sprintf("%d of %d ready", len(objects)-len(waiting), len(objects)))
			r.show("waiting for " + waiting[0])
		}
		return strings.Join(waiting, "; "), nil
	})
}

// condition returns the status and message of a condition of an object's status.
func condition(object *unstructured.Unstructured, kind string) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if c["type"] == kind {
			status, _ = c["status"].(string)
			message, _ = c["message"].(string)
			return status, message
		}
	}
	return "", "no condition " + kind + " yet"
}
