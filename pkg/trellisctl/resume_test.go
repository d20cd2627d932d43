package trellisctl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// idle is a watch that tells of nothing.
func idle() (watch.Interface, error) { return watch.NewFake(), nil }

var aMinute = waiting{wait: true, timeout: time.Minute}

// twice runs a command that is ended while it waits, and the same again. It returns what the second one printed.
func twice(t *testing.T, run func(*cobra.Command) error) string {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Second, interrupt)
	command, _, told := called(t, "")
	command.SetContext(ctx)
	if err := run(command); !errors.Is(err, context.Canceled) ||
		!strings.Contains(told.String(), "goes on without this command") {
		t.Fatalf("the first: got %v\n%s", err, told)
	}
	command, out, _ := called(t, "")
	if err := run(command); err != nil {
		t.Fatalf("the second: got %v\n%s", err, out)
	}
	return out.String()
}

func orderOf(version string) *creation {
	o := &creation{pools: []string{"pool:small:1-3"}, waiting: aMinute}
	o.answers.Name, o.answers.Version = "new", version
	return o
}

// Who creates a shoot again, because the command was ended, waits for the shoot that there is.
func TestACreationIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := operating("Succeeded", 100, "")
		created.Name = "new"
		s := session(t, Target{Project: "demo", Shoot: "new"}, watches(idle, seeing(created)), offered()...)
		got := twice(t, func(command *cobra.Command) error {
			o := orderOf("1.36")
			if err := o.parse(); err != nil {
				return err
			}
			return s.create(command, o)
		})
		const want = "Shoot garden-demo/new exists already, as it is asked for (waiting)\n" +
			"Shoot garden-demo/new is done\n"
		if got != want {
			t.Errorf("got %s", got)
		}
	})
}

// Another shoot of that name is not taken for the one that is asked for, and stays as it is.
func TestACreationOfAnotherShoot(t *testing.T) {
	for want, change := range map[string]func(*gardencorev1beta1.Shoot){
		`exists already (Reconcile Succeeded (100%)), and is not what is asked for: spec.kubernetes.version is ` +
			`"1.36.3", and not "1.36.10"; nothing is changed`: asItIs,
		`spec.networking.type is not set, and not "flannel"`: func(s *gardencorev1beta1.Shoot) {
			s.Spec.Kubernetes.Version = "1.36.10"
		},
		"is being deleted (Reconcile Succeeded (100%)); when it is gone, create it again; see how far it is: " +
			"trellisctl wait shoot new --project demo": func(s *gardencorev1beta1.Shoot) {
			s.DeletionTimestamp, s.Finalizers = new(metav1.NewTime(today)), []string{"gardener"}
		},
	} {
		existing := with("Succeeded", func(s *gardencorev1beta1.Shoot) {
			s.Name = "new"
			s.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
			s.Spec.CredentialsBindingName = new("ours")
			change(s)
		})
		s := session(t, Target{Project: "demo", Shoot: "new"}, interceptor.Funcs{}, append(offered(), existing)...)
		o := orderOf("1.36")
		if err := o.parse(); err != nil {
			t.Fatal(err)
		}
		command, out, _ := called(t, "")
		if err := s.create(command, o); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("got %v, want %s\n%s", err, want, out)
		}
	}
}

