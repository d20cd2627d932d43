// Package operationgraph is the form in which gardenlet tells of an operation on a Shoot task by task, in a ConfigMap
// of the project's namespace in the garden, and in which clients read it. Whoever may write that ConfigMap may write
// anything into it, so what is read is checked, and bounded before it is parsed. The package has no client and no
// clock.
package operationgraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// Format is the version of the form. Another one is not read.
	Format = 1
	// MaxSize is how many bytes a graph has at most.
	MaxSize = 64 << 10
	// MaxTasks is how many tasks a graph has at most; those of a shoot's flows are about 60.
	MaxTasks = 256
	// maxName and maxText bound names of tasks and what is told of a task, in bytes.
	maxName, maxText = 128, 400
	// shortText bounds what is told of a task in a graph that would be too large otherwise.
	shortText = 80
)

// State is how far a task is.
type State string

const (
	// Pending tasks wait for others.
	Pending State = "Pending"
	// Running tasks are at work.
	Running State = "Running"
	// Succeeded tasks are done.
	Succeeded State = "Succeeded"
	// Failed tasks keep those that depend on them from beginning.
	Failed State = "Failed"
	// Skipped tasks do nothing in this operation.
	Skipped State = "Skipped"
)

var states = []State{Pending, Running, Succeeded, Failed, Skipped}

// Graph is one try of an operation.
type Graph struct {
	Format int `json:"format"`
	// Type is that of the operation, as in the Shoot's status.lastOperation.
	Type string `json:"type"`
	// Generation is the Shoot's that the try is for, as in status.observedGeneration.
	Generation int64 `json:"generation"`
	// Started and Ended bound the try; Ended is absent while it runs. Times are of whole seconds.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Error is what ended the try outside of its tasks, such as a specification that cannot be planned: then there are
	// no tasks.
	Error string `json:"error,omitempty"`
	// Tasks come after all that they depend on, so a graph has no cycles.
	Tasks []Task `json:"tasks"`
	// Omitted is how many tasks there are that are not told, because they would be too many.
	Omitted int `json:"omitted,omitempty"`
}

// Task is a step of an operation.
type Task struct {
	Name string `json:"name"`
	// After are the tasks that this one depends on, by their places in Tasks, in ascending order.
	After []int `json:"after,omitempty"`
	State State `json:"state"`
	// Started and Ended are absent as long as the task has not begun or ended.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Error is why a task failed, or what one that runs waits for.
	Error string `json:"error,omitempty"`
}

// Stages are the places of the tasks by how many tasks at most come before them, one after another: all that a task
// depends on is in earlier stages.
func (g *Graph) Stages() [][]int {
	depths := make([]int, len(g.Tasks))
	var stages [][]int
	for i, task := range g.Tasks {
		for _, earlier := range task.After {
			depths[i] = max(depths[i], depths[earlier]+1)
		}
		if depths[i] == len(stages) {
			stages = append(stages, nil)
		}
		stages[depths[i]] = append(stages[depths[i]], i)
	}
	return stages
}

// Encode writes a graph so that Decode reads it. Texts are shortened, and tasks left out, where it would be too large.
func Encode(g Graph) (string, error) {
	g.Format = Format
	for _, limit := range []int{maxText, shortText, 0} {
		data, err := json.Marshal(g.cleaned(limit))
		if err != nil {
			return "", fmt.Errorf("writing the graph of an operation: %w", err)
		}
		if _, err := Decode(string(data)); err == nil {
			return string(data), nil
		}
	}
	g.Omitted += len(g.Tasks)
	g.Tasks = nil
	data, err := json.Marshal(g.cleaned(maxText))
	if err != nil {
		return "", fmt.Errorf("writing the graph of an operation: %w", err)
	}
	return string(data), nil
}

// cleaned is the graph with texts of one line and bounded length, and times of whole seconds.
func (g Graph) cleaned(limit int) *Graph {
	g.Type, g.Error = oneLine(g.Type, maxName), oneLine(g.Error, maxText)
	g.Started, g.Ended = whole(g.Started), whole(g.Ended)
	g.Tasks = append([]Task{}, g.Tasks...)
	for i := range g.Tasks {
		task := &g.Tasks[i]
		task.Name, task.Error = oneLine(task.Name, maxName), oneLine(task.Error, limit)
		task.Started, task.Ended = whole(task.Started), whole(task.Ended)
		task.After = slices.Compact(slices.Sorted(slices.Values(task.After)))
	}
	return &g
}

func whole(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// more stands where a text was cut off.
const more = "…"

// oneLine is the first line of a text that has something in it, without control characters, and cut off at a length.
func oneLine(text string, limit int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "?")), "\n")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	end := limit - len(more)
	if end <= 0 {
		return ""
	}
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// Decode reads a graph that anybody may have written. Errors say what is wrong with it.
func Decode(text string) (*Graph, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("it has %d bytes, and may have %d at most", len(text), MaxSize)
	}
	g := &Graph{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil, fmt.Errorf("it is not the JSON of a graph: %s", oneLine(err.Error(), maxText))
	}
	if g.Format != Format {
		return nil, fmt.Errorf("it has format %d, and this version knows format %d only", g.Format, Format)
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	return g, nil
}

// check tells what is wrong with a graph.
func (g *Graph) check() error {
	switch {
	case len(g.Tasks) > MaxTasks:
		return fmt.Errorf("it has %d tasks, and may have %d at most", len(g.Tasks), MaxTasks)
	case !isLine(g.Type, maxName) || !isLine(g.Error, maxText):
		return errors.New("its type or error is longer than it may be, or not one line")
	case g.Started.IsZero():
		return errors.New("it does not say when it began")
	case !areTimes(g.Started, g.Ended):
		return errors.New("it has a time that none of its tasks can have had")
	case g.Omitted < 0:
		return errors.New("it leaves out fewer tasks than none")
	}
	names := make(map[string]bool, len(g.Tasks))
	for i := range g.Tasks {
		task := &g.Tasks[i]
		if names[task.Name] {
			return fmt.Errorf("two of its tasks are called %q", task.Name)
		}
		names[task.Name] = true
		if err := task.check(i); err != nil {
			return fmt.Errorf("task %d of it: %w", i, err)
		}
	}
	return nil
}

func (t *Task) check(place int) error {
	switch {
	case t.Name == "" || !isLine(t.Name, maxName):
		return errors.New("it has no name, or one that is longer than it may be, or not one line")
	case !isLine(t.Error, maxText):
		return errors.New("its error is longer than it may be, or not one line")
	case !areTimes(t.Started, t.Ended):
		return errors.New("it has a time that it cannot have had")
	case !slices.Contains(states, t.State):
		return fmt.Errorf("its state %q is unknown", oneLine(string(t.State), maxName))
	}
	before := -1
	for _, earlier := range t.After {
		if earlier <= before || earlier >= place {
			return fmt.Errorf("it comes after %d, which is not the place of an earlier task, or out of order", earlier)
		}
		before = earlier
	}
	return nil
}

// areTimes tells whether times are absent or can be written again.
func areTimes(times ...time.Time) bool {
	return !slices.ContainsFunc(times, func(t time.Time) bool {
		year := t.UTC().Year()
		return !t.IsZero() && (year < 1970 || year > 9999)
	})
}

func isLine(text string, limit int) bool {
	return len(text) <= limit && !strings.ContainsFunc(text, unicode.IsControl)
}
