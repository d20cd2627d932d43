package trellisctl

import (
	"bytes"
	"strings"
	"testing"
)

func TestPatternsAreChecked(t *testing.T) {
	const gardens = "gardens:\n- {name: a, kubeconfig: /k}\n- name: b\n  kubeconfig: /k\n  patterns:\n" +
		"  - '^(?P<project>.+)/(?P<shoot>.+)$'\n  - '"
	for name, test := range map[string]struct{ pattern, problem string }{
		"by namespace":   {"^(?P<namespace>garden-.+)$", ""},
		"cannot be read": {"(?P<shoot>", "gardens[1].patterns[1]: \"(?P<shoot>\": error parsing regexp"},
		"another group":  {"(?P<name>.+)", `gardens[1].patterns[1]: "(?P<name>.+)": group "name" is none of project,`},
		"no group":       {"(.+)", `gardens[1].patterns[1]: "(.+)" targets nothing: give it a group such as`},
	} {
		gardensConfigured(t, gardens+test.pattern+"'\n")
		_, err := LoadConfig("")
		if (err == nil) != (test.problem == "") || (err != nil && !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s: got %v, want %q", name, err, test.problem)
		}
	}
}

func TestPatterns(t *testing.T) {
	config := &Config{Gardens: []Garden{
		{Name: "a", Identity: "id-a", Patterns: []string{
			"^(?:id-a/)?shoot--(?P<project>.+)--(?P<shoot>.+)$", "^seed/(?P<seed>.+)$", "^(?P<project>x)?y$",
		}},
		{Name: "b", Patterns: []string{
			"^shoot--(?P<project>.+)--(?P<shoot>.+)$", "^(?P<namespace>garden-[^/]+)(?:/(?P<shoot>.+))?$",
		}},
	}}
	for name, test := range map[string]struct {
		asked, targeted, text string
		want                  Target
		namespace             string
	}{
		"the first garden":    {"", "", "shoot--demo--m1", Target{Garden: "a", Project: "demo", Shoot: "m1"}, ""},
		"the targeted one":    {"", "b", "shoot--demo--m1", Target{Garden: "b", Project: "demo", Shoot: "m1"}, ""},
		"the one asked for":   {"b", "a", "shoot--demo--m1", Target{Garden: "b", Project: "demo", Shoot: "m1"}, ""},
		"not in another":      {"b", "", "seed/local", Target{}, ""},
		"of another garden":   {"", "b", "seed/local", Target{Garden: "a", Seed: "local"}, ""},
		"by identity":         {"", "id-a", "id-a/shoot--demo--m1", Target{Garden: "a", Project: "demo", Shoot: "m1"}, ""},
		"a namespace":         {"", "", "garden-demo", Target{Garden: "b"}, "garden-demo"},
		"namespace and shoot": {"", "", "garden-demo/m1", Target{Garden: "b", Shoot: "m1"}, "garden-demo"},
		"no group matches":    {"", "", "y", Target{}, ""},
		"nothing":             {"", "", "m1", Target{}, ""},
	} {
		gardens, err := config.preferred(test.asked, test.targeted)
		if err != nil {
			t.Fatal(err)
		}
		got, namespace, found := matchPatterns(gardens, test.text)
		if got != test.want || namespace != test.namespace || found != (test.want != Target{}) {
			t.Errorf("%s: got %v, namespace %q, %t", name, got, namespace, found)
		}
	}
	if _, err := config.preferred("c", ""); err == nil || !strings.Contains(err.Error(), "known are: a, b") {
		t.Errorf("got %v", err)
	}
}

