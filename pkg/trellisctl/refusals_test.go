package trellisctl

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// A name that no shoot can have is refused before anything is asked, and a kind that there is none of with those that
// there are.
func TestNamesThatThereAreNot(t *testing.T) {
	gardensConfigured(t, "gardens: [{name: local, kubeconfig: /k}]")
	for line, want := range map[string]string{
		"create shoot A_b --project demo": `the name "A_b" is none of a shoot: a lowercase RFC 1123 label must`,
		"create shoot a/b --project demo": `the name "a/b" is none of a shoot: `,
		"create shoot -- -x":              `the name "-x" is none of a shoot: `,
		"create node one":                 `trellisctl create has no command "node"; it has shoot; see`,
		"hibernate one": "trellisctl hibernate has no command \"one\"; for the shoot of that name say " +
			"`trellisctl hibernate shoot one`; see",
		"wakeup one":                       "say `trellisctl wakeup shoot one`; see",
		"delete one --wait":                "say `trellisctl delete shoot one`; see",
		"reconcile one":                    "say `trellisctl reconcile shoot one`; see",
		"hibernate x;reboot":               "trellisctl hibernate has no command \"x;reboot\"; it has shoot; see",
		"describe nodes":                   `trellisctl describe has no command "nodes"; it has project, seed, shoot; see`,
		"describe shot":                    `trellisctl describe has no command "shot"; similar: shoot`,
		"rotate everything start":          `trellisctl rotate has no command "everything"; it has ca, credentials, `,
		"config show":                      `trellisctl config has no command "show"; it has delete-garden, set-garden, view`,
		"nodes-of-a-cluster-somewhere-far": `trellisctl has no command "nodes-of-a-cluster-somewhere-far"; see`,
	} {
		if _, err := commandLine(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
}

// What does not exist, or may not be read, is told with where to look or whom to ask.
func TestDescribingWhatThereIsNot(t *testing.T) {
	noKind := &meta.NoKindMatchError{
		GroupKind: gardencorev1beta1.Kind("Shoot"), SearchedVersions: []string{"v1beta1"},
	}
	forbidden := apierrors.NewForbidden(gardencorev1beta1.Resource("seeds"), "none", errors.New("no rights"))
	describe := map[string]func(*Session, context.Context, io.Writer) error{
		"shoot":   func(s *Session, ctx context.Context, out io.Writer) error { return s.DescribeShoot(ctx, out, today) },
		"project": func(s *Session, ctx context.Context, out io.Writer) error { return s.DescribeProject(ctx, out, today) },
		"seed":    func(s *Session, ctx context.Context, out io.Writer) error { return s.DescribeSeed(ctx, out, today) },
	}
	for _, test := range []struct {
		kind   string
		target Target
		// answer is what the garden says instead of what it has.
		answer error
		want   string
	}{
		{"shoot", Target{Project: "demo", Shoot: "none"}, nil, `shoot "none" does not exist; ` +
			"`trellisctl ls shoots --project demo` shows those that do"},
		{"shoot", Target{Shoot: "none"}, nil, "`trellisctl ls shoots` shows those that do"},
		{"shoot", Target{}, nil, "no shoot is targeted: add --shoot NAME"},
		{"project", Target{Project: "none"}, nil, `project "none" does not exist; ` + "`trellisctl ls projects`"},
		{"project", Target{}, nil, "no project is targeted: name one"},
		{"seed", Target{Seed: "none"}, nil, `seed "none" does not exist; ` + "`trellisctl ls seeds`"},
		{"seed", Target{}, nil, "no seed is targeted: name one"},
		{"seed", Target{Seed: "none"}, forbidden, `you may not read seed "none": ask`},
		{"seed", Target{Seed: "none"}, noKind, "so the API is none of a garden: `trellisctl config view` shows"},
		{"shoot", Target{Shoot: "none"}, noKind, "so the API is none of a garden: `trellisctl config view` shows"},
	} {
		var functions interceptor.Funcs
		if test.answer != nil {
			functions.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object,
				...client.GetOption) error {
				return test.answer
			}
			functions.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return test.answer
			}
		}
		s := session(t, test.target, functions)
		err := describe[test.kind](s, t.Context(), io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: got %v, want %s", test.kind, test.target, err, test.want)
		}
	}
}

// What the garden does not take is told with the field, with what became of it, and what to do.
func TestCreationsThatAreRefused(t *testing.T) {
	shoots := schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}
	invalid := apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), "new", field.ErrorList{field.Invalid(
		field.NewPath("metadata", "name"), "new", "name of project and shoot must have at most 21 characters together")})
	for _, test := range []struct {
		answer error
		want   []string
	}{
		{invalid, []string{
			"the garden does not take shoot garden-demo/new, and nothing was created: ",
			"metadata.name: Invalid value", "correct what it names, and create it again",
		}},
		{apierrors.NewForbidden(shoots, "new", errors.New("no rights")), []string{"forbids shoot garden-demo/new",
			"no rights", "ask an owner of the project"}},
		{apierrors.NewNotFound(shoots, "new"), []string{"something that it needs is not there",
			"`trellisctl describe project demo`"}},
		{errors.New("connection reset"), []string{
			"creating shoot garden-demo/new: connection reset", "run the same again",
		}},
	} {
		functions := interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return test.answer
			},
		}
		s := session(t, Target{Project: "demo", Shoot: "new"}, functions, offered()...)
		o := orderOf("1.36")
		if err := o.parse(); err != nil {
			t.Fatal(err)
		}
		command, out, _ := called(t, "")
		err := s.create(command, o)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
				t.Errorf("got %v, want %s\n%s", err, want, out)
			}
		}
	}
}
