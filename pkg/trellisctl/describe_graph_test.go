package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

// graphOf is a graph of the operation on a shoot, as gardenlet writes it.
func graphOf(t *testing.T, shoot *gardencorev1beta1.Shoot, tasks ...operationgraph.Task) *corev1.ConfigMap {
	t.Helper()
	text, err := operationgraph.Encode(operationgraph.Graph{
		Type: string(shoot.Status.LastOperation.Type), Generation: shoot.Status.ObservedGeneration,
		Started: today.Add(-10 * time.Minute), Tasks: tasks,
	})
	if err != nil {
		t.Fatal(err)
	}
	configMap := operationgraph.ConfigMap(shoot)
	configMap.Data = map[string]string{operationgraph.DataKey: text}
	return configMap
}

func underWay() []operationgraph.Task {
	minutesAgo := func(minutes time.Duration) time.Time { return today.Add(-minutes * time.Minute) }
	return []operationgraph.Task{
		{
			Name: "Deploying namespace", State: operationgraph.Succeeded, Started: minutesAgo(10), Ended: minutesAgo(9),
		},
		{Name: "Deploying nothing", State: operationgraph.Skipped},
		{
			Name: "Deploying infrastructure", After: []int{0}, State: operationgraph.Failed, Started: minutesAgo(9),
			Ended: minutesAgo(7), Error: "refused",
		},
		{
			Name: "Waiting until etcd is ready", After: []int{0}, State: operationgraph.Running, Started: minutesAgo(3),
			Error: "waiting for StatefulSet shoot--demo--one/etcd-main: 0 of 1",
		},
		{Name: "Left out", After: []int{2, 3}, State: operationgraph.Skipped},
		{Name: "Deploying kube-apiserver", After: []int{4}, State: operationgraph.Pending},
	}
}

// operationOf is what is told of the operation on a shoot, as it is printed.
func operationOf(t *testing.T, shoot *gardencorev1beta1.Shoot, functions interceptor.Funcs,
	objects ...client.Object) string {
	t.Helper()
	var out bytes.Buffer
	s := session(t, Target{Shoot: shoot.Name}, functions, objects...)
	if err := s.describeShootOperation(t.Context(), &out, shoot, today); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStagesOfAnOperation(t *testing.T) {
	want := `
Operation: Reconcile Processing (40%), 5s ago

STAGE   TASKS   DONE   RUNNING   FAILED
1       1       1      -         -
2       2       -      1         1
4       1       -      -         -

Awaited:
  Waiting until etcd is ready (for 3m)
    waiting for StatefulSet shoot--demo--one/etcd-main: 0 of 1

Failed:
  Deploying infrastructure (after 2m)
    refused

Errors:
  task "Deploying infrastructure" failed: refused (60m ago)
    ERR_INFRA_UNAUTHORIZED: ` + codeMeaning(gardencorev1beta1.ErrorInfraUnauthorized) + `
    ERR_OF_TOMORROW: not known to this version of trellisctl
`
	if got := operationOf(t, working(), interceptor.Funcs{}, graphOf(t, working(), underWay()...)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Where there is no graph of the present operation, the status tells what it knows.
func TestOperationsWithoutAGraph(t *testing.T) {
	plain := operationOf(t, working(), interceptor.Funcs{})
	if !strings.Contains(plain, "running") || strings.Contains(plain, "STAGE") || strings.Contains(plain, "graph") {
		t.Errorf("without a ConfigMap:\n%s", plain)
	}
	before := graphOf(t, working(), underWay()...)
	before.Data[operationgraph.DataKey] = strings.Replace(before.Data[operationgraph.DataKey], `"generation":2`,
		`"generation":1`, 1)
	if got := operationOf(t, working(), interceptor.Funcs{}, before); got != plain {
		t.Errorf("with the graph of the try before:\n%s\nwant\n%s", got, plain)
	}
	none := working()
	none.Status.LastOperation = nil
	if got := operationOf(t, none, interceptor.Funcs{}); got != "" {
		t.Errorf("without an operation:\n%s", got)
	}
}

// TestAttackGraphsOnTerminals: whoever may write the ConfigMap writes what is no graph, or what a terminal would obey.
// The rest is told, and what is wrong.
func TestAttackGraphsOnTerminals(t *testing.T) {
	plain := operationOf(t, working(), interceptor.Funcs{})
	hostile := func(text string) *corev1.ConfigMap {
		configMap := graphOf(t, working())
		configMap.Data[operationgraph.DataKey] = text
		return configMap
	}
	foreign := graphOf(t, working(), underWay()...)
	foreign.Labels = nil
	for name, test := range map[string]struct {
		object *corev1.ConfigMap
		want   string
	}{
		"huge":      {hostile(strings.Repeat("x", 1<<20)), "it has 1048576 bytes, and may have 65536 at most"},
		"malformed": {hostile(`{"format":1,"tasks":[{"after":`), "it is not the JSON of a graph"},
		"a terminal": {
			hostile(strings.Replace(graphOf(t, working(), underWay()...).Data[operationgraph.DataKey],
				"Left out", `\u001b[2J`, 1)), "task 4 of it: it has no name",
		},
		"a user's own": {foreign, "it is not gardenlet's, but somebody else's"},
	} {
		got := operationOf(t, working(), interceptor.Funcs{}, test.object)
		if !strings.HasPrefix(got, plain) || !strings.Contains(got,
			"\nThe graph of the operation is not shown: ConfigMap garden-demo/one.operation: "+test.want) ||
			len(got) > len(plain)+1000 || slices.Contains([]byte(got), '\x1b') {
			t.Errorf("%s:\n%.2000s", name, got)
		}
	}
	forbids := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, options ...client.GetOption) error {
		if _, ok := object.(*corev1.ConfigMap); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
		}
		return c.Get(ctx, key, object, options...)
	}}
	if got := operationOf(t, working(), forbids); !strings.Contains(got,
		"not shown: you may not read ConfigMap garden-demo/one.operation") {
		t.Errorf("to who may not read it:\n%s", got)
	}
}
