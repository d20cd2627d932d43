package trellisctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shown"
)

func (c *cli) editShootCommand() *cobra.Command {
	var w waiting
	command := &cobra.Command{
		Use:   "shoot [NAME]",
		Short: "Edit a shoot in an editor",
		Long: `Opens the shoot in the editor that $KUBE_EDITOR or $EDITOR names. The garden checks what is saved before it is written; what it
refuses comes back into the editor, with the reasons. What was typed is kept in a file when it could not be written.`,
		Example: `  trellisctl edit shoot member1 --project demo
  KUBE_EDITOR=nano trellisctl edit shoot member1 --wait`,
		Args: oneShoot, ValidArgsFunction: c.completeShoot(),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			shoot, err := session.Shoot(command.Context())
			if err != nil {
				return err
			}
			e := &editing{
				client: session.client, key: client.ObjectKeyFromObject(shoot), editor: runEditor,
				out: command.ErrOrStderr(),
			}
			changed, err := e.run(command.Context())
			if err != nil {
				return err
			}
			if !changed {
				fmt.Fprintf(command.OutOrStdout(), "Shoot %s is as it was: nothing was changed\n", e.key)
				return nil
			}
			fmt.Fprintf(command.OutOrStdout(), "Shoot %s is changed\n", e.key)
			after, err := session.Shoot(command.Context())
			if err != nil {
				return err
			}
			return session.awaitChange(command, w, shoot, after)
		},
	}
	w.flags(command)
	return command
}

// runEditor opens a file in the editor of the user, and returns when that is closed.
func runEditor(path string) error {
	editor := os.Getenv("KUBE_EDITOR")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	command := exec.Command("sh", "-c", editor+` "$1"`, "sh", path)
	switch {
	case runtime.GOOS == "windows" && editor == "":
		command = exec.Command("notepad", path)
	case runtime.GOOS == "windows":
		words := strings.Fields(editor)
		command = exec.Command(words[0], append(words[1:], path)...)
	case editor == "":
		command = exec.Command("vi", path)
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("running the editor %q ($KUBE_EDITOR, $EDITOR, or vi): %w", editor, err)
	}
	return nil
}

// editing is one session with an editor.
type editing struct {
	client client.Client
	key    client.ObjectKey
	editor func(path string) error
	// out is told where is kept what was typed.
	out io.Writer
	// path is the file that the editor opens.
	path string
	// typed: the file holds what somebody typed and what is not written.
	typed bool
}

// run has the shoot edited until the garden takes it, or the user gives up. What was typed is never lost.
func (e *editing) run(ctx context.Context) (changed bool, err error) {
	file, err := os.CreateTemp("", "trellisctl-"+e.key.Name+"-*.yaml")
	if err != nil {
		return false, fmt.Errorf("making a file for the editor: %w", err)
	}
	e.path = file.Name()
	if err := file.Close(); err != nil {
		return false, fmt.Errorf("making a file for the editor: %w", err)
	}
	changed, err = e.rounds(ctx)
	if e.typed {
		fmt.Fprintf(e.out, "What you typed is kept in %s\n", e.path)
		return changed, err
	}
	if removeErr := os.Remove(e.path); removeErr != nil && err == nil {
		err = fmt.Errorf("removing the file of the editor: %w", removeErr)
	}
	return changed, err
}

func (e *editing) rounds(ctx context.Context) (changed bool, err error) {
	base, err := e.read(ctx)
	if err != nil {
		return false, err
	}
	text, err := editable(base)
	if err != nil {
		return false, err
	}
	var refused error
	for {
		saved, err := e.open(text, refused)
		if err != nil {
			return false, err
		}
		original, err := editable(base)
		if err != nil {
			return false, err
		}
		switch {
		case strings.TrimSpace(saved) == "" || refused == nil && saved == original:
			e.typed = false
			return false, nil
		case refused != nil && saved == text:
			return false, fmt.Errorf("nothing was changed after the garden refused it: %w", refused)
		}
		e.typed = true
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		patch, err := patchOf(original, saved)
		if err == nil {
			err = e.write(ctx, base, patch)
		}
		switch {
		case err == nil:
			e.typed = false
			return patch != nil, nil
		case apierrors.IsConflict(err):
			if base, saved, err = e.rebase(ctx, patch); err != nil {
				return false, err
			}
			err = errors.New("somebody else changed the shoot meanwhile; here is your change of what it is now: " +
				"look at it and save it, with any change such as an empty line")
		case !isCorrectable(err):
			return false, err
		}
		text, refused = saved, err
	}
}

// open has a text edited, below the reasons why it was refused.
func (e *editing) open(text string, refused error) (string, error) {
	if err := os.WriteFile(e.path, []byte(comments(refused)+text), 0o600); err != nil {
		return "", fmt.Errorf("writing the file of the editor: %w", err)
	}
	editorErr := e.editor(e.path)
	saved, err := os.ReadFile(e.path)
	if err != nil {
		return "", errors.Join(editorErr, fmt.Errorf("reading the file of the editor: %w", err))
	}
	result := withoutComments(string(saved))
	if editorErr != nil {
		e.typed = e.typed || result != text
		return "", editorErr
	}
	return result, nil
}

