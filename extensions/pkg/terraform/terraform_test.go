package terraform

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	namespace = "shoot--demo--one"
	someState = `{"version":4,"serial":1,"outputs":{"network":{"value":{"cidr":"10.180.0.0/24"}}}}`
)

func runner(t *testing.T, objects ...client.Object) *Runner {
	t.Helper()
	return New(Options{
		Client: fake.NewClientBuilder().WithObjects(objects...).Build(), Namespace: namespace, Name: "one",
		WorkDir: t.TempDir(), ProvidersDir: "/providers", Log: logr.Discard(),
	})
}

// playing replaces terraform by a script, which is given what it is asked for as $1.
func (r *Runner) playing(t *testing.T, script string) *Runner {
	t.Helper()
	r.options.Binary = filepath.Join(t.TempDir(), "terraform")
	if err := os.WriteFile(r.options.Binary, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// working is a terraform that succeeds.
const working = `
case "$1" in
version) echo '{"terraform_version": "1.9.0"}' ;;
init) echo init >> calls; touch .terraform.lock.hcl ;;
apply) echo apply >> calls; echo '` + someState + `' > terraform.tfstate ;;
destroy) echo destroy >> calls; cat main.tf >> destroyed ;;
esac
`

func calls(t *testing.T, r *Runner) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

// Another process goes on with what is stored: configuration, state, and the outputs in it.
func TestApplyStoresWhatItMade(t *testing.T) {
	r := runner(t).playing(t, working)
	outputs, err := r.Apply(t.Context(), "resource {}")
	if err != nil || string(outputs["network"]) != `{"cidr":"10.180.0.0/24"}` {
		t.Fatalf("got %s, %v", outputs, err)
	}
	if _, err := r.Apply(t.Context(), "resource {}"); err != nil {
		t.Fatal(err)
	}
	if got := calls(t, r); got != "init apply apply" {
		t.Errorf("called %s", got)
	}
	if _, err := r.Apply(t.Context(), "resource { changed }"); err != nil {
		t.Fatal(err)
	}
	if got := calls(t, r); got != "init apply apply init apply" {
		t.Errorf("a changed configuration: called %s", got)
	}
	other := New(r.options)
	other.dir = filepath.Join(t.TempDir(), "another-process")
	state, err := other.State(t.Context())
	if err != nil || strings.TrimSpace(string(state)) != someState {
		t.Errorf("got %s, %v", state, err)
	}
	configuration, err := other.loadConfig(t.Context())
	if err != nil || configuration != "resource { changed }" {
		t.Errorf("got %s, %v", configuration, err)
	}
}

// What exists is in the state also when terraform fails half-way; it would be forgotten, and made twice, otherwise.
func TestAFailureKeepsTheState(t *testing.T) {
	r := runner(t).playing(t, `
case "$1" in
version) echo '{"terraform_version": "1.9.0"}' ;;
init) touch .terraform.lock.hcl ;;
apply) echo '`+someState+`' > terraform.tfstate; echo '╷
│ Error: the quota is used up
╵' >&2; exit 1 ;;
esac
`)
	_, err := r.Apply(t.Context(), "resource {}")
	var failure *Error
	if !errors.As(err, &failure) || failure.Operation != "apply" ||
		!strings.Contains(err.Error(), "terraform apply for shoot--demo--one/one: ") ||
		!strings.Contains(err.Error(), "the quota is used up") {
		t.Errorf("got %v", err)
	}
	if state, err := r.State(t.Context()); err != nil || strings.TrimSpace(string(state)) != someState {
		t.Errorf("got %s, %v", state, err)
	}
}

func TestDestroy(t *testing.T) {
	r := runner(t).playing(t, working)
	if err := r.Destroy(t.Context(), ""); err != nil {
		t.Errorf("nothing was ever made: %v", err)
	}
	if _, err := r.Apply(t.Context(), "stored"); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "destroyed")
	r.playing(t, strings.ReplaceAll(working, ">> destroyed", ">> "+record))
	if err := r.Destroy(t.Context(), "fallback"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(record); err != nil || string(data) != "stored" {
		t.Errorf("destroyed by %q, %v", data, err)
	}
	for _, name := range []string{"one.infra.tf-state", "one.infra.tf-config"} {
		if err := r.options.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name},
			&corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
	// The stored configuration was lost, so what Reconcile would apply is what may be there.
	if err := r.Destroy(t.Context(), "fallback"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(record); err != nil || string(data) != "storedfallback" {
		t.Errorf("destroyed by %q, %v", data, err)
	}
}

// A destruction that fails is repeated with the same configuration and state, so neither may go.
func TestAFailedDestructionForgetsNothing(t *testing.T) {
	r := runner(t).playing(t, working)
	if _, err := r.Apply(t.Context(), "stored"); err != nil {
		t.Fatal(err)
	}
	r.playing(t, strings.Replace(working, "destroy) ", "destroy) exit 1; ", 1))
	if err := r.Destroy(t.Context(), ""); err == nil {
		t.Error("the failure is not told")
	}
	configuration, err := r.loadConfig(t.Context())
	state, stateErr := r.State(t.Context())
	if err != nil || stateErr != nil || configuration != "stored" || len(state) == 0 {
		t.Errorf("got %q, %q, %v, %v", configuration, state, err, stateErr)
	}
}

// What a former run of another seed left in the folder must not win over what is stored.
func TestTheStoredStateWins(t *testing.T) {
	r := runner(t)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{someState, ""} {
		if err := os.WriteFile(filepath.Join(r.dir, stateFile), []byte(`{"serial":99}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.writeState([]byte(stored)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.dir, stateFile))
		if string(data) != stored || (stored == "") != os.IsNotExist(err) {
			t.Errorf("got %s, %v", data, err)
		}
	}
}

// A state that arrives from another seed does not replace one that is here already.
func TestRestoreState(t *testing.T) {
	r := runner(t)
	for _, step := range []struct{ restored, want string }{
		{"", ""}, {`{"serial":1}`, `{"serial":1}`}, {`{"serial":2}`, `{"serial":1}`},
	} {
		if err := r.RestoreState(t.Context(), []byte(step.restored)); err != nil {
			t.Fatal(err)
		}
		if state, err := r.State(t.Context()); err != nil || string(state) != step.want {
			t.Errorf("restored %s: got %s, %v", step.restored, state, err)
		}
	}
}

// A state that cannot be read is an error and never an empty one: everything would be made a second time.
func TestABrokenStateIsNotAnEmptyOne(t *testing.T) {
	var half bytes.Buffer
	writer := gzip.NewWriter(&half)
	if _, err := writer.Write([]byte(someState)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"no archive": []byte("x"), "half an archive": half.Bytes()} {
		r := runner(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one.infra.tf-state"},
			Data:       map[string][]byte{keyState: data},
		})
		if state, err := r.State(t.Context()); err == nil || !strings.Contains(err.Error(), "one.infra.tf-state") {
			t.Errorf("%s: got %s, %v", name, state, err)
		}
		if _, err := r.playing(t, working).Apply(t.Context(), "resource {}"); err == nil {
			t.Errorf("%s: it was applied", name)
		}
	}
}

// While terraform writes its state, there is half of one in the file for a moment.
func TestHalfAStateIsNotStored(t *testing.T) {
	r := runner(t)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ file, want string }{{someState, someState}, {someState[:20], someState}} {
		err := r.keepingState(t.Context(), func(context.Context) error {
			return os.WriteFile(filepath.Join(r.dir, stateFile), []byte(step.file), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		if state, err := r.State(t.Context()); err != nil || string(state) != step.want {
			t.Errorf("got %s, %v", state, err)
		}
	}
}

// A process that is told to end stores what terraform wrote when it was interrupted.
func TestAnInterruptedRunIsStored(t *testing.T) {
	r := runner(t)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := r.keepingState(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return errors.Join(ctx.Err(), os.WriteFile(filepath.Join(r.dir, stateFile), []byte(someState), 0o600))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if state, err := r.State(t.Context()); err != nil || string(state) != someState {
		t.Errorf("got %s, %v", state, err)
	}
}

func TestMissingProgram(t *testing.T) {
	r := runner(t)
	r.options.Binary = "/no/such/terraform"
	if _, err := r.Apply(t.Context(), "resource {}"); err == nil ||
		!strings.Contains(err.Error(), "is /no/such/terraform in the image?") {
		t.Errorf("got %v", err)
	}
}

// Credentials are for the process only.
func TestCredentialsAreNotStored(t *testing.T) {
	r := runner(t).playing(t, strings.Replace(working, "apply) ", `apply) test "$CLOUD_TOKEN" = secret || exit 1; `, 1))
	r.options.Env = map[string]string{"CLOUD_TOKEN": "secret"}
	if _, err := r.Apply(t.Context(), "resource {}"); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := r.options.Client.List(t.Context(), secrets); err != nil || len(secrets.Items) != 2 {
		t.Fatalf("got %v, %v", secrets.Items, err)
	}
	for _, name := range []string{configFile, "terraform.rc"} {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || strings.Contains(string(data), "secret") {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
	if rc := r.cliConfig(); !strings.Contains(rc, `path = "/providers"`) || strings.Contains(rc, "direct") {
		t.Errorf("providers may come from elsewhere: %s", rc)
	}
}

func TestSummarize(t *testing.T) {
	for output, want := range map[string]string{
		"exit status 1\n\n╷\n│ Error: no such network\n│ \n│   with local_network.machines,\n" +
			"╵\n": "exit status 1 Error: no such network with local_network.machines,",
		"": "", "one line": "one line",
	} {
		if got := summarize(output); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzParseOutputs(f *testing.F) {
	f.Add([]byte(someState))
	f.Add([]byte(`{"outputs":null}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		outputs, err := parseOutputs(state)
		if err != nil && outputs != nil {
			t.Errorf("got both %v and %v", outputs, err)
		}
	})
}
