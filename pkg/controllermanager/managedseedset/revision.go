package managedseedset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const (
	defaultHistoryLimit = 10
	revisionHashLength  = 10
)

// templates are what a revision keeps: replicas that follow it are compared with them when they are brought to another
// one.
type templates struct {
	Template      seedmanagementv1alpha1.ManagedSeedTemplate `json:"template"`
	ShootTemplate gardencorev1beta1.ShootTemplate            `json:"shootTemplate"`
}

// hash names a revision by what its templates say.
func (t templates) hash() (string, []byte, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:revisionHashLength], raw, nil
}

func templatesOf(set *seedmanagementv1alpha1.ManagedSeedSet) templates {
	return templates{Template: set.Spec.Template, ShootTemplate: set.Spec.ShootTemplate}
}

// history is the revisions of a set, the oldest first.
type history []appsv1.ControllerRevision

// revisions returns the revisions of a set. That of its present templates is made if need be; it is the last one.
func (r *Reconciler) revisions(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet) (history, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.Replicas.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	known := history(slices.DeleteFunc(list.Items,
		func(revision appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&revision, set) }))
	slices.SortFunc(known, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	hash, raw, err := templatesOf(set).hash()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(known, func(revision appsv1.ControllerRevision) bool {
		return revision.Labels[revisionLabel] == hash
	})
	if i >= 0 && i == len(known)-1 {
		return known, nil
	}
	next := known.next()
	if i >= 0 {
		return known.movedLast(i, next,
			func(revision *appsv1.ControllerRevision) error { return r.Client.Update(ctx, revision) })
	}
	revision := newRevision(set, hash, raw, next)
	if err := r.Client.Create(ctx, revision); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	return append(known, *revision), nil
}

// last is the revision of the present templates.
func (h history) last() string { return h[len(h)-1].Labels[revisionLabel] }

// next is a number that is higher than those of all revisions.
func (h history) next() int64 {
	if len(h) == 0 {
		return 1
	}
	return h[len(h)-1].Revision + 1
}

// movedLast makes an old revision the newest: templates were changed back.
func (h history) movedLast(i int, number int64, write func(*appsv1.ControllerRevision) error) (history, error) {
	revision := h[i]
	revision.Revision = number
	if err := write(&revision); err != nil {
		return nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	return append(slices.Delete(h, i, i+1), revision), nil
}

func newRevision(set *seedmanagementv1alpha1.ManagedSeedSet, hash string, raw []byte,
	number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + hash, Labels: map[string]string{revisionLabel: hash},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeedSet")),
			},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
}

// templatesAt returns the templates of a revision, and whether it is known.
func (h history) templatesAt(hash string) (templates, bool) {
	for _, revision := range h {
		if hash != "" && revision.Labels[revisionLabel] == hash {
			var kept templates
			return kept, json.Unmarshal(revision.Data.Raw, &kept) == nil
		}
	}
	return templates{}, false
}

// prune deletes the oldest revisions that no replica follows, down to the limit of the set.
func (r *Reconciler) prune(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, known history,
	replicas []replica) error {
	for _, revision := range superfluous(known, replicas,
		int(ptr.Deref(set.Spec.RevisionHistoryLimit, defaultHistoryLimit))) {
		if err := r.Client.Delete(ctx, &revision); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("revision %s: %w", revision.Name, err)
		}
	}
	return nil
}

// superfluous returns the old revisions beyond the limit, the oldest first. Those that replicas follow do not count,
// nor does the last.
func superfluous(known history, replicas []replica, limit int) []appsv1.ControllerRevision {
	followed := map[string]bool{}
	for _, replica := range replicas {
		for _, object := range replica.objects() {
			followed[revisionOf(object)] = true
		}
	}
	var old []appsv1.ControllerRevision
	for i, revision := range known {
		if i < len(known)-1 && !followed[revision.Labels[revisionLabel]] {
			old = append(old, revision)
		}
	}
	return old[:max(len(old)-limit, 0)]
}
