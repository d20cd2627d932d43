package trellisctl

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// with is a shoot at an operation, and otherwise changed.
func with(state gardencorev1beta1.LastOperationState,
	change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	s := operating(state, 100, "")
	change(s)
	return s
}

func asking(operations string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, gardencorev1beta1.GardenerOperation, operations)
	}
}

func asItIs(*gardencorev1beta1.Shoot) {}

// Who asks for what nobody would carry out is told what to do instead; operations of others stay.
func TestAskingForOperations(t *testing.T) {
	for name, test := range map[string]struct {
		operation string
		shoot     *gardencorev1beta1.Shoot
		// want is the annotation, or a part of the error.
		want string
	}{
		"reconcile": {"reconcile", with("Succeeded", asItIs), "reconcile"},
		"with those of others": {
			"maintain", with("Succeeded", asking("rotate-ssh-keypair")), "rotate-ssh-keypair;maintain",
		},
		"twice": {"maintain", with("Succeeded", asking("maintain")), "maintain"},
		"reconcile what has failed": {
			"reconcile", with("Failed", asItIs), "has failed; first: trellisctl retry shoot one --project demo",
		},
		"retry": {"retry", with("Failed", asItIs), "retry"},
		"retry what has not failed": {
			"retry", with("Error", asItIs), "this is Reconcile Error (100%): trellisctl reconcile shoot one",
		},
		"retry behind others": {
			"retry", with("Failed", asking("rotate-ca-start")), "is only done alone, and rotate-ca-start waits",
		},
		"before anything began": {
			"reconcile", shoot("garden-demo", "one", ""), "is possible once the first operation has begun",
		},
		"retry before anything began": {"retry", shoot("garden-demo", "one", ""), "nothing has begun yet"},
		"what is left alone": {
			"maintain", with("Succeeded", func(s *gardencorev1beta1.Shoot) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, gardencorev1beta1.ShootIgnore, "true")
			}), "has the shoot left alone; remove it first",
		},
		"a second half without a first": {
			"rotate-ca-complete", with("Succeeded", asItIs),
			"is possible when the rotation of the certificate authorities",
		},
	} {
		s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, test.shoot)
		got, err := s.askFor(t.Context(), test.operation)
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", name, err)
		case err == nil && got.Annotations[gardencorev1beta1.GardenerOperation] != test.want:
			t.Errorf("%s: got %v", name, got.Annotations)
		}
	}
}

// What somebody else writes between reading and writing is neither lost nor in the way.
func TestChangesOfOthersAreKept(t *testing.T) {
	raced := false
	functions := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			if !raced {
				raced = true
				other := &gardencorev1beta1.Shoot{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), other); err != nil {
					return err
				}
				asking("rotate-ssh-keypair")(other)
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions, with("Succeeded", asItIs))
	got, err := s.askFor(t.Context(), "reconcile")
	if err != nil || got.Annotations[gardencorev1beta1.GardenerOperation] != "rotate-ssh-keypair;reconcile" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEndlessConflicts(t *testing.T) {
	functions := interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewConflict(gardencorev1beta1.Resource("shoots"), "one", nil)
		},
	}
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions, with("Succeeded", asItIs))
	if _, err := s.askFor(t.Context(), "reconcile"); err == nil ||
		!strings.Contains(err.Error(), "others write the shoot all the time, try again in a moment") {
		t.Errorf("got %v", err)
	}
}

func pooled(s *gardencorev1beta1.Shoot) {
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{
		{Name: "a", Minimum: 1, Maximum: 1}, {Name: "b", Minimum: 1, Maximum: 3},
	}
}

func TestScale(t *testing.T) {
	for name, test := range map[string]struct {
		size poolSize
		// want is the pool b afterwards, or a part of the error.
		want string
	}{
		"both":      {poolSize{"b", new(int32(2)), new(int32(5))}, "2 to 5"},
		"the most":  {poolSize{"b", nil, new(int32(1))}, "1 to 1"},
		"the least": {poolSize{"b", new(int32(0)), nil}, "0 to 3"},
		"more than the most": {
			poolSize{"b", new(int32(4)), nil},
			"spec.provider.workers[1].minimum: 4 is more than the maximum, 3; give --maximum as well",
		},
		"less than the least": {
			poolSize{"b", nil, new(int32(0))},
			"spec.provider.workers[1].maximum: 0 is less than the minimum, 1; give --minimum as well",
		},
		"less than nothing": {poolSize{"b", new(int32(-1)), nil}, "spec.provider.workers[1].minimum: -1 is less than"},
		"no pool":           {poolSize{"c", nil, new(int32(1))}, `has no pool "c"; choose one of a, b`},
	} {
		s := with("Succeeded", pooled)
		err := test.size.apply(s)
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v", name, err)
		case err == nil && test.size.of(s) != test.want:
			t.Errorf("%s: got %s", name, test.size.of(s))
		}
	}
	if err := (poolSize{pool: "a"}).apply(with("Succeeded", asItIs)); err == nil ||
		!strings.Contains(err.Error(), "it is workerless") {
		t.Errorf("got %v", err)
	}
}

