package operationgraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func example() Graph {
	return Graph{
		Type: "Reconcile", Generation: 3, Started: noon, Tasks: []Task{
			{Name: "Deploying namespace", State: Succeeded, Started: noon, Ended: noon.Add(time.Second)},
			{Name: "Deploying etcd", After: []int{0}, State: Running, Started: noon.Add(time.Second), Error: "0 of 1"},
			{Name: "Deploying secrets", After: []int{0}, State: Skipped},
			{Name: "Deploying kube-apiserver", After: []int{1, 2}, State: Pending},
			{Name: "Looking at it", State: Failed, Started: noon, Ended: noon, Error: "no"},
		},
	}
}

func encoded(t *testing.T, g Graph) string {
	t.Helper()
	text, err := Encode(g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decoded(t *testing.T, text string) *Graph {
	t.Helper()
	g, err := Decode(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return g
}

func TestGraphsAreReadAsWritten(t *testing.T) {
	want := example()
	want.Format = Format
	if got := decoded(t, encoded(t, example())); !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

// The form is a contract: docs/contracts/control-plane.md.
func TestForm(t *testing.T) {
	g := example()
	g.Started, g.Tasks = noon.Add(time.Millisecond), g.Tasks[:2]
	want := `{"format":1,"type":"Reconcile","generation":3,"started":"2026-01-01T12:00:00Z","tasks":[` +
		`{"name":"Deploying namespace","state":"Succeeded","started":"2026-01-01T12:00:00Z",` +
		`"ended":"2026-01-01T12:00:01Z"},` +
		`{"name":"Deploying etcd","after":[0],"state":"Running","started":"2026-01-01T12:00:01Z","error":"0 of 1"}]}`
	if got := encoded(t, g); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestStages(t *testing.T) {
	g := example()
	want := [][]int{{0, 4}, {1, 2}, {3}}
	if got := g.Stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (&Graph{}).Stages(); got != nil {
		t.Errorf("stages of no tasks: %v", got)
	}
}

// Whatever fails, a graph is one that is read: errors are shortened at first, tasks left out at last.
func TestGraphsAreBounded(t *testing.T) {
	large := func(tasks, text int) Graph {
		g := Graph{Type: "Create", Started: noon}
		for i := range tasks {
			g.Tasks = append(g.Tasks, Task{
				Name: fmt.Sprintf("Task %d", i), State: Failed, Error: strings.Repeat("é", text),
			})
		}
		return g
	}
	for _, test := range []struct {
		tasks, text    int
		left, shortest int
	}{
		{60, 10_000, 60, maxText - 4}, {200, 10_000, 200, shortText - 4}, {MaxTasks, 10, MaxTasks, 20},
		{MaxTasks + 1, 10, 0, 0},
	} {
		text := encoded(t, large(test.tasks, test.text))
		g := decoded(t, text)
		if len(text) > MaxSize || len(g.Tasks) != test.left || g.Omitted != test.tasks-test.left {
			t.Errorf("%d tasks with %d characters: %d bytes, %d tasks, %d omitted", test.tasks, test.text, len(text),
				len(g.Tasks), g.Omitted)
		}
		for _, task := range g.Tasks {
			if len(task.Error) < test.shortest || len(task.Error) > maxText || !utf8.ValidString(task.Error) {
				t.Fatalf("%d tasks with %d characters: an error has %d bytes: %s", test.tasks, test.text,
					len(task.Error), task.Error)
			}
		}
	}
}

func TestAttackGraphs(t *testing.T) {
	broken := func(change func(*Graph)) string {
		g := example()
		g.Format = Format
		change(&g)
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, test := range map[string]struct{ text, want string }{
		"none":            {"", "not the JSON of a graph"},
		"another kind":    {"[]", "not the JSON of a graph"},
		"rubbish":         {"{\x00", "not the JSON of a graph"},
		"huge":            {`{"format":1,"type":"` + strings.Repeat("x", MaxSize) + `"}`, "bytes, and may have 65536"},
		"deep":            {strings.Repeat(`{"tasks":[`, 6000), "not the JSON of a graph"},
		"of tomorrow":     {broken(func(g *Graph) { g.Format = 2 }), "format 2, and this version knows format 1 only"},
		"without a begin": {broken(func(g *Graph) { g.Started = time.Time{} }), "when it began"},
		"before time":     {broken(func(g *Graph) { g.Started = noon.AddDate(-1000, 0, 0) }), "a time that none"},
		"a late task":     {broken(func(g *Graph) { g.Tasks[0].Ended = noon.AddDate(-1000, 0, 0) }), "it has a time"},
		"a long type":     {broken(func(g *Graph) { g.Type = strings.Repeat("x", 200) }), "its type or error"},
		"lines":           {broken(func(g *Graph) { g.Error = "a\nb" }), "its type or error"},
		"too few":         {broken(func(g *Graph) { g.Omitted = -1 }), "fewer tasks than none"},
		"many tasks": {
			`{"format":1,"started":"2026-01-01T12:00:00Z","tasks":[` + strings.Repeat("{},", 300) + "{}]}", "301 tasks",
		},
		"names twice":   {broken(func(g *Graph) { g.Tasks[1].Name = g.Tasks[0].Name }), "two of its tasks"},
		"no name":       {broken(func(g *Graph) { g.Tasks[1].Name = "" }), "task 1 of it: it has no name"},
		"a terminal":    {broken(func(g *Graph) { g.Tasks[1].Name = "\x1b[2J" }), "task 1 of it: it has no name"},
		"a cycle":       {broken(func(g *Graph) { g.Tasks[0].After = []int{3} }), "task 0 of it: it comes after 3"},
		"after itself":  {broken(func(g *Graph) { g.Tasks[1].After = []int{1} }), "it comes after 1"},
		"after nothing": {broken(func(g *Graph) { g.Tasks[1].After = []int{-1} }), "it comes after -1"},
		"after twice":   {broken(func(g *Graph) { g.Tasks[1].After = []int{0, 0} }), "it comes after 0"},
		"a state":       {broken(func(g *Graph) { g.Tasks[1].State = "Dancing" }), `its state "Dancing" is unknown`},
		"a long error":  {broken(func(g *Graph) { g.Tasks[1].Error = strings.Repeat("x", 500) }), "its error"},
	} {
		if _, err := Decode(test.text); err == nil || !strings.Contains(err.Error(), test.want) ||
			len(err.Error()) > 2*maxText {
			t.Errorf("%s: %v, want one with %q", name, err, test.want)
		}
	}
}

// FuzzDecode: whatever is read without an error can be used, and is written as it was read.
func FuzzDecode(f *testing.F) {
	text, err := Encode(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"format":1,"started":"2026-01-01T12:00:00Z","tasks":null}`)
	f.Add(`{"format":1,"started":"9999-12-31T23:59:59-01:00","tasks":null}`)
	f.Add(`{"format":1,"started":"0001-01-01T00:00:00-23:59","tasks":[{"name":" \ud800","state":"Failed"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Decode(text)
		if err != nil {
			return
		}
		placed := 0
		for _, stage := range g.Stages() {
			placed += len(stage)
		}
		if placed != len(g.Tasks) {
			t.Errorf("%d of %d tasks are in a stage", placed, len(g.Tasks))
		}
		again, err := Encode(*g)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again); err != nil {
			t.Errorf("what was read is not read again: %v\n%s", err, again)
		}
	})
}

func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"0 of 1 replicas are ready":                              "0 of 1 replicas are ready",
		"panic: nil\ngoroutine 1":                                "panic: nil",
		`secrets "cloudprovider" not found`:                      "secrets (name hidden) not found",
		"Secret shoot--demo--one/ca-4f2: no certificate":         "Secret (name hidden) no certificate",
		"InternalSecret garden-demo/one.ca-client of the garden": "InternalSecret (name hidden) of the garden",
		"the Secret is missing":                                  "the Secret is missing",
		"password: hunter2 is wrong":                             "password: [redacted]",
		"bearer abcdefghijklmnop":                                "bearer [redacted]",
		"\x1b[31mred":                                            "[31mred",
	} {
		if got := Reason(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Reason(errors.New(strings.Repeat("x ", 2500))); len(got) != maxText || !strings.HasSuffix(got, more) {
		t.Errorf("a long one has %d bytes", len(got))
	}
	if got := Reason(nil); got != "" {
		t.Errorf("of no error: %q", got)
	}
}

func shoot() *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one", UID: "u1"}}
}

func TestReading(t *testing.T) {
	good := ConfigMap(shoot())
	good.Data = map[string]string{DataKey: encoded(t, example())}
	if good.Name != "one.operation" {
		t.Errorf("it is called %s", good.Name)
	}
	if g, err := Read(good, shoot()); err != nil || len(g.Tasks) != 5 {
		t.Errorf("got %+v, %v", g, err)
	}
	for name, test := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   error
	}{
		"without labels":   {func(c *corev1.ConfigMap) { c.Labels = nil }, ErrForeign},
		"without an owner": {func(c *corev1.ConfigMap) { c.OwnerReferences = nil }, ErrForeign},
		"of another shoot": {
			func(c *corev1.ConfigMap) { c.Labels[gardencorev1beta1.LabelShootName] = "two" }, ErrForeign,
		},
		"of an earlier": {func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "u0" }, ErrEarlier},
	} {
		configMap := good.DeepCopy()
		test.change(configMap)
		if _, err := Read(configMap, shoot()); !errors.Is(err, test.want) ||
			!strings.Contains(err.Error(), "ConfigMap garden-demo/one.operation: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name of a shoot is a label of DNS, so that of the ConfigMap is never too long, and says which shoot it is of.
func TestNamesOfConfigMaps(t *testing.T) {
	longest := strings.Repeat("x", 63)
	if name := Name(longest); len(name) > 253 {
		t.Errorf("%d characters", len(name))
	}
}

// TestAttackStaleGraphs: the graph of one try is never taken for that of another.
func TestAttackStaleGraphs(t *testing.T) {
	task, other := "Looking at it", "Deploying etcd"
	of := func(tasks ...*string) (failures []gardencorev1beta1.LastError) {
		for _, id := range tasks {
			failures = append(failures, gardencorev1beta1.LastError{TaskID: id})
		}
		return failures
	}
	begun := func(change func(*Graph)) Graph {
		g := example()
		change(&g)
		return g
	}
	ended := func(g *Graph) { g.Ended = noon.Add(time.Minute) }
	last := func(state gardencorev1beta1.LastOperationState, after time.Duration) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{
			Type: "Reconcile", State: state, LastUpdateTime: metav1.NewTime(noon.Add(after)),
		}
	}
	for name, test := range map[string]struct {
		graph  Graph
		last   *gardencorev1beta1.LastOperation
		errors []gardencorev1beta1.LastError
		want   bool
	}{
		"no operation yet":              {example(), nil, nil, false},
		"it runs":                       {example(), last("Processing", 5*time.Second), nil, true},
		"it has ended just now":         {begun(ended), last("Processing", 55*time.Second), nil, true},
		"the next one has begun":        {begun(ended), last("Processing", 61*time.Second), nil, false},
		"its end was not told":          {example(), last("Succeeded", time.Minute), nil, false},
		"it failed":                     {begun(ended), last("Error", time.Minute), of(&task), true},
		"it failed for good":            {begun(ended), last("Failed", time.Minute), of(&task), true},
		"another task failed":           {begun(ended), last("Error", time.Minute), of(&other), false},
		"two failed":                    {begun(ended), last("Error", time.Minute), of(&task, &other), false},
		"the next could not be planned": {begun(ended), last("Error", 2*time.Minute), of(nil), false},
		"one that succeeded, and the next could not be planned": {begun(func(g *Graph) {
			ended(g)
			g.Tasks = g.Tasks[:1]
		}), last("Error", 2*time.Minute), of(nil), false},
		"it could not be planned": {begun(func(g *Graph) {
			ended(g)
			g.Tasks, g.Error = nil, "no region"
		}), last("Error", time.Minute), of(nil), true},
		"it succeeded": {begun(func(g *Graph) {
			ended(g)
			g.Tasks = g.Tasks[:1]
		}), last("Succeeded", time.Minute), nil, true},
		"one that failed, and the next succeeded": {begun(ended), last("Succeeded", 2*time.Minute), nil, false},
		"too many tasks failed": {begun(func(g *Graph) {
			ended(g)
			g.Tasks, g.Omitted = nil, 300
		}), last("Error", time.Minute), of(&task), true},
		"of another generation": {
			begun(func(g *Graph) { g.Generation++ }), last("Processing", 5*time.Second), nil, false,
		},
		"of another type": {
			begun(func(g *Graph) { g.Type = "Create" }), last("Processing", 5*time.Second), nil, false,
		},
		"a state of tomorrow": {example(), last("Dancing", 5*time.Second), nil, false},
	} {
		status := &gardencorev1beta1.ShootStatus{
			ObservedGeneration: 3, LastOperation: test.last, LastErrors: test.errors,
		}
		if got := test.graph.IsPresent(status); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
