// Package shoot reconciles Shoots: it decides once what a shoot is to be (Plan), and brings it about with a graph of small
// tasks. Each file builds the part of the graph for one concern: foundation, infrastructure, control plane, nodes.
package shoot

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// applyInterval and applyTimeout bound the retries of tasks that write objects.
	applyInterval = 500 * time.Millisecond
	applyTimeout  = 30 * time.Second
	// rolloutTimeout bounds the wait for a part of the control plane.
	rolloutTimeout = 5 * time.Minute
)

// Operation is one run of a flow for one shoot.
type Operation struct {
	Plan   *Plan
	Inputs *Inputs
	// Garden and Seed are clients that read from the API servers.
	Garden client.Client
	Seed   client.WithWatch
	Log    logr.Logger

	// secrets is set by the task that initializes it.
	secrets secrets.Manager
	// infrastructure is set when the infrastructure is ready.
	infrastructure atomic.Pointer[infrastructureState]
}

// infrastructureState is what the control plane and the nodes need to know of the infrastructure.
type infrastructureState struct {
	providerStatus []byte
	// nodes are the networks of the nodes, egress those that traffic leaves from.
	nodes, egress []string
}

// key returns the key of an object in the control plane's namespace.
func (o *Operation) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Plan.Namespace, Name: name}
}

// meta returns the metadata of an object in the control plane's namespace.
func (o *Operation) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Plan.Namespace, Name: name}
}

// nodeNetworks returns the networks of the nodes: what the infrastructure reported, else what the shoot asks for.
func (o *Operation) nodeNetworks() []string {
	if state := o.infrastructure.Load(); state != nil && len(state.nodes) > 0 {
		return state.nodes
	}
	return o.Plan.Networks.Nodes
}

// retried makes a task of a function that writes objects: it is tried again, because API servers restart and objects conflict.
func retried(fn flow.TaskFn) flow.TaskFn { return fn.RetryUntilTimeout(applyInterval, applyTimeout) }

// rollout makes a task of a function that waits for pods.
func rollout(fn flow.TaskFn) flow.TaskFn { return fn.Timeout(rolloutTimeout) }

// shootConfig returns administrative access to the shoot's API server, over the network of the seed. What that answers is bounded: its owner may
// have a server of an own answer in its place.
func shootConfig(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret}
	if err := seed.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the shoot: %w", err)
	}
	config, err := kubeconfig.Contained(secret.Data[secrets.DataKeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the shoot in Secret %s: %w", key, err)
	}
	config.QPS = -1
	config.Timeout = 10 * time.Second
	return answers.FromShoot(config), nil
}
