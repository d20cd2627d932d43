package helm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/manifests"
	"github.com/trellis-garden/trellis/pkg/rollout"
)

// readyPoll is how often WaitReady looks.
const readyPoll = 250 * time.Millisecond

// WaitReady waits until the Deployments, StatefulSets, DaemonSets and APIServices of an installed release are ready, or
// the context ends; the error then names what is not.
func (c *Client) WaitReady(ctx context.Context, r *release.Release) error {
	objects, err := manifests.Decode([]byte(r.Manifest))
	if err != nil {
		return fmt.Errorf("release %s/%s: reading its manifest: %w", r.Namespace, r.Name, err)
	}
	var missing []string
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		missing = missing[:0]
		for _, object := range objects {
			if reason := c.notReady(ctx, r.Namespace, object); reason != "" {
				missing = append(missing, reason)
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("release %s/%s is not ready: %s", r.Namespace, r.Name, strings.Join(missing, "; "))
	}
	return nil
}

// notReady says what an object lacks, or nothing.
func (c *Client) notReady(ctx context.Context, namespace string, object *unstructured.Unstructured) string {
	switch object.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet", "APIService":
	default:
		return ""
	}
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(object.GroupVersionKind())
	key := client.ObjectKeyFromObject(object)
	if key.Namespace == "" && object.GetKind() != "APIService" {
		key.Namespace = namespace
	}
	name := object.GetKind() + " " + key.String()
	if err := c.client.Get(ctx, key, current); err != nil {
		if apierrors.IsNotFound(err) {
			return name + " does not exist"
		}
		return name + ": " + err.Error()
	}
	if reason := Unready(current); reason != "" {
		return name + ": " + reason
	}
	return ""
}

// Unready says what a Deployment, StatefulSet, DaemonSet or APIService lacks to be ready, and "" when it is ready or of
// another kind.
func Unready(object *unstructured.Unstructured) string {
	if object.GetKind() == "APIService" {
		reason, err := rollout.APIServiceUnavailable(object)
		if err != nil {
			return err.Error()
		}
		return reason
	}
	state, ok, err := rollout.Of(object)
	if err == nil && ok {
		err = state.Check()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
