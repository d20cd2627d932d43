package paths

import "slices"

// choice decides which of several paths new connections take. It does no input or output and has no clock.
//
// A path lives from its first answer until so many probes in a row have failed. New connections stay with the current
// path as long as it lives, so that one that comes back moves nobody.
type choice struct {
	// failuresToLeave is how many probes in a row must fail before a path counts as dead.
	failuresToLeave int
	paths           []state
	current         int
}

type state struct {
	lives    bool
	failures int
}

func newChoice(paths, failuresToLeave int) choice {
	return choice{failuresToLeave: failuresToLeave, paths: make([]state, paths)}
}

// observe takes the result of a probe.
func (c *choice) observe(path int, answered bool) {
	if answered {
		c.paths[path] = state{lives: true}
	} else if c.paths[path].failures++; c.paths[path].failures >= c.failuresToLeave {
		c.paths[path].lives = false
	}
	if !c.paths[c.current].lives {
		if living := slices.IndexFunc(c.paths, func(s state) bool { return s.lives }); living >= 0 {
			c.current = living
		}
	}
}

// isLeft says whether a path is dead while another lives: then its connections end, as who has them would wait for
// answers in vain. While none lives there is nowhere to go, and connections may outlast that.
func (c *choice) isLeft(path int) bool {
	s := c.paths[path]
	return !s.lives && s.failures >= c.failuresToLeave && c.paths[c.current].lives
}

// order is that in which paths are tried: the current one, then the others that live, then those that may.
func (c *choice) order() []int {
	order := []int{c.current}
	for _, lives := range []bool{true, false} {
		for path, s := range c.paths {
			if path != c.current && s.lives == lives && !c.isLeft(path) {
				order = append(order, path)
			}
		}
	}
	return order
}
