// Package flow runs a graph of small named tasks in parallel, in the order their dependencies ask for. A flow is a
// value: it can be compiled, printed and tested without running it. It holds no state between runs: every task must be
// idempotent, and a run that was cut off is simply started again.
package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// TaskID names a task within its graph. It is the task's Name.
type TaskID string

// TaskFn does the work of a task. It must be idempotent and return soon after ctx is done.
type TaskFn func(ctx context.Context) error

// Task is one node of a graph.
type Task struct {
	// Name identifies the task in dependencies, progress, logs and errors; unique in its graph.
	Name string
	// Fn is the work. It may be nil for a task that only gathers dependencies.
	Fn TaskFn
	// SkipIf leaves Fn out. The task still passes on the order: its dependents wait for its dependencies.
	SkipIf bool
	// Dependencies are the tasks that must have succeeded (or been skipped) before this one starts.
	Dependencies []TaskID
}

// Graph collects tasks. The zero value is not usable; see NewGraph.
type Graph struct {
	name  string
	tasks []Task
}

// NewGraph returns an empty graph; name appears in logs and errors.
func NewGraph(name string) *Graph { return &Graph{name: name} }

// Add puts a task into the graph and returns its id, to be used as a dependency of later tasks. Mistakes are reported
// by Compile.
func (g *Graph) Add(task Task) TaskID {
	g.tasks = append(g.tasks, task)
	return TaskID(task.Name)
}

// Last returns the tasks that no other depends on, so far: a task that depends on them comes after all.
func (g *Graph) Last() []TaskID {
	needed := map[TaskID]bool{}
	for _, task := range g.tasks {
		for _, id := range task.Dependencies {
			needed[id] = true
		}
	}
	var last []TaskID
	for _, task := range g.tasks {
		if id := TaskID(task.Name); !needed[id] {
			last = append(last, id)
		}
	}
	return last
}

// Flow is a compiled graph: every dependency exists and there is no cycle. It is immutable and may run many times.
type Flow struct {
	name  string
	order []*node
}

type node struct {
	task       Task
	dependents []*node
}

// Compile checks the graph and returns the flow. It fails for a missing or repeated name, an unknown dependency, and a
// cycle, which it names.
func (g *Graph) Compile() (*Flow, error) {
	nodes, err := g.index()
	if err != nil {
		return nil, err
	}
	if err := g.connect(nodes); err != nil {
		return nil, err
	}
	order, err := g.sort(nodes)
	if err != nil {
		return nil, err
	}
	return &Flow{name: g.name, order: order}, nil
}

func (g *Graph) index() (map[TaskID]*node, error) {
	nodes := make(map[TaskID]*node, len(g.tasks))
	for _, task := range g.tasks {
		id := TaskID(task.Name)
		if id == "" {
			return nil, fmt.Errorf("flow %q: a task has no name", g.name)
		}
		if nodes[id] != nil {
			return nil, fmt.Errorf("flow %q: task %q is added twice", g.name, id)
		}
		task.Dependencies = slices.Compact(slices.Sorted(slices.Values(task.Dependencies)))
		nodes[id] = &node{task: task}
	}
	return nodes, nil
}

func (g *Graph) connect(nodes map[TaskID]*node) error {
	for _, task := range g.tasks {
		n := nodes[TaskID(task.Name)]
		for _, id := range n.task.Dependencies {
			dependency := nodes[id]
			if dependency == nil {
				return fmt.Errorf("flow %q: task %q depends on %q, which is not in the graph", g.name, task.Name, id)
			}
			dependency.dependents = append(dependency.dependents, n)
		}
	}
	return nil
}

// sort returns the nodes in an order in which dependencies come first and which otherwise is the order of adding.
func (g *Graph) sort(nodes map[TaskID]*node) ([]*node, error) {
	const visiting, done = 1, 2
	state := make(map[TaskID]int, len(nodes))
	order := make([]*node, 0, len(nodes))

	var visit func(id TaskID, path []string) error
	visit = func(id TaskID, path []string) error {
		path = append(path, string(id))
		switch state[id] {
		case done:
			return nil
		case visiting:
			return fmt.Errorf("flow %q: cycle %s", g.name, strings.Join(path[slices.Index(path, string(id)):], " -> "))
		}
		state[id] = visiting
		for _, dependency := range nodes[id].task.Dependencies {
			if err := visit(dependency, path); err != nil {
				return err
			}
		}
		state[id] = done
		order = append(order, nodes[id])
		return nil
	}
	for _, task := range g.tasks {
		if err := visit(TaskID(task.Name), nil); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// Name returns the name of the flow.
func (f *Flow) Name() string { return f.name }

// Len returns the number of tasks that are not skipped.
func (f *Flow) Len() int {
	count := 0
	for _, n := range f.order {
		if !n.task.SkipIf {
			count++
		}
	}
	return count
}

// String prints the flow for people: one task a line, dependencies first, skipped tasks marked.
func (f *Flow) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", f.name)
	for _, n := range f.order {
		fmt.Fprintf(&b, "  %s", n.task.Name)
		if n.task.SkipIf {
			b.WriteString(" (skipped)")
		}
		if len(n.task.Dependencies) > 0 {
			dependencies := make([]string, 0, len(n.task.Dependencies))
			for _, id := range n.task.Dependencies {
				dependencies = append(dependencies, string(id))
			}
			fmt.Fprintf(&b, " <- %s", strings.Join(dependencies, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
