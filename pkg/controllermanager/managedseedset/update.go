package managedseedset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// bring changes an object of a replica by what differs between the revision that it follows and the present templates.
// What others have set stays. Of an object whose revision is not known any more, nothing is taken away.
func (r *Reconciler) bring(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet, known history,
	object client.Object, hash string) error {
	before, found := known.templatesAt(revisionOf(object))
	if !found {
		before = templates{}
	}
	patch, err := difference(set, before, object, hash)
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// difference is the merge patch that brings an object from old templates to the present ones.
func difference(set *seedmanagementv1alpha1.ManagedSeedSet, before templates, object client.Object,
	hash string) ([]byte, error) {
	old := set.DeepCopy()
	old.Spec.Template, old.Spec.ShootTemplate = before.Template, before.ShootTemplate
	from, err := madeFor(object, old, revisionOf(object))
	if err != nil {
		return nil, err
	}
	to, err := madeFor(object, set, hash)
	if err != nil {
		return nil, err
	}
	return client.MergeFrom(from).Data(to)
}

// madeFor returns what the templates of a set make in place of an object.
func madeFor(object client.Object, set *seedmanagementv1alpha1.ManagedSeedSet, hash string) (client.Object, error) {
	if _, isManagedSeed := object.(*seedmanagementv1alpha1.ManagedSeed); isManagedSeed {
		return newManagedSeed(set, object.GetName(), hash)
	}
	return newShoot(set, object.GetName(), hash)
}
