package trellisctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/order"
)

// offered are the objects of a garden in which a shoot can be created: one profile, one binding, one network plugin.
func offered() []client.Object {
	profile := &gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: *offering()}
	profile.Spec.Regions = []gardencorev1beta1.Region{
		{Name: "local", Zones: []gardencorev1beta1.AvailabilityZone{{Name: "a"}}},
	}
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "ours"},
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
	}
	foreign := binding.DeepCopy()
	foreign.Name, foreign.Provider.Type = "foreign", "elsewhere"
	plugin := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "flannel"}}
	plugin.Spec.Resources = []gardencorev1beta1.ControllerResource{{Kind: "Network", Type: "flannel"}}
	return []client.Object{profile, binding, foreign, plugin}
}

func TestCreate(t *testing.T) {
	for name, test := range map[string]struct {
		output, dryRun string
		// want is a part of what is printed; created tells whether there is a shoot afterwards.
		want    string
		created bool
	}{
		"created": {"", "", "Shoot garden-demo/new is created\n", true},
		"printed": {"yaml", "", "  credentialsBindingName: ours\n  kubernetes:\n    version: 1.36.10\n", false},
		"checked": {"", "server", "Shoot garden-demo/new would be created\n", false},
	} {
		s := session(t, Target{Project: "demo", Shoot: "new"}, interceptor.Funcs{}, offered()...)
		o := &creation{
			pools: []string{"pool:small:1-3"}, output: formatFlag{value: test.output}, dryRun: test.dryRun,
		}
		o.answers.Name, o.answers.Version = "new", "1.36"
		if err := o.parse(); err != nil {
			t.Fatal(err)
		}
		command, out, _ := called(t, "")
		if err := s.create(command, o); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: got %v\n%s", name, err, out)
		}
		shoot, err := s.Shoot(t.Context())
		if (err == nil) != test.created {
			t.Errorf("%s: got %+v, %v", name, shoot, err)
		}
		if test.created && (*shoot.Spec.Networking.Type != "flannel" ||
			shoot.Spec.Provider.Workers[0].Zones[0] != "a") {
			t.Errorf("%s: got %+v", name, shoot.Spec)
		}
	}
}

// What is open and cannot be asked is told all at once, with fields, flags and choices.
func TestCreatingWithoutATerminal(t *testing.T) {
	objects := offered()
	objects[0].(*gardencorev1beta1.CloudProfile).Spec.Regions = []gardencorev1beta1.Region{{Name: "x"}, {Name: "y"}}
	s := session(t, Target{Project: "demo", Shoot: "new"}, interceptor.Funcs{}, objects...)
	command, _, _ := called(t, "x\n")
	err := s.create(command, &creation{})
	const want = `spec.region is not known; say it by --region, one of x, y
spec.provider.workers is not known; say it by --workers NAME:TYPE:MIN-MAX or --workerless, one of small, none`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	s.Target.Project = ""
	if err := s.create(command, &creation{}); err == nil || !strings.Contains(err.Error(), "add --project NAME") {
		t.Errorf("got %v", err)
	}
}

// Who may not read what extensions there are is offered what shoots of the project use.
func TestNetworkPluginsOfUsers(t *testing.T) {
	functions := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, ok := list.(*gardencorev1beta1.ControllerRegistrationList); ok {
				return apierrors.NewForbidden(gardencorev1beta1.Resource("controllerregistrations"), "",
					errors.New("no operator"))
			}
			return c.List(ctx, list, options...)
		},
	}
	networked := func(name, plugin string) *gardencorev1beta1.Shoot {
		s := shoot("garden-demo", name, "local")
		s.Spec.Networking = &gardencorev1beta1.Networking{Type: &plugin}
		return s
	}
	s := session(t, Target{Project: "demo"}, functions, networked("a", "flannel"), networked("b", "calico"),
		networked("c", "flannel"), shoot("garden-demo", "fleet", ""))
	if got := s.networkPlugins(t.Context(), "garden-demo"); strings.Join(got, " ") != "calico flannel" {
		t.Errorf("got %v", got)
	}
}

func TestFlagsOfACreation(t *testing.T) {
	for want, o := range map[string]creation{
		"--workers: ":                   {pools: []string{"pool"}},
		"--hibernation-schedule: ":      {schedules: []string{";"}},
		"--maintenance-window: ":        {window: "at night"},
		"--dry-run client: must be":     {dryRun: "client"},
		"--workerless and --workers co": {pools: []string{"a:b:1"}, answers: order.Answers{Workerless: true}},
	} {
		if err := o.parse(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// People answer by names or numbers, and are asked again after a mistake.
func TestAsking(t *testing.T) {
	var out bytes.Buffer
	a := &asker{out: &out, in: bufio.NewReader(strings.NewReader("5\nnowhere\n2\n"))}
	chosen := ""
	open := func() []order.Question {
		if chosen != "" {
			return nil
		}
		return []order.Question{cloudProfileQuestion([]string{"first", "second"}, &chosen)}
	}
	if err := a.all(open); err != nil || chosen != "second" {
		t.Errorf("got %q, %v", chosen, err)
	}
	if got := strings.Count(out.String(), "Of which cloud profile? "); got != 3 {
		t.Errorf("asked %d times:\n%s", got, out.String())
	}
	chosen = ""
	if err := a.all(open); err == nil || !strings.Contains(err.Error(), "say it by --cloud-profile") {
		t.Errorf("got %v", err)
	}
}

func TestChoosing(t *testing.T) {
	question := order.Question{Choices: []string{"a", "b", "3"}, Several: true}
	for line, want := range map[string]string{
		"a": "a", "1, b": "a,b", "3": "3", "4": "error", "": "error", "a,": "error", "0": "error",
	} {
		got, err := chosen(question, line)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q, %v", line, got, err)
		}
	}
}
