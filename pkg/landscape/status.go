package landscape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

// statusTimeout bounds each question that status asks.
const statusTimeout = 5 * time.Second

// health is one line of the status table.
type health struct {
	part    string
	healthy bool
	detail  string
}

// ErrUnhealthy is returned by Status when a part is not healthy, after the table was written.
var ErrUnhealthy = errors.New("not everything is healthy")

// Status writes a table of the landscape's parts.
func (l *Landscape) Status(ctx context.Context, out io.Writer) error {
	lines := l.health(ctx)
	table := tabwriter.NewWriter(out, 2, 2, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tHEALTH\tDETAIL")
	healthy := true
	for _, line := range lines {
		word := "ok"
		if !line.healthy {
			word, healthy = "unhealthy", false
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", line.part, word, line.detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !healthy {
		return ErrUnhealthy
	}
	return nil
}

func (l *Landscape) health(ctx context.Context) []health {
	processes, running := node.Running(l.nodeDir(firstNode))
	if !running {
		return []health{{"node", false, "does not run; " + l.make("up") + " starts it"}}
	}
	lines := []health{{"node", true, fmt.Sprintf("supervisor %d, state in %s", processes.Supervisor.PID, l.StateDir())}}
	runtimeLines, ok := l.runtimeHealth(ctx)
	lines = append(lines, runtimeLines...)
	if !ok {
		return lines
	}
	return append(lines, l.gardenHealth(ctx)...)
}

// runtimeHealth looks at the runtime cluster: its API server and the workloads of the landscape's own namespaces.
func (l *Landscape) runtimeHealth(ctx context.Context) (lines []health, ok bool) {
	c, err := connect(l.RuntimeKubeconfig())
	if err != nil {
		return []health{{"runtime cluster", false, err.Error()}}, false
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if reason := nodeMissing(ctx, c.client, nodeName); reason != "" {
		return []health{{"runtime cluster", false, reason}}, false
	}
	lines = append(lines, health{"runtime cluster", true, c.config.Host})
	lines = append(lines, l.otherNodes(ctx, c.client)...)
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
	} {
		lines = append(lines, workloads(ctx, c.client, list)...)
	}
	return lines, true
}

// otherNodes looks at the nodes beside the first.
func (l *Landscape) otherNodes(ctx context.Context, c client.Client) []health {
	s, err := l.state()
	if err != nil {
		return []health{{"nodes", false, err.Error()}}
	}
	var lines []health
	for _, n := range nodesOf(s.nodes())[1:] {
		line := health{part: "node " + n.hostname()}
		if processes, running := node.Running(l.nodeDir(n)); !running {
			line.detail = "does not run; " + l.make("up") + " starts it"
		} else if line.detail = nodeMissing(ctx, c, n.hostname()); line.detail == "" {
			line.healthy, line.detail = true, fmt.Sprintf("supervisor %d, zone %s", processes.Supervisor.PID, n.zone())
		}
		lines = append(lines, line)
	}
	return lines
}

// workloads looks at all workloads that belong to no shoot.
func workloads(ctx context.Context, c client.Client, list client.ObjectList) []health {
	gvk, err := c.GroupVersionKindFor(list)
	if err != nil {
		return []health{{"runtime cluster", false, err.Error()}}
	}
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(gvk)
	if err := c.List(ctx, items); err != nil {
		return []health{{"runtime cluster", false, err.Error()}}
	}
	var lines []health
	for i := range items.Items {
		item := &items.Items[i]
		if strings.HasPrefix(item.GetNamespace(), "shoot--") {
			continue
		}
		lines = append(lines, workloadHealth(item))
	}
	return lines
}

// workloadHealth says whether a workload is ready, and how many of its replicas are where there are to be several.
func workloadHealth(item *unstructured.Unstructured) health {
	line := health{part: item.GetNamespace() + "/" + item.GetName(), detail: helm.Unready(item)}
	if line.healthy = line.detail == ""; line.healthy {
		line.detail = "ready"
	}
	if wanted, _, _ := unstructured.NestedInt64(item.Object, "spec", "replicas"); wanted > 1 {
		ready, _, _ := unstructured.NestedInt64(item.Object, "status", "readyReplicas")
		line.detail += fmt.Sprintf(", %d of %d replicas", ready, wanted)
	}
	return line
}

var (
	seedKind  = gardencorev1beta1.SchemeGroupVersion.WithKind("Seed")
	shootKind = gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot")
)

// gardenHealth looks at the garden's backups, which tell why it may not answer, at seeds and at shoots.
func (l *Landscape) gardenHealth(ctx context.Context) []health {
	c, err := connect(l.GardenKubeconfig())
	if err != nil {
		return []health{{"garden", false, "not there yet; " + l.make("up") + " goes on"}}
	}
	lines := []health{l.gardenBackups(ctx)}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := c.client.Get(ctx, client.ObjectKey{Name: gardenNS}, &corev1.Namespace{}); err != nil {
		return append(lines, health{"garden", false, err.Error()})
	}
	lines = append(lines, health{"garden", true, c.config.Host})
	for _, kind := range []schema.GroupVersionKind{seedKind, shootKind} {
		items := &unstructured.UnstructuredList{}
		items.SetGroupVersionKind(kind)
		if err := c.client.List(ctx, items); err != nil {
			lines = append(lines, health{"garden", false, err.Error()})
			continue
		}
		for i := range items.Items {
			lines = append(lines, objectHealth(&items.Items[i]))
		}
	}
	return lines
}

// objectHealth sums up the conditions and the last operation of a Seed or Shoot.
func objectHealth(object *unstructured.Unstructured) health {
	line := health{part: strings.ToLower(object.GetKind()) + " " + object.GetName(), healthy: true}
	if operation, found, _ := unstructured.NestedMap(object.Object, "status", "lastOperation"); found {
		line.detail = fmt.Sprintf("%v %v, %v%%", operation["type"], operation["state"], operation["progress"])
		line.healthy = operation["state"] == "Succeeded"
	} else if object.GetKind() == shootKind.Kind {
		line.healthy, line.detail = false, "not yet reconciled"
	}
	if unmet := unmetConditions(object); len(unmet) > 0 {
		line.healthy = false
		line.detail = strings.TrimPrefix(line.detail+"; "+strings.Join(unmet, "; "), "; ")
	}
	if line.detail == "" {
		line.detail = "ready"
	}
	return line
}

// unmetConditions are those that are not True, with what they say.
func unmetConditions(object *unstructured.Unstructured) (unmet []string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if c, _ := entry.(map[string]any); c["status"] != "True" {
			unmet = append(unmet, fmt.Sprintf("%v: %v", c["type"], c["message"]))
		}
	}
	return unmet
}

// Exec returns a command that runs inside a node of the landscape; "" is the first one.
func (l *Landscape) Exec(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	s, err := l.state()
	if err != nil {
		return nil, err
	}
	n, err := nodeNamed(name, s.nodes())
	if err != nil {
		return nil, err
	}
	processes, running := node.Running(l.nodeDir(n))
	if !running {
		return nil, fmt.Errorf("%s of landscape %s does not run; start it with %s", n.hostname(), l.Name, l.make("up"))
	}
	return processes.Command(ctx, args...), nil
}
