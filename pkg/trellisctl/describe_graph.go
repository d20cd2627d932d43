package trellisctl

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

// describeShootOperation tells the last operation on a shoot by the stages of its graph, where gardenlet has told it,
// else by what the Shoot's status knows.
func (s *Session) describeShootOperation(ctx context.Context, out io.Writer, shoot *gardencorev1beta1.Shoot,
	now time.Time) error {
	last, failures := shoot.Status.LastOperation, shoot.Status.LastErrors
	if last == nil {
		return nil
	}
	graph, err := s.presentGraph(ctx, shoot)
	if graph == nil || len(graph.Tasks) == 0 {
		if told := describeOperation(out, last, failures, now); told != nil || err == nil {
			return told
		}
		_, told := fmt.Fprintf(out, "\nThe graph of the operation is not shown: %s\n", oneLine(err.Error()))
		return told
	}
	operationLine(out, last, now)
	if err := describeStages(out, graph); err != nil {
		return err
	}
	describeTasks(out, graph, "Awaited", operationgraph.Running, now)
	describeTasks(out, graph, "Failed", operationgraph.Failed, now)
	describeErrors(out, failures, now)
	return nil
}

// presentGraph reads the graph of the present operation; nil if there is none. An error says why it cannot be shown.
func (s *Session) presentGraph(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*operationgraph.Graph, error) {
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: operationgraph.Name(shoot.Name)}
	err := s.client.Get(ctx, key, configMap)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read ConfigMap %s", key)
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	graph, err := operationgraph.Read(configMap, shoot)
	if err != nil || !graph.IsPresent(&shoot.Status) {
		return nil, err
	}
	return graph, nil
}

// describeStages counts the tasks of each stage by their states.
func describeStages(out io.Writer, graph *operationgraph.Graph) error {
	fmt.Fprintln(out)
	t := newTable(out, "STAGE", "TASKS", "DONE", "RUNNING", "FAILED")
	for i, stage := range graph.Stages() {
		counts := map[operationgraph.State]int{}
		for _, place := range stage {
			counts[graph.Tasks[place].State]++
		}
		// What is skipped is not asked for in this operation.
		if tasks := len(stage) - counts[operationgraph.Skipped]; tasks > 0 {
			t.row(fmt.Sprint(i+1), fmt.Sprint(tasks), countText(counts[operationgraph.Succeeded]),
				countText(counts[operationgraph.Running]), countText(counts[operationgraph.Failed]))
		}
	}
	return t.Flush()
}

// countText leaves out what is zero, so that the eye finds the rest.
func countText(count int) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprint(count)
}

// describeTasks tells the tasks of a state, how long they take, and why they are not done.
func describeTasks(out io.Writer, graph *operationgraph.Graph, title string, state operationgraph.State,
	now time.Time) {
	first := true
	for _, task := range graph.Tasks {
		if task.State != state {
			continue
		}
		if first {
			fmt.Fprintf(out, "\n%s:\n", title)
			first = false
		}
		fmt.Fprintf(out, "  %s%s\n", oneLine(task.Name), tookText(&task, now))
		if task.Error != "" {
			fmt.Fprintf(out, "    %s\n", oneLine(task.Error))
		}
	}
}

// tookText is how long a task has been running, or took.
func tookText(task *operationgraph.Task, now time.Time) string {
	switch {
	case task.Started.IsZero():
		return ""
	case task.Ended.IsZero():
		return " (for " + duration.HumanDuration(max(0, now.Sub(task.Started))) + ")"
	}
	return " (after " + duration.HumanDuration(max(0, task.Ended.Sub(task.Started))) + ")"
}
