package trellisctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// table writes columns that line up.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
	t.row(header...)
	return t
}

func (t table) row(cells ...string) {
	for i, text := range cells {
		cells[i] = cellText(text)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// cellText is what stands in a column: one line, and a dash for nothing.
func cellText(text string) string { return orElse(oneLine(text), "-") }

func age(created metav1.Time, now time.Time) string {
	return duration.HumanDuration(now.Sub(created.Time))
}

// nodes is how many machines a shoot has, or why it has none now.
func nodes(shoot *gardencorev1beta1.Shoot) string {
	if state := wakefulness(shoot); state != "awake" {
		return state
	}
	return nodeRange(shoot)
}

// nodeRange is "2" or "1-3": the fewest and most machines of all pools; "fleet" and the like have none.
func nodeRange(shoot *gardencorev1beta1.Shoot) string {
	var minimum, maximum int32
	for _, worker := range shoot.Spec.Provider.Workers {
		minimum += worker.Minimum
		maximum += worker.Maximum
	}
	switch {
	case len(shoot.Spec.Provider.Workers) == 0:
		return "none"
	case minimum == maximum:
		return fmt.Sprint(minimum)
	}
	return fmt.Sprintf("%d-%d", minimum, maximum)
}

func lastOperation(operation *gardencorev1beta1.LastOperation) string {
	if operation == nil {
		return "waiting"
	}
	return fmt.Sprintf("%s %s (%d%%)", operation.Type, operation.State, operation.Progress)
}

// Show prints the pods of the shoot's control plane as the seed sees them.
func (s *Session) Show(ctx context.Context, out io.Writer, now time.Time) error {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := s.controlPlaneKubeconfig(ctx, shoot)
	if err != nil {
		return err
	}
	seed, err := clientFor(kubeconfig)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := seed.List(ctx, pods, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
		return fmt.Errorf("listing pods of %s in seed %s: %w", shoot.Status.TechnicalID, deref(shoot.Spec.SeedName),
			err)
	}
	printLine(out, "Shoot %s/%s: %s, %s on seed %s, namespace %s", shoot.Namespace, shoot.Name,
		wakefulness(shoot), lastOperation(shoot.Status.LastOperation), deref(shoot.Spec.SeedName),
		shoot.Status.TechnicalID)
	fmt.Fprintln(out)
	t := newTable(out, "POD", "READY", "STATUS", "RESTARTS", "AGE")
	for i := range pods.Items {
		pod := &pods.Items[i]
		ready, restarts := 0, int32(0)
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
			if status.Ready {
				ready++
			}
		}
		t.row(pod.Name, fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), podState(pod), fmt.Sprint(restarts),
			age(pod.CreationTimestamp, now))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return showConditions(out, shoot)
}

func podState(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			return status.State.Waiting.Reason
		}
	}
	return string(pod.Status.Phase)
}

func showConditions(out io.Writer, shoot *gardencorev1beta1.Shoot) error {
	if len(shoot.Status.Conditions) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "CONDITION", "STATUS", "REASON", "MESSAGE")
	for _, condition := range shoot.Status.Conditions {
		t.row(string(condition.Type), string(condition.Status), condition.Reason, condition.Message)
	}
	return t.Flush()
}

func clientFor(kubeconfig *clientcmdapi.Config) (client.Client, error) {
	restConfig, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(restConfig, client.Options{})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