// What is there beside what is wanted are defaults.
func TestDifferences(t *testing.T) {
	type object = map[string]any
	for name, test := range map[string]struct {
		wanted, found any
		want          string
	}{
		"the same":        {object{"a": "b", "c": []any{1.0}}, object{"a": "b", "c": []any{1.0}}, ""},
		"with a default":  {object{"a": "b"}, object{"a": "b", "c": "d"}, ""},
		"what is unsaid":  {object{"a": "", "b": nil, "c": 0, "d": false, "e": object{}}, object{"a": "x"}, ""},
		"another value":   {object{"a": object{"b": "c"}}, object{"a": object{"b": "d"}}, `spec.a.b is "d", and not "c"`},
		"another type":    {object{"a": "b"}, object{"a": object{"b": "c"}}, `spec.a is {"b":"c"}, and not "b"`},
		"a missing value": {object{"a": object{"b": true}}, object{}, "spec.a.b is not set, and not true"},
		"another item":    {object{"a": []any{1, 2}}, object{"a": []any{1, 3}}, "spec.a[1] is 3, and not 2"},
		"more items":      {object{"a": []any{1}}, object{"a": []any{1, 2}}, "spec.a is [1,2], and not [1]"},
		"no items":        {object{"a": []any{1}}, object{}, "spec.a is not set, and not [1]"},
		"a number, no 0":  {object{"a": 0}, object{"a": 1}, "spec.a is 1, and not 0"},
	} {
		got, err := difference(test.wanted, test.found)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func inPhase(phase gardencorev1beta1.CredentialsRotationPhase) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		rotation := &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase},
		}
		s.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: rotation}
	}
}

// Who asks for a step of a rotation again gets that step once, whether it has begun or not, and waits for it.
func TestARotationIsTakenUp(t *testing.T) {
	begun := with("Processing", inPhase(gardencorev1beta1.RotationPreparing))
	for name, test := range map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  string
	}{
		"before it begins": {with("Succeeded", asItIs), "Shoot garden-demo/one is asked for rotate-ca-start\n"},
		"after it begins":  {begun, "Shoot garden-demo/one does rotate-ca-start already: ca is Preparing\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			prepared := with("Succeeded", inPhase(gardencorev1beta1.RotationPrepared))
			s := session(t, Target{Project: "demo", Shoot: "one"}, watches(idle, seeing(prepared)), test.shoot)
			r := rotating{waiting: aMinute, operation: func(*gardencorev1beta1.Shoot) (string, error) {
				return gardencorev1beta1.OperationRotateCAStart, nil
			}}
			got := twice(t, func(command *cobra.Command) error { return s.rotate(command, r) })
			if !strings.HasPrefix(got, test.want+"Shoot garden-demo/one is done\n") {
				t.Errorf("%s: got %s", name, got)
			}
		})
	}
}

// A step that is over is not done again: who asks for it is told how far the rotation is.
func TestARotationThatIsPrepared(t *testing.T) {
	prepared := with("Succeeded", inPhase(gardencorev1beta1.RotationPrepared))
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, prepared)
	command, _, _ := called(t, "")
	err := s.rotate(command, rotating{operation: func(*gardencorev1beta1.Shoot) (string, error) {
		return gardencorev1beta1.OperationRotateCAStart, nil
	}})
	if err == nil || !strings.Contains(err.Error(), "that of the certificate authorities is Prepared; how far it is: "+
		"trellisctl rotate status one --project demo") {
		t.Errorf("got %v", err)
	}
}

func TestStepsUnderWay(t *testing.T) {
	for _, test := range []struct {
		operation string
		phase     gardencorev1beta1.CredentialsRotationPhase
		want      string
	}{
		{"rotate-ca-start", gardencorev1beta1.RotationPreparing, "ca is Preparing"},
		{"rotate-ca-start-without-workers-rollout", gardencorev1beta1.RotationPreparingWithoutWorkersRollout,
			"ca is PreparingWithoutWorkersRollout"},
		{"rotate-credentials-start", gardencorev1beta1.RotationPreparing, "ca is Preparing"},
		{"rotate-credentials-complete", gardencorev1beta1.RotationCompleting, "ca is Completing"},
		{"rotate-ca-complete", gardencorev1beta1.RotationPreparing, ""},
		{"rotate-ca-start", gardencorev1beta1.RotationCompleting, ""},
		{"rotate-ca-start", gardencorev1beta1.RotationPrepared, ""},
		{"rotate-ca-start", gardencorev1beta1.RotationCompleted, ""},
		{"rotate-serviceaccount-key-start", gardencorev1beta1.RotationPreparing, ""},
		{"rotate-ssh-keypair", gardencorev1beta1.RotationPreparing, ""},
		{"rotate-etcd-encryption-key", gardencorev1beta1.RotationPreparing, ""},
		{"rotate-rollout-workers=*", gardencorev1beta1.RotationPreparing, ""},
	} {
		if got := stepUnderWay(with("Succeeded", inPhase(test.phase)), test.operation); got != test.want {
			t.Errorf("%s while %s: got %q", test.operation, test.phase, got)
		}
	}
}

