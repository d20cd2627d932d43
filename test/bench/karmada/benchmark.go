package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"

	"github.com/trellis-garden/trellis/pkg/federation/karmada"

	ours "github.com/trellis-garden/trellis/pkg/federation/core"
)

const (
	// patience is how much CPU time a cell of the peer may take, with everything around it.
	patience = 20 * time.Second
	// waiting is how long it may take on a machine that has other things to do.
	waiting = 5 * time.Minute
	// batches are measured of each cell; the median counts.
	batches = 11
	// batch is about how long one of them takes, if a decision doesn't take longer.
	batch = 5 * time.Millisecond
	// longest is how long a cell is measured at most, once it has been measured three times.
	longest = 300 * time.Millisecond
	// cellCommand measures one cell of the peer in a process of its own: nothing ends its search but the end of the
	// process.
	cellCommand = "cell"
	// mostMemory is what that process may have.
	mostMemory = 8 << 30
)

// figure is the cost of one decision: CPU time of the process, with its garbage collection, which other load of the
// machine doesn't count into.
type figure struct {
	Nanoseconds float64 `json:"ns"`
	Allocations float64 `json:"allocs"`
}

// row is a measured cell. Ours and Schedule are what one decision takes as shipped: with the translation of the
// binding, and with the snapshot that the peer takes for each. Core and Algorithm are the algorithm alone. Without the
// peer's figures, GaveUp says why.
type row struct {
	cell
	Ours      figure `json:"ours"`
	Core      figure `json:"core"`
	Schedule  figure `json:"schedule"`
	Algorithm figure `json:"algorithm"`
	GaveUp    string `json:"gaveUp,omitempty"`
	// Result tells how the decisions relate, in the words of the differences.
	Result class `json:"result,omitempty"`
}

// peerFigures is what the process of a cell prints.
type peerFigures struct {
	Schedule  figure `json:"schedule"`
	Algorithm figure `json:"algorithm"`
	Result    class  `json:"result"`
}

// benchmark measures all cells and writes rows, one JSON object per line.
func benchmark(out io.Writer) error {
	encoder := json.NewEncoder(out)
	for _, c := range cells() {
		r, err := measureCell(c)
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func measureCell(c cell) (row, error) {
	r := row{cell: c}
	prepared, err := c.prepared()
	if err != nil {
		return r, err
	}
	if err := measureOurs(prepared, &r); err != nil {
		return r, err
	}
	figures, err := peerProcess(c)
	switch {
	case errors.Is(err, errImpatient):
		r.GaveUp = fmt.Sprintf("> %.0f s", patience.Seconds())
	case err != nil:
		return r, err
	default:
		r.Schedule, r.Algorithm, r.Result = figures.Schedule, figures.Algorithm, figures.Result
	}
	return r, nil
}

func measureOurs(c testCase, r *row) error {
	snapshot, err := snapshotOf(c.clusters)
	if err != nil {
		return err
	}
	spec, status, err := bindingOf(c.spec, c.status)
	if err != nil {
		return err
	}
	binding, err := karmada.Binding(spec, status)
	if err != nil {
		return err
	}
	if d := ours.Decide(snapshot, binding); d.Failure != nil {
		return d.Failure
	}
	r.Core = measure(func() { ours.Decide(snapshot, binding) })
	r.Ours = measure(func() {
		translated, err := karmada.Binding(spec, status)
		if err != nil {
			panic(err)
		}
		ours.Decide(snapshot, translated)
	})
	return nil
}

// errImpatient: the peer took more CPU time or memory than a cell may have.
var errImpatient = errors.New("the peer took too long")

// peerProcess measures the peer in another process, which is ended when it takes too long or too much.
func peerProcess(c cell) (peerFigures, error) {
	var figures peerFigures
	self, err := os.Executable()
	if err != nil {
		return figures, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waiting)
	defer cancel()
	command := exec.CommandContext(ctx, self, cellCommand, strconv.Itoa(c.Clusters), string(c.Division), c.Spread)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return figures, fmt.Errorf("not done after %s: the machine is too busy to measure anything", waiting)
	case outOfTime(command.ProcessState), bytes.Contains(problems.Bytes(), []byte("out of memory")):
		return figures, errImpatient
	case err != nil:
		return figures, fmt.Errorf("%w: %.500s", err, problems.String())
	}
	return figures, json.Unmarshal(out.Bytes(), &figures)
}

// outOfTime: the kernel ended the process at its limit of CPU time.
func outOfTime(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL)
}

// measurePeerCell is the other process: CLUSTERS DIVISION SPREAD.
func measurePeerCell(args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("a cell is CLUSTERS DIVISION SPREAD")
	}
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory}); err != nil {
		return fmt.Errorf("limiting memory: %w", err)
	}
	seconds := uint64(patience.Seconds())
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return fmt.Errorf("limiting CPU time: %w", err)
	}
	c, err := cell{Clusters: size, Division: division(args[1]), Spread: args[2]}.prepared()
	if err != nil {
		return err
	}
	figures, err := measurePeer(c)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(figures)
}

func measurePeer(c testCase) (peerFigures, error) {
	var figures peerFigures
	p, err := newPeer(c.clusters)
	if err != nil {
		return figures, err
	}
	if figures.Result, _, err = compareCase(c); err != nil {
		return figures, err
	}
	options := &core.ScheduleAlgorithmOption{}
	var failed error
	figures.Schedule = measure(func() {
		if _, err := p.algorithm.Schedule(context.Background(), c.spec, c.status, options); err != nil {
			failed = err
		}
	})
	if failed != nil {
		return figures, failed
	}
	scores := make(framework.ClusterScoreList, len(c.clusters))
	for i := range c.clusters {
		scores[i] = framework.ClusterScore{Cluster: c.clusters[i]}
	}
	figures.Algorithm = measure(func() { failed = errors.Join(failed, selectAndAssign(scores, c.spec, c.status)) })
	return figures, failed
}

// selectAndAssign is the peer's algorithm without snapshot, filters and scores.
func selectAndAssign(scores framework.ClusterScoreList, spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus) error {
	selected, err := core.SelectClusters(scores, spec.Placement, spec)
	if err != nil {
		return err
	}
	_, err = core.AssignReplicas(selected, spec, status)
	return err
}

// measure gives the median over batches. What takes long is measured less often, three times at least.
func measure(do func()) figure {
	started := cpuTime()
	do()
	once := max(cpuTime()-started, time.Microsecond)
	n := max(1, int(batch/once))
	for range min(n, 50) {
		do()
	}
	var times, allocations []float64
	for began := cpuTime(); len(times) < batches && (len(times) < 3 || cpuTime()-began < longest); {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		started := cpuTime()
		for range n {
			do()
		}
		took := cpuTime() - started
		runtime.ReadMemStats(&after)
		times = append(times, float64(took.Nanoseconds())/float64(n))
		allocations = append(allocations, float64(after.Mallocs-before.Mallocs)/float64(n))
	}
	return figure{Nanoseconds: median(times), Allocations: median(allocations)}
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
