package landscape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// until lets a phase run whose patience is a minute, with steps every forty seconds, and returns why its context ended.
func until(t *testing.T, steps ...func(*Progress)) error {
	t.Helper()
	p := &Progress{out: io.Discard, log: io.Discard}
	p.begin("phase")
	ctx, cancel := p.whileProgress(t.Context(), time.Minute)
	defer cancel()
	for _, step := range steps {
		time.Sleep(40 * time.Second)
		step(p)
	}
	time.Sleep(40 * time.Second)
	synctest.Wait()
	p.end(nil)
	return context.Cause(ctx)
}

func TestPhasesGoOnWhileThereIsProgress(t *testing.T) {
	step := func(text string) func(*Progress) { return func(p *Progress) { p.Step("%s", text) } }
	show := func(text string) func(*Progress) { return func(p *Progress) { p.show(text) } }
	type steps []func(*Progress)
	const givenUp = "given up after 1m0s without progress"
	tests := []struct {
		name  string
		steps steps
		want  string
	}{
		{name: "new steps", steps: steps{step("a"), step("b"), step("c")}},
		{name: "the same step", steps: steps{step("a"), step("a")}, want: givenUp + "; the last step: a"},
		{name: "back and forth", steps: steps{step("a"), step("b"), step("a"), step("b")}, want: "the last step: a"},
		{name: "new words, nothing reached", steps: steps{show("try 1"), show("try 2")}, want: "the last step: try 1"},
		{name: "nothing", steps: steps{func(*Progress) {}}, want: givenUp},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := until(t, test.steps...)
				if test.want == "" {
					if err != nil {
						t.Errorf("the phase ended: %v", err)
					}
					return
				}
				var stalled *stalledError
				if !errors.As(err, &stalled) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		})
	}
}

func TestPhasesThatStallSayWhereTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{
			Landscape: &Landscape{Name: "local", Root: "/clone"}, Progress: &Progress{out: io.Discard, log: io.Discard},
		}
		slow := func(ctx context.Context, r *run) error {
			for i := range 3 {
				time.Sleep(50 * time.Second)
				r.Step("part %d", i)
			}
			<-ctx.Done()
			return errors.New("part 2 is not there")
		}
		err := r.runPhase(t.Context(), phase{title: "Seed", patience: time.Minute, run: slow})
		want := "part 2 is not there\n(given up after 1m0s without progress; the last step: part 2)"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	})
}

// A shoot that fails always differently makes no progress.
func TestShootMilestone(t *testing.T) {
	shoot := func(state, description string, progress int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"lastOperation": map[string]any{"state": state, "description": description, "progress": progress},
		}}}
	}
	reached := map[string]bool{}
	for i := range 3 {
		reached[shootMilestone(shoot("Error", fmt.Sprintf("request %d failed", i), 40))] = true
	}
	if len(reached) != 1 {
		t.Errorf("three errors at one place are %d milestones", len(reached))
	}
	if shootMilestone(shoot("Processing", "", 40)) == shootMilestone(shoot("Processing", "", 41)) {
		t.Error("a percent more is no progress")
	}
}

// The browser is got in a phase of its own: without one, its first step has nowhere to be noted.
func TestBrowserIsGotInAPhase(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	err = l.BuildBrowser(ctx, &Progress{out: &out, log: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was ended", err)
	}
	for _, want := range []string{"Browser of the end-to-end tests …", "Debian: browser", "✘ Browser"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%s", want, out.String())
		}
	}
}
