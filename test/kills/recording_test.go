package kills

import (
	"context"
	"fmt"
	"sync"

	"github.com/trellis-garden/trellis/pkg/flow"
)

// moment is a state in which gardenlet may end: what is left is what the API servers hold then, whatever the process
// was about to do.
type moment struct {
	state state
	// points are where an operation was at that moment, such as "before Deploying namespace". In the same state, it
	// does not matter at which of them gardenlet ends.
	points []string
	// always: a task begins or has just done its work, or something was written outside of all tasks.
	always bool
}

// recording has all moments of an operation that nobody disturbs.
type recording struct {
	world *world

	lock    sync.Mutex
	moments []*moment
	// tasks are those that ran, writes how many of each task and of what is around them there were.
	tasks  []string
	writes map[string]int
}

func (r *recording) observer() observer { return observer{wrap: r.wrap, wrote: r.wrote} }

type taskKey struct{}

// wrap notes the moments before and after a task.
func (r *recording) wrap(id flow.TaskID, fn flow.TaskFn) flow.TaskFn {
	return func(ctx context.Context) error {
		r.begin(string(id))
		err := fn(context.WithValue(ctx, taskKey{}, string(id)))
		if err == nil {
			r.note("after "+string(id), true)
		}
		return err
	}
}

func (r *recording) begin(task string) {
	r.lock.Lock()
	r.tasks = append(r.tasks, task)
	r.lock.Unlock()
	r.note("before "+task, true)
}

// wrote notes the moment after a write.
func (r *recording) wrote(ctx context.Context) {
	task, inTask := ctx.Value(taskKey{}).(string)
	if !inTask {
		task = "the operation as a whole"
	}
	r.lock.Lock()
	if r.writes == nil {
		r.writes = map[string]int{}
	}
	r.writes[task]++
	count := r.writes[task]
	r.lock.Unlock()
	r.note(fmt.Sprintf("after write %d of %s", count, task), !inTask)
}

// note remembers the state at a point, unless it is the one before.
func (r *recording) note(point string, always bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := r.world.state()
	if last := len(r.moments) - 1; last < 0 || r.moments[last].state.versions() != now.versions() {
		r.moments = append(r.moments, &moment{state: now})
	}
	last := r.moments[len(r.moments)-1]
	last.points = append(last.points, point)
	last.always = last.always || always
}
