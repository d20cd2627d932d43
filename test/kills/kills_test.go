// Package kills ends gardenlet at every task of every flow, and within tasks after their writes, and has it begin
// again from nothing but what the API servers hold. The operation must come to the same end as one that nobody
// disturbed. The API servers and all who answer there are fakes, so that hundreds of kills take a minute.
package kills

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// variableAll has gardenlet ended after every write, and not only after some within the tasks.
	variableAll = "TRELLIS_KILL_EVERY_WRITE"
	// variableSeed chooses the writes: a failure names the seed.
	variableSeed = "TRELLIS_KILL_SEED"
	// sampled is how many of the writes within the tasks of an operation are chosen.
	sampled = 8
)

// goldenFlows are the graphs of all flows, one task a line.
const goldenFlows = "../../pkg/gardenlet/shoot/testdata/flow-*.txt"

func TestEveryTaskIsKilled(t *testing.T) {
	server()
	choice := newChoice(t)
	ends, killed := map[string]state{}, map[string]bool{}
	for _, s := range scenarios {
		recorded, end := undisturbed(t, s, ends[s.after])
		ends[s.name] = end
		for _, task := range recorded.tasks {
			killed[task] = true
		}
		moments := choice.of(recorded)
		t.Logf("%s: %d tasks, gardenlet is ended in %d of %d states", s.name, len(recorded.tasks), len(moments),
			len(recorded.moments))
		want := canonical(t, end)
		t.Run(s.name, func(t *testing.T) {
			for _, m := range moments {
				t.Run(m.points[0], func(t *testing.T) {
					t.Parallel()
					goesOn(t, m, want)
				})
			}
		})
	}
	for _, task := range tasksOfFlows(t) {
		if !killed[task] {
			t.Errorf("task %q is in a flow, and no scenario runs it: add one to scenarios", task)
		}
	}
}

// undisturbed runs an operation to its end, and records the states on its way.
func undisturbed(t *testing.T, s scenario, begin state) (*recording, state) {
	t.Helper()
	recorded := &recording{}
	end, err := inWorld(t, begin, func(ctx context.Context, w *world) error {
		if err := s.begin(ctx, w); err != nil {
			return err
		}
		recorded.world = w
		recorded.note("before the operation", false)
		return operate(ctx, w, recorded.observer())
	})
	if err != nil {
		t.Fatalf("%s, which nobody disturbs: %v", s.name, err)
	}
	return recorded, end
}

// goesOn begins a gardenlet in a state that another one left, and compares the end of the operation with what it is to
// be.
func goesOn(t *testing.T, m *moment, want map[string][]string) {
	end, err := inWorld(t, m.state, func(ctx context.Context, w *world) error { return operate(ctx, w, observer{}) })
	if err != nil {
		t.Fatalf("ended %s: %v", strings.Join(m.points, ", "), err)
	}
	if got := canonical(t, end); !maps.EqualFunc(want, got, slices.Equal) {
		t.Errorf("ended %s: the end differs (-undisturbed +ended):\n%s", strings.Join(m.points, ", "),
			cmp.Diff(readable(t, want), readable(t, got)))
	}
}

// choice says in which states gardenlet is ended.
type choice struct {
	all    bool
	random *rand.Rand
}

func newChoice(t *testing.T) choice {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv(variableSeed); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("%s: %v", variableSeed, err)
		}
	}
	t.Logf("%s=%d", variableSeed, seed)
	return choice{all: os.Getenv(variableAll) != "", random: rand.New(rand.NewPCG(seed, 0))}
}

// of chooses all states between tasks and around them, and some of those within.
func (c choice) of(r *recording) []*moment {
	if c.all {
		return r.moments
	}
	var chosen, others []*moment
	for _, m := range r.moments {
		if m.always {
			chosen = append(chosen, m)
		} else {
			others = append(others, m)
		}
	}
	c.random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append(chosen, others[:min(sampled, len(others))]...)
}

// tasksOfFlows are the tasks of all graphs that are not skipped there.
func tasksOfFlows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(goldenFlows)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files %s: %v", len(files), goldenFlows, err)
	}
	var tasks []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			task, found := strings.CutPrefix(line, "  ")
			task, _, _ = strings.Cut(strings.TrimSpace(task), " <- ")
			if found && !strings.HasSuffix(task, " (skipped)") {
				tasks = append(tasks, task)
			}
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}
