package trellisctl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// patternGroups are the groups that a pattern may have, as in gardenctl's configuration.
var patternGroups = []string{"project", "namespace", "shoot", "seed"}

// checkPattern says what is wrong with a pattern.
func checkPattern(pattern string) error {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("%q: %w", pattern, err)
	}
	named := false
	for _, name := range compiled.SubexpNames() {
		if name != "" && !slices.Contains(patternGroups, name) {
			return fmt.Errorf("%q: group %q is none of %s", pattern, name, strings.Join(patternGroups, ", "))
		}
		named = named || name != ""
	}
	if !named {
		return fmt.Errorf("%q targets nothing: give it a group such as (?P<shoot>.+)", pattern)
	}
	return nil
}

// givenPatterns are those of flags. One that is empty takes patterns away, and is given alone.
func givenPatterns(flags []string) ([]string, error) {
	if len(flags) == 1 && flags[0] == "" {
		return nil, nil
	}
	for _, pattern := range flags {
		if err := checkPattern(pattern); err != nil {
			return nil, fmt.Errorf("--pattern %w", err)
		}
	}
	return flags, nil
}

// technicalIDs is the pattern of gardens that have none: what shoots are called in seeds. No project has "--" in its
// name.
const technicalIDs = "^shoot--(?P<project>.+?)--(?P<shoot>.+)$"

// patterns are those of the configuration, or else that of all gardens.
func (g *Garden) patterns() []string {
	if len(g.Patterns) == 0 {
		return []string{technicalIDs}
	}
	return g.Patterns
}

// preferred are the gardens whose patterns are tried, in their order: only the one that was asked for, or the one that
// is targeted and then all others.
func (c *Config) preferred(asked, targeted string) ([]*Garden, error) {
	if asked != "" {
		garden, err := c.Garden(asked)
		return []*Garden{garden}, err
	}
	var gardens []*Garden
	for i := range c.Gardens {
		garden := &c.Gardens[i]
		if targeted != "" && (garden.Name == targeted || garden.Identity == targeted) {
			gardens = slices.Insert(gardens, 0, garden)
			continue
		}
		gardens = append(gardens, garden)
	}
	return gardens, nil
}

// matchPatterns is the target that the first pattern makes of a text that matches it. Where the pattern tells of a
// namespace and not of a project, the project is that of the namespace.
func matchPatterns(gardens []*Garden, text string) (target Target, namespace string, found bool) {
	for _, garden := range gardens {
		for _, pattern := range garden.patterns() {
			groups := groupsOf(pattern, text)
			if len(groups) == 0 {
				continue
			}
			return Target{
				Garden: garden.Name, Project: groups["project"], Seed: groups["seed"], Shoot: groups["shoot"],
			}, groups["namespace"], true
		}
	}
	return Target{}, "", false
}

// groupsOf are the groups of a pattern that match something in a text.
func groupsOf(pattern, text string) map[string]string {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil // It was checked when it was read.
	}
	matches := compiled.FindStringSubmatch(text)
	if matches == nil {
		return nil
	}
	groups := map[string]string{}
	for i, name := range compiled.SubexpNames() {
		if name != "" && matches[i] != "" {
			groups[name] = matches[i]
		}
	}
	return groups
}
