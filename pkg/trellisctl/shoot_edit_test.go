package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// editor plays one: each time it is opened, it does the next edit to what it shows.
type editor struct {
	t     *testing.T
	edits []func(text string) string
	shown []string
}

func (e *editor) open(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(e.shown) == len(e.edits) {
		e.t.Fatalf("the editor is opened once more, with\n%s", text)
	}
	edited := e.edits[len(e.shown)](string(text))
	e.shown = append(e.shown, string(text))
	return os.WriteFile(path, []byte(edited), 0o600)
}

func replacing(old, by string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, by) }
}

// edited runs an editor with a shoot that has a purpose, and returns what it told.
func edited(t *testing.T, functions interceptor.Funcs, edits ...func(string) string) (e *editor,
	after *gardencorev1beta1.Shoot, told string, changed bool, err error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	tested := func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = new(gardencorev1beta1.ShootPurposeTesting) }
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions, with("Succeeded", tested))
	e = &editor{t: t, edits: edits}
	var out bytes.Buffer
	session := &editing{
		client: s.client, key: client.ObjectKey{Namespace: "garden-demo", Name: "one"}, editor: e.open, out: &out,
	}
	changed, err = session.run(t.Context())
	after, readErr := s.Shoot(t.Context())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return e, after, out.String(), changed, err
}

// files are what is left in the folder for temporary files.
func files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, entry := range entries {
		text, err := os.ReadFile(os.TempDir() + "/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func TestEdit(t *testing.T) {
	e, after, told, changed, err := edited(t, interceptor.Funcs{},
		replacing("purpose: testing", "purpose: development"))
	if err != nil || !changed || told != "" || *after.Spec.Purpose != "development" {
		t.Errorf("got %+v, %q, %v", after.Spec, told, err)
	}
	if strings.Contains(e.shown[0], "status:") || strings.Contains(e.shown[0], "resourceVersion") {
		t.Errorf("shown is\n%s", e.shown[0])
	}
	if left := files(t); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

func TestEditingNothing(t *testing.T) {
	for name, edit := range map[string]func(string) string{
		"nothing saved": func(text string) string { return text }, "all deleted": func(string) string { return "" },
		"another form": replacing("purpose: testing", `"purpose": "testing"`),
	} {
		_, _, told, changed, err := edited(t, interceptor.Funcs{}, edit)
		if err != nil || changed || told != "" || len(files(t)) > 0 {
			t.Errorf("%s: got %t, %q, %v", name, changed, told, err)
		}
	}
}

// refusing plays a garden that refuses a purpose.
func refusingPurpose(purpose, message string) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			data, err := patch.Data(object)
			if err == nil && strings.Contains(string(data), purpose) {
				return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), "one", field.ErrorList{
					field.Invalid(field.NewPath("spec", "purpose"), purpose, message),
				})
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}
}

// What the garden refuses comes back with the reason, and can be corrected.
func TestEditingWhatIsRefused(t *testing.T) {
	e, after, told, changed, err := edited(t, refusingPurpose("fun", "choose another"),
		replacing("purpose: testing", "purpose: fun"), replacing("purpose: fun", "purpose: production"))
	if err != nil || !changed || told != "" || *after.Spec.Purpose != "production" {
		t.Fatalf("got %+v, %q, %v", after.Spec, told, err)
	}
	if !strings.Contains(e.shown[1], "\n#~   ") || !strings.Contains(e.shown[1], "choose another") ||
		!strings.Contains(e.shown[1], "\n  purpose: fun\n") {
		t.Errorf("shown is\n%s", e.shown[1])
	}
}

// Mistakes in YAML come back, too, and so does another name.
func TestEditingWhatIsNoShoot(t *testing.T) {
	e, after, _, changed, err := edited(t, interceptor.Funcs{}, replacing("purpose: testing", "purpose: [testing"),
		replacing("purpose: [testing", "purpose: testing\n  purpose: evaluation"),
		func(text string) string {
			text = strings.ReplaceAll(text, "  purpose: testing\n", "")
			return strings.ReplaceAll(text, "name: one\n", "name: two\n")
		}, replacing("name: two\n", "name: one\n"))
	if err != nil || !changed || *after.Spec.Purpose != "evaluation" {
		t.Fatalf("got %+v, %v", after, err)
	}
	for i, want := range []string{"", "what was saved is no YAML", "what was saved is no YAML", "cannot be changed"} {
		if !strings.Contains(e.shown[i], want) {
			t.Errorf("%d: shown is\n%s", i, e.shown[i])
		}
	}
}