func TestStepsOfRotations(t *testing.T) {
	for _, test := range []struct {
		what, step, version string
		withoutRollout      bool
		want                string
	}{
		{"credentials", "start", "1.36.3", false, "rotate-credentials-start"},
		{"credentials", "complete", "1.36.3", false, "rotate-credentials-complete"},
		{"ca", "start", "1.36.3", true, "rotate-ca-start-without-workers-rollout"},
		{"serviceaccount-key", "complete", "1.36.3", false, "rotate-serviceaccount-key-complete"},
		{"etcd-encryption-key", "start", "1.36.3", false, "rotate-etcd-encryption-key"},
		{"etcd-encryption-key", "complete", "1.34.0", false, "there is nothing to complete"},
		{"etcd-encryption-key", "start", "1.33.1", false, "rotate-etcd-encryption-key-start"},
		{"etcd-encryption-key", "complete", "1.33.1", false, "rotate-etcd-encryption-key-complete"},
		{"ssh-keypair", "start", "1.36.3", false, "rotate-ssh-keypair"},
		{"ssh-keypair", "complete", "1.36.3", false, "there is nothing to complete"},
		{"ssh-keypair", "start", "1.36.3", true, "no machines are replaced for ssh-keypair"},
	} {
		for _, one := range rotations {
			if one.name != test.what {
				continue
			}
			got, err := one.operation(test.step, test.version, test.withoutRollout)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) || err == nil && got != test.want {
				t.Errorf("%s %s: got %s, want %s", test.what, test.step, got, test.want)
			}
		}
	}
}

func TestRotatingAll(t *testing.T) {
	failed := with("Failed", func(s *gardencorev1beta1.Shoot) { s.Name = "two" })
	s := session(t, Target{Project: "demo"}, interceptor.Funcs{}, with("Succeeded", asItIs), failed,
		shoot("garden-other", "three", "local"))
	names, err := s.shootsOfTheProject(t.Context())
	if err != nil || strings.Join(names, " ") != "one two" {
		t.Fatalf("got %v, %v", names, err)
	}
	command, out, _ := called(t, "")
	r := rotating{operation: func(*gardencorev1beta1.Shoot) (string, error) { return "rotate-ssh-keypair", nil }}
	for _, name := range names {
		one := *s
		one.Target.Shoot = name
		if err := one.rotate(command, r); (err == nil) != (name == "one") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if out.String() != "Shoot garden-demo/one is asked for rotate-ssh-keypair\n" {
		t.Errorf("got %q", out)
	}
	s.Target.Project = ""
	if _, err := s.shootsOfTheProject(t.Context()); err == nil || !strings.Contains(err.Error(), "add --project NAME") {
		t.Errorf("got %v", err)
	}
}

func TestPhases(t *testing.T) {
	at := before(time.Hour)
	s := with("Succeeded", func(s *gardencorev1beta1.Shoot) {
		rotations := &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{
				Phase: gardencorev1beta1.RotationPrepared, LastInitiationTime: &at,
			},
			ServiceAccountKey: &gardencorev1beta1.ServiceAccountKeyRotation{
				Phase:                  gardencorev1beta1.RotationWaitingForWorkersRollout,
				PendingWorkersRollouts: []gardencorev1beta1.PendingWorkersRollout{{Name: "a"}, {Name: "b"}},
			},
			SSHKeypair: &gardencorev1beta1.ShootSSHKeypairRotation{LastCompletionTime: &at},
		}
		s.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: rotations}
	})
	var out bytes.Buffer
	err := printRotationStatus(&out, s, "one --project demo", today)
	check(t, "phases", lines(t, &out, err), []string{
		"CREDENTIALS PHASE BEGAN COMPLETED MEANING",
		"ca Prepared 60m ago - old and new are in use: clients can switch over",
		"serviceaccount-key WaitingForWorkersRollout - - machines have to be replaced, when you say so",
		"ssh-keypair - - 60m ago -", "",
		"Waiting for: you, to have clients switch over (fetch new kubeconfigs), and then: trellisctl rotate ca " +
			"complete one --project demo",
		"you, to have machines replaced: trellisctl rotate workers one --project demo --pools a,b",
	})
}
