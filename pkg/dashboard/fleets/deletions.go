package fleets

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	// maxAnswered bounds how many deletions are answered at once.
	maxAnswered = 500
	// worksInPage are read at a time, as they have whole objects.
	worksInPage = 100
)

// Key of an object in a namespace.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Held is a deletion that waits for a confirmation.
type Held struct {
	Work    Key         `json:"work"`
	Cluster string      `json:"cluster"`
	Object  Object      `json:"object"`
	Since   metav1.Time `json:"since"`
}

// deletions lists those that wait.
func (h *Handler) deletions(ctx context.Context, fleet client.Client, _ *http.Request) (any, error) {
	items := []Held{}
	list := &workv1alpha1.WorkList{}
	for {
		if err := fleet.List(ctx, list, client.Limit(worksInPage), client.Continue(list.Continue)); err != nil {
			return nil, fmt.Errorf("listing Works: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].DeletionHeld() {
				items = append(items, heldOf(&list.Items[i]))
			}
		}
		if list.Continue == "" {
			return map[string]any{"items": items}, nil
		}
		forget(ctx)
		list = &workv1alpha1.WorkList{ListMeta: metav1.ListMeta{Continue: list.Continue}}
	}
}

func heldOf(w *workv1alpha1.Work) Held {
	cluster, _ := clusterv1alpha1.ClusterOf(w.Namespace)
	held := Held{Work: Key{w.Namespace, w.Name}, Cluster: cluster, Since: *w.DeletionTimestamp}
	object := &unstructured.Unstructured{}
	if len(w.Spec.Workload.Manifests) > 0 && object.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw) == nil {
		held.Object = Object{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()}
	}
	return held
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