// A garden without patterns has that of the names in seeds; its own ones replace it.
func TestPatternOfGardensWithoutPatterns(t *testing.T) {
	plain, own := &Garden{Name: "plain"}, &Garden{Name: "own", Patterns: []string{"^x/(?P<shoot>.+)$"}}
	for text, want := range map[string]Target{
		"shoot--demo--member1":    {Garden: "plain", Project: "demo", Shoot: "member1"},
		"shoot--demo--two--parts": {Garden: "plain", Project: "demo", Shoot: "two--parts"},
		"shoot--demo":             {}, "demo": {}, "shoot----x": {},
		"x/one": {Garden: "own", Shoot: "one"},
	} {
		if got, _, found := matchPatterns([]*Garden{own, plain}, text); got != want || found != (want != Target{}) {
			t.Errorf("%s: got %v, %t", text, got, found)
		}
	}
	if _, _, found := matchPatterns([]*Garden{own}, "shoot--demo--member1"); found {
		t.Error("a garden with patterns has another one")
	}
	if err := checkPattern(technicalIDs); err != nil {
		t.Error(err)
	}
}

// Patterns are set, replaced and taken away by a command; one that is wrong changes nothing.
func TestPatternsAreConfigured(t *testing.T) {
	gardensConfigured(t, "gardens: [{name: dev, identity: landscape-dev, kubeconfig: /k}]")
	for _, step := range []struct {
		patterns []string
		want     string
		problem  string
	}{
		{[]string{"^(?P<project>[^/,]+)/(?P<shoot>.+)$", "^ns/(?P<namespace>.+)$"},
			"^(?P<project>[^/,]+)/(?P<shoot>.+)$ ^ns/(?P<namespace>.+)$", ""},
		{[]string{"^(?P<seed>.+)$", "(?P<shoot>"}, "^(?P<project>[^/,]+)/(?P<shoot>.+)$ ^ns/(?P<namespace>.+)$",
			`--pattern "(?P<shoot>": error parsing regexp`},
		{[]string{"^(?P<name>.+)$"}, "^(?P<project>[^/,]+)/(?P<shoot>.+)$ ^ns/(?P<namespace>.+)$",
			`group "name" is none of project, namespace, shoot, seed`},
		{nil, "^(?P<project>[^/,]+)/(?P<shoot>.+)$ ^ns/(?P<namespace>.+)$", ""},
		{[]string{"^(?P<seed>.+)$"}, "^(?P<seed>.+)$", ""},
		{[]string{""}, "", ""},
	} {
		root := NewCommand()
		root.SetOut(&bytes.Buffer{})
		arguments := []string{"config", "set-garden", "landscape-dev"}
		for _, pattern := range step.patterns {
			arguments = append(arguments, "--pattern", pattern)
		}
		root.SetArgs(arguments)
		err := root.ExecuteContext(t.Context())
		if (err == nil) != (step.problem == "") || err != nil && !strings.Contains(err.Error(), step.problem) {
			t.Errorf("%q: got error %v", step.patterns, err)
		}
		config, err := LoadConfig("")
		if err != nil || strings.Join(config.Gardens[0].Patterns, " ") != step.want {
			t.Errorf("%q: got %+v, %v", step.patterns, config, err)
		}
	}
}

// A configured pattern and a typed text never make a target of nothing, and none that a pattern does not tell of.
func FuzzPatterns(f *testing.F) {
	f.Add("^shoot--(?P<project>.+)--(?P<shoot>.+)$", "shoot--demo--m1")
	f.Add("(?P<namespace>.*)", "")
	f.Add("(?P<shoot>a)|b", "b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if checkPattern(pattern) != nil {
			return
		}
		target, namespace, found := matchPatterns([]*Garden{{Name: "g", Patterns: []string{pattern}}}, text)
		if found == (target == Target{} || (target == Target{Garden: "g"} && namespace == "")) {
			t.Fatalf("%q and %q: got %v, namespace %q, %t", pattern, text, target, namespace, found)
		}
		for _, part := range []string{target.Project, target.Seed, target.Shoot, namespace} {
			if !strings.Contains(text, part) {
				t.Fatalf("%q and %q: %q is not in the text", pattern, text, part)
			}
		}
	})
}