// mark begins our lines at the head of the file; comments of the user have others.
const mark = "#~ "

// comments is the head of the file. Whatever a reason holds, it stays within comments.
func comments(refused error) string {
	lines := []string{"Edit the shoot below and save it; save nothing, or an empty file, to change nothing."}
	if refused != nil {
		lines = append(lines, "Not written:")
		for line := range strings.SplitSeq(refused.Error(), "\n") {
			lines = append(lines, "  "+shown.Text(line))
		}
	}
	return mark + strings.Join(lines, "\n"+mark) + "\n"
}

// withoutComments takes our head away.
func withoutComments(text string) string {
	for strings.HasPrefix(text, strings.TrimSpace(mark)) {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

func (e *editing) read(ctx context.Context) (*unstructured.Unstructured, error) {
	shoot := &unstructured.Unstructured{}
	shoot.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	if err := e.client.Get(ctx, e.key, shoot); err != nil {
		return nil, fmt.Errorf("reading shoot %s: %w", e.key, err)
	}
	return shoot, nil
}

// editable is what of a shoot people may edit, as YAML.
func editable(shoot *unstructured.Unstructured) (string, error) {
	metadata := map[string]any{"name": shoot.GetName(), "namespace": shoot.GetNamespace()}
	if labels := shoot.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := shoot.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": shoot.GetAPIVersion(), "kind": shoot.GetKind(), "metadata": metadata,
		"spec": shoot.Object["spec"],
	})
	return string(text), err
}

// patchOf is the merge patch between two texts; nil if they mean the same.
func patchOf(original, saved string) ([]byte, error) {
	before, err := yaml.YAMLToJSON([]byte(original))
	if err != nil {
		return nil, err
	}
	after, err := yaml.YAMLToJSONStrict([]byte(saved))
	if err != nil {
		return nil, notWritten{fmt.Errorf("what was saved is no YAML: %w", err)}
	}
	var was, is struct {
		APIVersion string
		Kind       string
		Metadata   struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(before, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, &is); err != nil {
		return nil, notWritten{fmt.Errorf("what was saved is no Shoot: %w", err)}
	}
	if was != is {
		return nil, notWritten{errors.New("apiVersion, kind, metadata.name and metadata.namespace cannot be changed: " +
			"put them back; another shoot is made by trellisctl create shoot")}
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, notWritten{fmt.Errorf("what was saved cannot be compared: %w", err)}
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	return patch, nil
}

// notWritten is a mistake in what was saved, which can be corrected in the editor.
type notWritten struct{ error }

func (n notWritten) Unwrap() error { return n.error }

// isCorrectable tells what can be corrected in the editor from what cannot.
func isCorrectable(err error) bool {
	var mistake notWritten
	return errors.As(err, &mistake) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err)
}

// write has the garden check a patch, and then takes it. It fails with a conflict if somebody else has changed what
// people edit since it was read; the status of a shoot is written all the time.
func (e *editing) write(ctx context.Context, base *unstructured.Unstructured, patch []byte) error {
	if patch == nil {
		return nil
	}
	for _, options := range [][]client.PatchOption{
		{client.DryRunAll, client.FieldValidation("Strict")}, {client.FieldValidation("Strict")},
	} {
		if err := e.patch(ctx, base, patch, options); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often the status may be written between reading and patching a shoot.
const tries = 10

func (e *editing) patch(ctx context.Context, base *unstructured.Unstructured, patch []byte,
	options []client.PatchOption) error {
	want, err := editable(base)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		current, err := e.read(ctx)
		if err != nil {
			return err
		}
		is, err := editable(current)
		if err != nil {
			return err
		}
		if is != want || current.GetUID() != base.GetUID() {
			return apierrors.NewConflict(gardencorev1beta1.Resource("shoots"), e.key.Name,
				errors.New("somebody else changed the shoot"))
		}
		locked, err := jsonpatch.MergeMergePatches(patch,
			fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, current.GetResourceVersion()))
		if err != nil {
			return err
		}
		err = e.client.Patch(ctx, current, client.RawPatch(types.MergePatchType, locked), options...)
		if err == nil || !apierrors.IsConflict(err) || i >= tries {
			return err
		}
	}
}

// rebase makes the same change of the shoot as it is now.
func (e *editing) rebase(ctx context.Context, patch []byte) (base *unstructured.Unstructured, text string, err error) {
	if base, err = e.read(ctx); err != nil {
		return nil, "", err
	}
	if text, err = editable(base); err != nil {
		return nil, "", err
	}
	before, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, "", err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, "", err
	}
	changed, err := yaml.JSONToYAML(after)
	return base, string(changed), err
}