// What is replaced in one step is not asked for again until that is done. Then it can be asked for anew.
func TestOneStepUnderWay(t *testing.T) {
	earlier, later := new(metav1.NewTime(today.Add(-time.Minute))), new(metav1.NewTime(today))
	keys := func(began, completed *metav1.Time) gardencorev1beta1.ShootCredentialsRotation {
		return gardencorev1beta1.ShootCredentialsRotation{
			SSHKeypair: &gardencorev1beta1.ShootSSHKeypairRotation{
				LastInitiationTime: began, LastCompletionTime: completed,
			},
		}
	}
	encryption := func(phase gardencorev1beta1.CredentialsRotationPhase) gardencorev1beta1.ShootCredentialsRotation {
		return gardencorev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}
	}
	for _, test := range []struct {
		operation string
		rotation  gardencorev1beta1.ShootCredentialsRotation
		want      string
	}{
		{"rotate-ssh-keypair", keys(later, nil), "ssh-keypair is under way"},
		{"rotate-ssh-keypair", keys(later, earlier), "ssh-keypair is under way"},
		{"rotate-ssh-keypair", keys(earlier, later), ""},
		{"rotate-ssh-keypair", keys(nil, nil), ""},
		{"rotate-credentials-start", keys(later, nil), ""},
		{"rotate-etcd-encryption-key", encryption(gardencorev1beta1.RotationPrepared), "etcd-encryption-key is Prepared"},
		{"rotate-etcd-encryption-key", encryption(gardencorev1beta1.RotationCompleting),
			"etcd-encryption-key is Completing"},
		{"rotate-etcd-encryption-key", encryption(gardencorev1beta1.RotationCompleted), ""},
		{"rotate-etcd-encryption-key-start", encryption(gardencorev1beta1.RotationPrepared), ""},
	} {
		shoot := with("Processing", func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &test.rotation}
		})
		if got := stepUnderWay(shoot, test.operation); got != test.want {
			t.Errorf("%s with %+v: got %q", test.operation, test.rotation, got)
		}
	}
}

// Who updates a shoot again waits for the update that is under way. When that is over, there is nothing to update.
func TestAnUpdateIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		profiled := func(s *gardencorev1beta1.Shoot) {
			imaged(s)
			s.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
		}
		s := session(t, Target{Project: "demo", Shoot: "one"}, watches(idle, seeing(with("Succeeded", profiled))),
			append(offered(), with("Processing", profiled))...)
		u := upgrading{kubernetes: "1.37", image: "newest"}
		got := twice(t, func(command *cobra.Command) error { return s.upgrade(command, u, aMinute) })
		const want = "Shoot garden-demo/one is being updated: spec.provider.workers: all pools have that image " +
			"already (Reconcile Processing (100%))\nShoot garden-demo/one is done\n"
		if got != want {
			t.Errorf("got %s", got)
		}
		command, out, _ := called(t, "")
		if err := s.upgrade(command, upgrading{kubernetes: "1.37", image: "13.0.0"}, waiting{}); err != nil ||
			!strings.Contains(out.String(), "image debian 13.0.0, before 12.11.0") {
			t.Errorf("what is new beside it: got %v\n%s", err, out)
		}
		done := &gardencorev1beta1.Shoot{}
		key := client.ObjectKey{Namespace: "garden-demo", Name: "one"}
		if err := s.client.Get(t.Context(), key, done); err != nil {
			t.Fatal(err)
		}
		done.Status.LastOperation.State = gardencorev1beta1.LastOperationStateSucceeded
		if err := s.client.Status().Update(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		if err := s.upgrade(command, upgrading{kubernetes: "1.37"}, aMinute); err == nil ||
			!strings.Contains(err.Error(), "the shoot has 1.37.1 already; see what is offered") {
			t.Errorf("got %v", err)
		}
	})
}