// Who gives up after a refusal finds what was typed in a file, and so does whose garden fails.
func TestWhatWasTypedIsKept(t *testing.T) {
	broken := interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("connection refused")
		},
	}
	typed := replacing("purpose: testing", "purpose: fun")
	for name, test := range map[string]struct {
		functions interceptor.Funcs
		edits     []func(string) string
		want      string
	}{
		"given up": {
			refusingPurpose("fun", "no"), []func(string) string{typed, func(text string) string { return text }},
			"nothing was changed after the garden refused it",
		},
		"no garden": {broken, []func(string) string{typed}, "connection refused"},
	} {
		_, after, told, _, err := edited(t, test.functions, test.edits...)
		if err == nil || !strings.Contains(err.Error(), test.want) || *after.Spec.Purpose != "testing" {
			t.Errorf("%s: got %v", name, err)
		}
		left := files(t)
		if len(left) != 1 || !strings.Contains(left[0], "purpose: fun") ||
			!strings.Contains(told, "is kept in "+os.TempDir()) {
			t.Errorf("%s: left is %v, told %q", name, left, told)
		}
	}
}

// What somebody else changed while the editor was open is not undone: both changes are shown together.
func TestEditingTogether(t *testing.T) {
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
				other.Spec.Kubernetes.Version = "1.36.9"
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}
	e, after, _, changed, err := edited(t, functions, replacing("purpose: testing", "purpose: development"),
		func(text string) string { return text + "\n" })
	if err != nil || !changed || *after.Spec.Purpose != "development" || after.Spec.Kubernetes.Version != "1.36.9" {
		t.Fatalf("got %+v, %t, %v", after.Spec, changed, err)
	}
	if !strings.Contains(e.shown[1], "somebody else changed the shoot meanwhile") ||
		!strings.Contains(e.shown[1], "version: 1.36.9") || !strings.Contains(e.shown[1], "purpose: development") {
		t.Errorf("shown is\n%s", e.shown[1])
	}
}

// TestAttackReasonsInTheEditor: what the garden's webhooks and extensions answer stays within comments; it becomes
// neither a field of the Shoot nor the end of a line for any reader of YAML.
func TestAttackReasonsInTheEditor(t *testing.T) {
	const evil = "no\nspec:\n  seedName: mine\r  purpose: infrastructure\u0085evil: true\u2028a: b\n#~\n\x1b[2J"
	for _, refused := range []error{errors.New(evil), nil} {
		head := comments(refused)
		for line := range strings.Lines(head) {
			if !strings.HasPrefix(line, "#~ ") {
				t.Errorf("%q is no comment", line)
			}
		}
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(head+"kind: Shoot\n"), &fields); err != nil || len(fields) != 1 {
			t.Errorf("got %v, %v", fields, err)
		}
		if rest := withoutComments(head + "# mine\nkind: Shoot\n"); rest != "# mine\nkind: Shoot\n" {
			t.Errorf("got %q", rest)
		}
	}
}

func TestWithoutComments(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "#~": "", "#~ a\n#~ b\nc\n#~ d\n": "c\n#~ d\n", "# mine\n#~ x\n": "# mine\n#~ x\n",
	} {
		if got := withoutComments(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// Editors of users are commands with arguments, and files have spaces.
func TestRunningAnEditor(t *testing.T) {
	path := t.TempDir() + "/a b.yaml"
	t.Setenv("KUBE_EDITOR", "sh -c 'echo edited > \"$1\"' sh")
	if err := runEditor(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "edited\n" {
		t.Errorf("got %q, %v", text, err)
	}
	t.Setenv("KUBE_EDITOR", "false")
	if err := runEditor(path); err == nil || !strings.Contains(err.Error(), `running the editor "false"`) {
		t.Errorf("got %v", err)
	}
}
