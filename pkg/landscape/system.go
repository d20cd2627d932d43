package landscape

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// runtimePhase waits until the first node is Ready and its control plane answers, and has others join it.
func runtimePhase(ctx context.Context, r *run) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	r.Step("waiting for kube-apiserver")
	if err := awaitAPI(ctx, c.config); err != nil {
		return err
	}
	if err := r.prepareRuntime(r.state, true); err != nil {
		return err
	}
	if err := r.joinNodes(ctx, c); err != nil {
		return err
	}
	r.Step("waiting for kube-controller-manager")
	return await(ctx, func(ctx context.Context) (string, error) {
		return controllersMissing(ctx, c.client), nil
	})
}

// awaitAPI waits until an API server says that it is ready.
func awaitAPI(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = 3 * time.Second
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return await(ctx, func(ctx context.Context) (string, error) {
		return readyz(ctx, httpClient, config.Host), nil
	})
}

// readyz says why an API server is not ready, or "".
func readyz(ctx context.Context, httpClient *http.Client, host string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return fmt.Sprintf("%s does not answer: %v", host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s is not ready: %s", host, response.Status)
	}
	return ""
}

// nodeMissing says what a node of the runtime cluster lacks, or "".
func nodeMissing(ctx context.Context, c client.Client, name string) string {
	found := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
		return err.Error()
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return ""
			}
			return "node is not ready: " + condition.Message
		}
	}
	return "node has not reported yet"
}

// controllersMissing says what the cluster's controllers have not done yet. (Their pods are no measure: kubelet may
// show a static pod a minute after it runs.)
func controllersMissing(ctx context.Context, c client.Client) string {
	account := &corev1.ServiceAccount{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, account); err != nil {
		return "kube-controller-manager: " + err.Error()
	}
	return ""
}

// systemPhase installs what every pod of the runtime cluster relies on.
func systemPhase(ctx context.Context, r *run) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	values, err := r.runtimeValues(firstNode)
	if err != nil {
		return err
	}
	values.Several = r.state.nodes() > 1
	// No pod with one of them starts before they are there.
	classes := slices.Concat(component.SeedPriorityClasses(), component.GardenPriorityClasses())
	if err := component.Apply(ctx, c.client, classes...); err != nil {
		return err
	}
	text, err := render("system/coredns.yaml", values)
	if err != nil {
		return err
	}
	objects, err := c.applyYAML(ctx, text)
	if err != nil {
		return err
	}
	return r.awaitReady(ctx, c, objects)
}

// prepullImages fetches the largest image that shoots need while the garden starts.
func prepullImages(ctx context.Context, r *run) {
	image, err := r.image("machine-debian")
	if err != nil {
		fmt.Fprintf(r, "not fetching images ahead: %v\n", err)
		return
	}
	processes, running := node.Running(r.nodeDir(firstNode))
	if !running {
		return
	}
	_, err = processes.Run(ctx, "ctr", "--namespace", "k8s.io", "images", "pull", "--hosts-dir",
		"/etc/containerd/certs.d", image)
	fmt.Fprintf(r, "fetched %s ahead: %v\n", image, err)
}
