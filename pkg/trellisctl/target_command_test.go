package trellisctl

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// What is typed is looked up, and the project of a shoot is found.
func TestTargetsAreChecked(t *testing.T) {
	objects := []client.Object{
		shoot("garden-demo", "one", "local"), shoot("garden-demo", "both", "local"),
		shoot("garden-other", "both", ""),
		&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}},
	}
	for name, test := range map[string]struct {
		target Target
		// want is the target, or a part of the error.
		want string
	}{
		"a garden":                 {Target{Garden: "local"}, "garden/local"},
		"a project":                {Target{Project: "demo"}, "project/demo"},
		"no project":               {Target{Project: "none"}, "`trellisctl ls projects` shows those that do"},
		"a seed":                   {Target{Seed: "local"}, "seed/local"},
		"no seed":                  {Target{Seed: "none"}, "`trellisctl ls seeds` shows those that do"},
		"a shoot of some project":  {Target{Shoot: "one"}, "project/demo shoot/one"},
		"a shoot of two projects":  {Target{Shoot: "both"}, "choose one with --project, of demo, other"},
		"a shoot of that project":  {Target{Project: "other", Shoot: "both"}, "project/other shoot/both"},
		"a control plane":          {Target{Shoot: "one", ControlPlane: true}, "project/demo shoot/one control-plane"},
		"a shoot of that seed":     {Target{Seed: "local", Shoot: "one"}, "project/demo seed/local shoot/one"},
		"a shoot of another seed":  {Target{Seed: "x", Shoot: "one"}, "is on seed local, and not on x, which is targeted"},
		"a shoot that is nowhere":  {Target{Project: "other", Seed: "x", Shoot: "both"}, "is on seed none"},
		"a control plane that not": {Target{Project: "other", Shoot: "both", ControlPlane: true}, "no control plane yet"},
	} {
		got, err := session(t, test.target, interceptor.Funcs{}, objects...).check(t.Context())
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got error %v", name, err)
		case err == nil && got.String() != test.want:
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// A level is forgotten with what is below it, and what is left is a target.
func TestForgettingALevel(t *testing.T) {
	all := Target{Garden: "g", Project: "p", Seed: "x", Shoot: "s", ControlPlane: true}
	bySeed := Target{Garden: "g", Seed: "x", Shoot: "s"}
	for name, test := range map[string]struct {
		target Target
		level  string
		want   Target
	}{
		"garden":        {all, "garden", Target{}},
		"project":       {all, "project", Target{Garden: "g", Seed: "x"}},
		"seed":          {all, "seed", Target{Garden: "g", Project: "p", Shoot: "s", ControlPlane: true}},
		"its only seed": {bySeed, "seed", Target{Garden: "g"}},
		"shoot":         {all, "shoot", Target{Garden: "g", Project: "p"}},
		"shoot of seed": {bySeed, "shoot", Target{Garden: "g", Seed: "x"}},
		"control plane": {all, "control-plane", Target{Garden: "g", Project: "p", Seed: "x", Shoot: "s"}},
		"what is not":   {Target{Garden: "g"}, "shoot", Target{Garden: "g"}},
	} {
		got := test.target.Without(test.level)
		if got != test.want || got.Validate() != nil {
			t.Errorf("%s: got %v (%v), want %v", name, got, got.Validate(), test.want)
		}
	}
}

func TestTargetViewAndUnset(t *testing.T) {
	gardensConfigured(t, "gardens: [{name: local, kubeconfig: /k}]")
	if err := (Target{Garden: "local", Project: "demo", Shoot: "one"}).Save(SessionDir()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ line, want string }{
		{"target view", "garden/local project/demo shoot/one\n"},
		{"target view -o yaml", "garden: local\nproject: demo\nshoot: one\n"},
		{"target view -o json", "{\n  \"garden\": \"local\",\n  \"project\": \"demo\",\n  \"shoot\": \"one\"\n}\n"},
		{"target unset shoot", "Targeted garden/local project/demo\n"},
		{"target unset control-plane", "Targeted garden/local project/demo\n"},
		{"target view", "garden/local project/demo\n"},
		{"target unset garden", "Targeted nothing\n"},
		{"target view", "nothing\n"},
		{"target unset", ""},
	} {
		if got, err := commandLine(t, step.line); err != nil || got != step.want {
			t.Errorf("%s: got %q, %v", step.line, got, err)
		}
	}
}

// A pattern may name a namespace; the project is the one that has it.
func TestProjectOfANamespace(t *testing.T) {
	s := session(t, Target{}, interceptor.Funcs{})
	if got, err := s.projectOf(t.Context(), "garden-other"); err != nil || got != "other" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.projectOf(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "`trellisctl ls projects`") {
		t.Errorf("got %v", err)
	}
}

func TestTextsThatNoPatternMatches(t *testing.T) {
	gardensConfigured(t, "gardens:\n- {name: a, kubeconfig: /k}\n- {name: b, kubeconfig: /k}\n")
	for line, want := range map[string]string{
		"target viwe":          `trellisctl target has no command "viwe"; similar: view; see`,
		"target m1--x":         " has in gardens[].patterns of garden a, b; see",
		"target m1 --garden b": "of garden b; see",
		"target m1 --garden c": `garden "c" is not in`,
		"target garden c":      `garden "c" is not in`,
	} {
		_, err := commandLine(t, line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", line, err, want)
		}
	}
}

func TestCompletedNames(t *testing.T) {
	objects := []client.Object{
		shoot("garden-demo", "one", ""), shoot("garden-demo", "both", ""), shoot("garden-other", "both", ""),
	}
	for project, want := range map[string][]string{"": {"both", "one"}, "other": {"both"}, "new": nil} {
		s := session(t, Target{Project: project}, interceptor.Funcs{}, objects...)
		if got := s.names(t.Context(), shootKind); !slices.Equal(got, want) {
			t.Errorf("project %q: got %v", project, got)
		}
	}
	s := session(t, Target{Project: "demo"}, interceptor.Funcs{})
	if got := s.names(t.Context(), projectKind); !slices.Equal(got, []string{"demo", "new", "other"}) {
		t.Errorf("got %v", got)
	}
	gardensConfigured(t, "gardens:\n- {name: a, kubeconfig: /k}\n- {name: b, kubeconfig: /k}\n")
	if got, _ := (&cli{}).completeGardens(nil, nil, ""); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
}
