package fleets

import (
	"context"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// maxAnswered bounds how many deletions are answered at once.
const maxAnswered = 500

// Key of an object in a namespace.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// answer confirms deletions, or has the objects kept.
func (h *Handler) answer(ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
	var body struct {
		Works  []Key  `json:"works"`
		Answer string `json:"answer"`
	}
	if err := reply.Read(r, &body); err != nil {
		return nil, err
	}
	answer, found := map[string]string{
		"confirm": workv1alpha1.ConfirmDeletionYes, "keep": workv1alpha1.ConfirmDeletionKeep,
	}[body.Answer]
	switch {
	case !found:
		return nil, reply.BadRequest("answer must be confirm or keep")
	case len(body.Works) == 0 || len(body.Works) > maxAnswered:
		return nil, reply.BadRequest("works: from 1 to %d may be answered at once", maxAnswered)
	}
	answered, gone := 0, 0
	for _, key := range body.Works {
		done, err := answerOne(ctx, fleet, key, answer)
		if err != nil {
			return nil, err
		}
		if done {
			answered++
		} else {
			gone++
		}
	}
	return map[string]int{"answered": answered, "gone": gone}, nil
}

// answerOne is false if nothing waits any more. Whatever else is no Work of a deletion that is held is left alone.
func answerOne(ctx context.Context, fleet client.Client, key Key, answer string) (bool, error) {
	if key.Namespace == "" || key.Name == "" || strings.Contains(key.Namespace+key.Name, "/") {
		return false, reply.BadRequest("works: each has a namespace and a name")
	}
	w := &workv1alpha1.Work{}
	err := fleet.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, w)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !w.DeletionHeld() {
		return false, nil
	}
	before := w.DeepCopy()
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	w.Annotations[workv1alpha1.ConfirmDeletionAnnotation] = answer
	if err := fleet.Patch(ctx, w, client.MergeFrom(before)); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}
