package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// restarts are how often each container has been started again, by cluster, namespace, pod and container.
type restarts map[string]int32

// countRestarts looks at all pods of the landscapes: those of the seed, where control planes are, and of the shoots.
func countRestarts(ctx context.Context, all []landscape) (restarts, error) {
	counted := restarts{}
	for _, l := range all {
		kubeconfigs, err := l.kubeconfigs(ctx)
		if err != nil {
			return nil, err
		}
		for cluster, kubeconfig := range kubeconfigs {
			if err := counted.add(ctx, l.name+" "+cluster, kubeconfig); err != nil {
				return nil, err
			}
		}
	}
	return counted, nil
}

// shoots with workers are those that `make up` makes.
var shoots = []string{"member1", "member2"}

// kubeconfigs are those of the clusters that have pods, by their names.
func (l landscape) kubeconfigs(ctx context.Context) (map[string]string, error) {
	paths := map[string]string{"runtime": filepath.Join(l.state(), "runtime.kubeconfig")}
	for _, shoot := range shoots {
		c := exec.CommandContext(ctx, "bin/trellisctl", "--config", filepath.Join(l.state(), "trellisctl.yaml"),
			"kubeconfig", "--garden", l.name, "--project", "demo", "--shoot", shoot)
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig of %s in %s: %w", shoot, l.name, err)
		}
		paths[shoot] = filepath.Join(l.state(), "chaos-"+shoot+".kubeconfig")
		if err := os.WriteFile(paths[shoot], out, 0o600); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func (r restarts) add(ctx context.Context, cluster, kubeconfig string) error {
	out, err := exec.CommandContext(ctx, "bin/kubectl", "--kubeconfig", kubeconfig, "get", "pods", "-A", "-o",
		"json").Output()
	if err != nil {
		return fmt.Errorf("listing the pods of %s: %w", cluster, err)
	}
	var pods corev1.PodList
	if err := json.Unmarshal(out, &pods); err != nil {
		return fmt.Errorf("the pods of %s: %w", cluster, err)
	}
	r.addPods(cluster, pods.Items)
	return nil
}

// addPods counts all containers that pods have: sidecars that Kubernetes starts before the others, and ends after them,
// are among the init containers.
func (r restarts) addPods(cluster string, pods []corev1.Pod) {
	for _, pod := range pods {
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			r[strings.Join([]string{cluster, pod.Namespace + "/" + pod.Name, container.Name}, " ")] =
				container.RestartCount
		}
	}
}

// since are the containers that were started again since before, with how often. One of a pod that is new since then
// counts from nothing.
func (r restarts) since(before restarts) []string {
	var again []string
	for _, container := range slices.Sorted(maps.Keys(r)) {
		if count := r[container] - before[container]; count > 0 {
			again = append(again, fmt.Sprintf("%s: %d", container, count))
		}
	}
	return again
}
