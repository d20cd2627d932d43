package watchdog

import "slices"

// expiredShare is the share of expired Leases, in percent, from which on it is not the nodes that are broken.
const expiredShare = 60

// Tally counts the Leases of a shoot's nodes.
type Tally struct {
	// Fresh were renewed lately. Expired were not, although they could have been. Of Open ones that is not known yet.
	Fresh, Expired, Open int
}

// Decision is what follows from the Leases of a shoot's nodes, or from nobody telling them.
type Decision string

// The decisions.
const (
	// Undecided leaves everything as it is.
	Undecided Decision = "Undecided"
	// Unheard: most nodes do not reach the API server.
	Unheard Decision = "Unheard"
	// Heard: most nodes reach it, or there are none.
	Heard Decision = "Heard"
	// Away: no API server is there. When it is back, the first controller would take all nodes for broken before it
	// hears of them, as it has not heard of them for long. One that starts then gives them all the time that they have.
	// The others wait by themselves.
	Away Decision = "Away"
)

// Decide judges by the share of expired Leases. One node alone decides nothing: when it is broken, it looks the same as
// when the way to it is.
func Decide(t Tally) Decision {
	all := t.Fresh + t.Expired + t.Open
	switch {
	case all == 0:
		return Heard
	case all == 1:
		return Undecided
	case 100*t.Expired >= expiredShare*all:
		return Unheard
	case 100*(t.Expired+t.Open) >= expiredShare*all:
		return Undecided
	}
	return Heard
}

// State is how one of the controllers is that judge nodes.
type State struct {
	Name string
	// Held says that the watchdog has stopped it, Runs that it is to have pods, Ready that one of them is ready.
	Held, Runs, Ready bool
	// Ignored says that it is to be left alone.
	Ignored bool
}

// Step is what to do with one of the controllers: to hold it, or to release it.
type Step struct {
	Name string
	Hold bool
}

// Steps returns what to do now, given the controllers in the order in which they are started. All are stopped at once,
// in the other order. They are started one by one: the next when those before are ready, and all but the first when
// that has settled. If the first alone is stopped, that was because the API server was away, and it is started as soon
// as that answers.
func Steps(decision Decision, controllers []State, settled bool) []Step {
	switch decision {
	case Unheard:
		return stops(controllers)
	case Heard:
		return starts(controllers, settled)
	case Away:
		return stops(controllers[:min(1, len(controllers))])
	case Undecided:
		if isFirstAloneHeld(controllers) {
			return starts(controllers, settled)
		}
	}
	return nil
}

func isFirstAloneHeld(controllers []State) bool {
	return len(controllers) > 0 && controllers[0].Held &&
		!slices.ContainsFunc(controllers[1:], func(s State) bool { return s.Held })
}

func stops(controllers []State) []Step {
	var steps []Step
	for _, c := range slices.Backward(controllers) {
		if c.Runs && !c.Ignored {
			steps = append(steps, Step{c.Name, true})
		}
	}
	return steps
}

func starts(controllers []State, settled bool) []Step {
	for i, c := range controllers {
		switch {
		case c.Ignored:
		case c.Held && (i == 0 || settled):
			return []Step{{c.Name, false}}
		case c.Held, c.Runs && !c.Ready:
			return nil
		}
	}
	return nil
}
