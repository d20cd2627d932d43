package csrapprover

import "time"

// knownFor is how long an answer is believed. It bounds what any number of requests costs: one question of a kind, or
// one for each name that exists, in that time.
const knownFor = 250 * time.Millisecond

// recent holds answers to questions about things by name, errors too. It is for one goroutine.
type recent[T any] struct {
	since   time.Time
	answers map[string]answer[T]
}

type answer[T any] struct {
	value T
	err   error
}

// get asks unless the answer is known. All are forgotten at a time.
func (r *recent[T]) get(name string, ask func() (T, error)) (T, error) {
	if r.answers == nil || time.Since(r.since) >= knownFor {
		r.answers, r.since = map[string]answer[T]{}, time.Now()
	}
	known, asked := r.answers[name]
	if !asked {
		known.value, known.err = ask()
		r.answers[name] = known
	}
	return known.value, known.err
}
