package clusterautoscaler

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// Expanders choose the group to grow.
const (
	// ExpanderLeastWaste takes the group whose new nodes are left with the least idle CPU and memory.
	ExpanderLeastWaste = "least-waste"
	// ExpanderMostPods takes the group that helps the most pods.
	ExpanderMostPods = "most-pods"
	// ExpanderLeastNodes takes the group that needs the fewest nodes.
	ExpanderLeastNodes = "least-nodes"
	// ExpanderPriority takes the group with the highest priority.
	ExpanderPriority = "priority"
	// ExpanderRandom takes any group.
	ExpanderRandom = "random"
)

// Priorities are regular expressions of groups' names by priority.
type Priorities map[int][]*regexp.Regexp

// ParsePriorities reads the key "priorities" of ConfigMap cluster-autoscaler-priority-expander: YAML with lists of
// regular expressions by priority.
func ParsePriorities(text string) (Priorities, error) {
	var raw map[int][]string
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("priorities must be lists of regular expressions by number: %w", err)
	}
	result := Priorities{}
	for priority, expressions := range raw {
		for _, expression := range expressions {
			parsed, err := regexp.Compile(expression)
			if err != nil {
				return nil, fmt.Errorf("priority %d: %w", priority, err)
			}
			result[priority] = append(result[priority], parsed)
		}
	}
	return result, nil
}

// of returns the highest priority of a group, and whether it has one.
func (p Priorities) of(group string) (int, bool) {
	best, found := 0, false
	for priority, expressions := range p {
		if slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(group) }) &&
			(!found || priority > best) {
			best, found = priority, true
		}
	}
	return best, found
}

// chooser takes one of several options.
type chooser func(options []option, priorities Priorities) option

// expander leaves the best of several options.
type expander func(options []option, priorities Priorities) []option

// expanderChain returns the chooser that asks the expanders in order, and takes any of what they leave.
func expanderChain(names []string) (chooser, error) {
	known := map[string]expander{
		ExpanderLeastWaste: byScore(func(o option) float64 { return o.waste }),
		ExpanderMostPods:   byScore(func(o option) float64 { return -float64(len(o.pods)) }),
		ExpanderLeastNodes: byScore(func(o option) float64 { return float64(o.count) }),
		ExpanderPriority:   byPriority,
		ExpanderRandom: func(options []option, _ Priorities) []option {
			return []option{options[rand.IntN(len(options))]}
		},
	}
	var chain []expander
	for _, name := range names {
		next, found := known[name]
		if !found {
			return nil, fmt.Errorf("--expander: %q is not known; use least-waste, most-pods, least-nodes, priority "+
				"or random", name)
		}
		chain = append(chain, next)
	}
	chain = append(chain, known[ExpanderRandom])
	return func(options []option, priorities Priorities) option {
		for _, next := range chain {
			options = next(options, priorities)
		}
		return options[0]
	}, nil
}

// byScore leaves the options with the lowest score.
func byScore(score func(option) float64) expander {
	return func(options []option, _ Priorities) []option {
		best := slices.MinFunc(options, func(a, b option) int {
			switch {
			case score(a) < score(b):
				return -1
			case score(a) > score(b):
				return 1
			}
			return 0
		})
		return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return score(o) > score(best) })
	}
}

// byPriority leaves the options with the highest priority, or all if none has one.
func byPriority(options []option, priorities Priorities) []option {
	highest, any := 0, false
	for _, o := range options {
		if priority, found := priorities.of(o.group.Name); found && (!any || priority > highest) {
			highest, any = priority, true
		}
	}
	if !any {
		return options
	}
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool {
		priority, found := priorities.of(o.group.Name)
		return !found || priority < highest
	})
}
