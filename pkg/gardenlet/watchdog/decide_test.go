package watchdog

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		tally Tally
		want  Decision
	}{
		"no nodes":                     {Tally{}, Heard},
		"one that is fresh":            {Tally{Fresh: 1}, Undecided},
		"one that is expired":          {Tally{Expired: 1}, Undecided},
		"one of two":                   {Tally{Fresh: 1, Expired: 1}, Heard},
		"two of three":                 {Tally{Fresh: 1, Expired: 2}, Unheard},
		"three of five":                {Tally{Fresh: 2, Expired: 3}, Unheard},
		"five of nine":                 {Tally{Fresh: 4, Expired: 5}, Heard},
		"all":                          {Tally{Expired: 100}, Unheard},
		"none":                         {Tally{Fresh: 100}, Heard},
		"nothing is known":             {Tally{Open: 3}, Undecided},
		"too little is known to start": {Tally{Fresh: 2, Expired: 1, Open: 2}, Undecided},
		"enough is known to start":     {Tally{Fresh: 3, Expired: 1, Open: 1}, Heard},
		"enough is known to stop":      {Tally{Fresh: 1, Expired: 3, Open: 1}, Unheard},
	} {
		if got := Decide(test.tally); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Whatever is counted: more expired Leases never lead to a start, more fresh ones never to a stop, and what is open
// never to either.
func TestDecideIsMonotonic(t *testing.T) {
	rank := map[Decision]int{Unheard: 0, Undecided: 1, Heard: 2}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		tally := Tally{Fresh: random.IntN(20), Expired: random.IntN(20), Open: random.IntN(20)}
		if tally.Open == 0 || tally.Fresh+tally.Expired+tally.Open == 1 {
			continue
		}
		open := Decide(tally)
		known := tally
		known.Open--
		known.Fresh++
		if got := Decide(known); rank[got] < rank[open] {
			t.Errorf("%+v: %s, but %s when one of the open ones is fresh", tally, open, got)
		}
		known.Fresh--
		known.Expired++
		if got := Decide(known); rank[got] > rank[open] {
			t.Errorf("%+v: %s, but %s when one of the open ones is expired", tally, open, got)
		}
		for _, all := range []Tally{
			{Fresh: tally.Fresh + tally.Open, Expired: tally.Expired},
			{Fresh: tally.Fresh, Expired: tally.Expired + tally.Open},
		} {
			if got := Decide(all); open != Undecided && got != open {
				t.Errorf("%+v: %s, but %s when the open ones are known", tally, open, got)
			}
		}
	}
}

func state(name string, change func(*State)) State {
	s := State{Name: name, Runs: true, Ready: true}
	if change != nil {
		change(&s)
	}
	return s
}

func held(s *State)     { s.Held, s.Runs, s.Ready = true, false, false }
func stopped(s *State)  { s.Runs, s.Ready = false, false }
func starting(s *State) { s.Ready = false }

func TestSteps(t *testing.T) {
	const kcm, mcm, ca = "kube-controller-manager", "machine-controller-manager", "cluster-autoscaler"
	all := func(change func(*State)) []State {
		return []State{state(kcm, change), state(mcm, change), state(ca, change)}
	}
	ignored := func(s *State) { s.Ignored = true }
	for name, test := range map[string]struct {
		decision Decision
		states   []State
		settled  bool
		want     []Step
	}{
		"undecided": {Undecided, all(held), true, nil},
		"the first alone is stopped by an absence": {Away, all(nil), true, []Step{{kcm, true}}},
		"and started after it": {
			Undecided, []State{state(kcm, held), state(mcm, nil), state(ca, nil)}, false, []Step{{kcm, false}},
		},
		"away and ignored":      {Away, all(ignored), true, nil},
		"away without any":      {Away, nil, true, nil},
		"all are stopped":       {Unheard, all(nil), true, []Step{{ca, true}, {mcm, true}, {kcm, true}}},
		"they are held already": {Unheard, all(held), true, nil},
		"what others have stopped is not held": {
			Unheard, []State{state(kcm, nil), state(mcm, nil), state(ca, stopped)}, true,
			[]Step{{mcm, true}, {kcm, true}},
		},
		"the flow has deployed one late": {
			Unheard, []State{state(kcm, func(s *State) { s.Held = true }), state(mcm, held)}, true,
			[]Step{{kcm, true}},
		},
		"ignored":              {Unheard, all(ignored), true, nil},
		"nothing is held":      {Heard, all(nil), true, nil},
		"the first is started": {Heard, all(held), false, []Step{{kcm, false}}},
		"the next when it has settled": {
			Heard, []State{state(kcm, nil), state(mcm, held), state(ca, held)}, true, []Step{{mcm, false}},
		},
		"but not before": {Heard, []State{state(kcm, nil), state(mcm, held), state(ca, held)}, false, nil},
		"nor before it is ready": {
			Heard, []State{state(kcm, starting), state(mcm, held), state(ca, held)}, true, nil,
		},
		"the last": {
			Heard, []State{state(kcm, nil), state(mcm, nil), state(ca, held)}, true, []Step{{ca, false}},
		},
		"the last waits": {
			Heard, []State{state(kcm, nil), state(mcm, starting), state(ca, held)}, true, nil,
		},
		"one that others stopped": {
			Heard, []State{state(kcm, nil), state(mcm, stopped), state(ca, held)}, true, []Step{{ca, false}},
		},
		"one that is ignored": {
			Heard, []State{state(kcm, ignored), state(mcm, held)}, true, []Step{{mcm, false}},
		},
		"held and ignored": {
			Heard, []State{state(kcm, func(s *State) { held(s); s.Ignored = true })}, true, nil,
		},
		"stopped by others is theirs": {Heard, all(stopped), true, nil},
		"without any":                 {Unheard, nil, true, nil},
	} {
		if got := Steps(test.decision, test.states, test.settled); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// Whatever was before: after a stop nothing runs, and repeated starts release all of them in their order, each only
// when those before are ready.
func TestStepsConverge(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		states := make([]State, random.IntN(5))
		for i := range states {
			states[i] = State{
				Name: string(rune('a' + i)), Held: random.IntN(2) == 0, Runs: random.IntN(2) == 0,
				Ready: random.IntN(2) == 0,
			}
		}
		before := slices.Clone(states)
		perform(states, Steps(Unheard, states, random.IntN(2) == 0))
		for _, s := range states {
			if s.Runs {
				t.Fatalf("%+v: %s runs after the stop", before, s.Name)
			}
		}
		for range states {
			steps := Steps(Heard, states, true)
			for _, step := range steps {
				i := slices.IndexFunc(states, func(s State) bool { return s.Name == step.Name })
				if slices.ContainsFunc(states[:i], func(s State) bool { return s.Held || s.Runs && !s.Ready }) {
					t.Fatalf("%+v: %s is started before others are ready", states, step.Name)
				}
			}
			perform(states, steps)
			for i := range states {
				states[i].Ready = states[i].Runs
			}
		}
		if slices.ContainsFunc(states, func(s State) bool { return s.Held }) {
			t.Fatalf("%+v became %+v", before, states)
		}
	}
}

// perform does steps as component.Hold and Release do.
func perform(states []State, steps []Step) {
	for _, step := range steps {
		i := slices.IndexFunc(states, func(s State) bool { return s.Name == step.Name })
		states[i].Held, states[i].Runs, states[i].Ready = step.Hold, !step.Hold, false
	}
}
