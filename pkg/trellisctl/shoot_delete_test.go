package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// kept has a finalizer, so that it stays while it is deleted.
func kept(s *gardencorev1beta1.Shoot) { s.Finalizers = []string{gardencorev1beta1.GardenerName} }

func TestDelete(t *testing.T) {
	object := with("Succeeded", kept)
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, object)
	shoot, err := s.Shoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	command, out, _ := called(t, "")
	generation := shoot.Generation
	if err := s.deleteShoot(command, shoot, &generation); err != nil || generation <= shoot.Generation {
		t.Fatalf("got generation %d, %v", generation, err)
	}
	deleted, err := s.Shoot(t.Context())
	if err != nil || deleted.DeletionTimestamp == nil ||
		deleted.Annotations[gardencorev1beta1.ConfirmationDeletion] != "true" {
		t.Fatalf("got %+v, %v", deleted, err)
	}
	if err := s.deleteShoot(command, deleted, &generation); err != nil {
		t.Error(err)
	}
	const want = "Shoot garden-demo/one is being deleted\nShoot garden-demo/one is being deleted already\n"
	if out.String() != want {
		t.Errorf("got %q", out)
	}
}

// A shoot of the same name that somebody made meanwhile is none that was confirmed.
func TestAnotherShootIsNotDeleted(t *testing.T) {
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{},
		with("Succeeded", func(s *gardencorev1beta1.Shoot) { s.UID = "new" }))
	command, _, _ := called(t, "")
	looked := with("Succeeded", func(s *gardencorev1beta1.Shoot) { s.UID = "old" })
	generation := int64(0)
	err := s.deleteShoot(command, looked, &generation)
	if err == nil || !strings.Contains(err.Error(), "there is another one of its name") {
		t.Errorf("got %v", err)
	}
	if still, err := s.Shoot(t.Context()); err != nil || len(still.Annotations) > 0 {
		t.Errorf("got %+v, %v", still, err)
	}
}

func TestRefusedDeletion(t *testing.T) {
	functions := interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), "one",
				errors.New("two persons are needed"))
		},
	}
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions, with("Succeeded", asItIs))
	command, _, _ := called(t, "")
	generation := int64(0)
	err := s.deleteShoot(command, with("Succeeded", asItIs), &generation)
	if err == nil || !strings.Contains(err.Error(), "confirms by now: ") ||
		!strings.Contains(err.Error(), "two persons") {
		t.Errorf("got %v", err)
	}
}

func TestConfirmation(t *testing.T) {
	s := with("Succeeded", imaged)
	for given, want := range map[string]string{
		"one": "", "two": `"two" is not the name of shoot garden-demo/one; nothing was deleted`,
		"": "confirm the deletion by --yes-delete one",
	} {
		command, _, told := called(t, "one\n")
		err := confirmDeletion(command, s, given)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", given, err)
		}
		if given == "" && !strings.Contains(told.String(), "loses: its API with all objects and their backups; 2-4 "+
			"machines (a, b) with their disks") {
			t.Errorf("got %q", told)
		}
	}
	for typed, taken := range map[string]bool{"one\n": true, " one ": true, "One\n": false, "\n": false, "": false} {
		var out bytes.Buffer
		if err := askForName(&out, strings.NewReader(typed), s); (err == nil) != taken {
			t.Errorf("%q: got %v", typed, err)
		}
	}
}

// TestAttackQuestionBeforeADeletion: the fields of a Shoot neither make lines of the question what to delete, nor
// control the terminal of who is asked.
func TestAttackQuestionBeforeADeletion(t *testing.T) {
	const evil = "x\r\x1b[2J\nShoot garden-demo/harmless loses: nothing\u2028\v"
	s := with("Succeeded", func(s *gardencorev1beta1.Shoot) {
		s.Spec.Purpose, s.Spec.Kubernetes.Version = new(gardencorev1beta1.ShootPurpose(evil)), evil
		s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: evil}}
		s.CreationTimestamp = metav1.NewTime(today)
	})
	var out bytes.Buffer
	if _, err := Visible(&out).Write([]byte(whatIsLost(s))); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(out.String(), unicode.IsControl); i >= 0 || strings.Contains(out.String(), "\u2028") {
		t.Errorf("got %q", out.String())
	}
}
