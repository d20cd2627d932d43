package managedresource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statefulSets is the kind whose claims stay when it is deleted.
var statefulSets = schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}

// removeWithClaims deletes a StatefulSet and the claims of its pods, and says whether the set is gone. The set waits
// for its pods (foreground deletion): until then it makes no new claims, and who begins anew here finds it again. Its
// own retention policy would be no help: it also acts when somebody else deletes the set.
func (a applier) removeWithClaims(ctx context.Context, key client.ObjectKey) (gone bool, err error) {
	set := &appsv1.StatefulSet{}
	if err := a.client.Get(ctx, key, set); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp == nil {
		err := a.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, a.removeClaims(ctx, set)
}

// removeClaims deletes the claims that were made for a StatefulSet's pods, those of replicas it no longer has included.
func (a applier) removeClaims(ctx context.Context, set *appsv1.StatefulSet) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return err
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := a.client.List(ctx, claims, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing the claims of its pods: %w", err)
	}
	var errs []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.DeletionTimestamp != nil || !isClaimOf(set, claim.Name) {
			continue
		}
		if err := a.client.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting the claim %s of its pods: %w", claim.Name, err))
		}
	}
	return errors.Join(errs...)
}

// isClaimOf says whether a claim is named as one for a pod of the set: <template>-<set>-<ordinal>.
func isClaimOf(set *appsv1.StatefulSet, claim string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		prefix := set.Spec.VolumeClaimTemplates[i].Name + "-" + set.Name + "-"
		if ordinal, found := strings.CutPrefix(claim, prefix); found {
			if _, err := strconv.ParseUint(ordinal, 10, 31); err == nil {
				return true
			}
		}
	}
	return false
}
