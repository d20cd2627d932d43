package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// TestWhatNeverRunsStarvesNobody has a member with room for four, which is promised to a Deployment whose pods a quota
// refuses. As long as the member's controllers have not looked at it, they may come; then another Deployment gets the
// room.
func TestWhatNeverRunsStarvesNobody(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, func(options *controllers.Options) { options.PromiseLapse = time.Second })
	server := newSmallMember(1, 4)
	t.Cleanup(server.Close)
	runs := server.Changed
	server.Changed = func(resource, namespace, name string, value map[string]any) {
		if name != "refused" {
			runs(resource, namespace, name, value)
		} else if metadata, ok := value["metadata"].(map[string]any); ok {
			metadata["generation"] = 1
		}
	}
	w.joinSimulated(t, "quota", server.Server)
	namespace := w.newNamespace(t)
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-room"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         aggregatedIn("quota"),
		},
	}
	refused := oneCore(namespace, "refused")
	refused.Spec.Replicas = new(int32(4))
	if err := w.fleet.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Create(ctx, refused); err != nil {
		t.Fatal(err)
	}
	w.hasPlace(t, namespace, "refused")
	if err := w.fleet.Create(ctx, oneCore(namespace, "other")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other one has no room", func() error {
		b, err := w.bindingNamed(namespace, "other")
		if err != nil {
			return err
		}
		scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
		if scheduled == nil || scheduled.Reason != workv1alpha2.ReasonUnschedulable ||
			!strings.Contains(scheduled.Message, "room for 0 of 1 replicas") {
			return fmt.Errorf("condition is %+v", scheduled)
		}
		return nil
	})
	server.Put("deployments", namespace, "refused",
		map[string]any{"status": map[string]any{"observedGeneration": 1, "unavailableReplicas": 4}})
	w.hasPlace(t, namespace, "other")
	w.hasPlace(t, namespace, "refused")
}

// TestRoomForWhatDoesNotRunIsTold has a member with room for four, all of it promised to a Deployment that the member
// has looked at and whose pods never come: another one is told so, since the room looks free.
func TestRoomForWhatDoesNotRunIsTold(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	server := newSmallMember(1, 4)
	t.Cleanup(server.Close)
	server.Changed = func(resource, namespace, name string, value map[string]any) {
		if metadata, ok := value["metadata"].(map[string]any); ok && resource == "deployments" {
			metadata["generation"] = 1
			value["status"] = map[string]any{"observedGeneration": 1, "unavailableReplicas": 4}
		}
	}
	w.joinSimulated(t, "idle", server.Server)
	namespace := w.newNamespace(t)
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-room"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         aggregatedIn("idle"),
		},
	}
	refused := oneCore(namespace, "refused")
	refused.Spec.Replicas = new(int32(4))
	if err := w.fleet.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Create(ctx, refused); err != nil {
		t.Fatal(err)
	}
	w.hasPlace(t, namespace, "refused")
	eventually(t, "the member tells that none of it runs", func() error {
		b, err := w.bindingNamed(namespace, "refused")
		if err == nil && (len(b.Status.AggregatedStatus) == 0 || b.Status.AggregatedStatus[0].Status == nil) {
			err = fmt.Errorf("status is %+v", b.Status.AggregatedStatus)
		}
		return err
	})
	if err := w.fleet.Create(ctx, oneCore(namespace, "other")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other one knows why it has no room", func() error {
		b, err := w.bindingNamed(namespace, "other")
		if err != nil {
			return err
		}
		const want = "room for 0 of 1 replicas; room for 1 more is promised to replicas of other objects that were " +
			"sent there and do not start"
		if scheduled := meta.FindStatusCondition(b.Status.Conditions,
			workv1alpha2.ConditionScheduled); scheduled == nil || !strings.Contains(scheduled.Message, want) {
			return fmt.Errorf("condition is %+v", scheduled)
		}
		return nil
	})
}

func (w *world) bindingNamed(namespace, deployment string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	return b, w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: deployment + "-deployment"}, b)
}

// hasPlace waits until a Deployment is placed.
func (w *world) hasPlace(t *testing.T, namespace, deployment string) {
	t.Helper()
	eventuallyWithin(t, time.Minute, deployment+" has a place", func() error {
		b, err := w.bindingNamed(namespace, deployment)
		if err != nil {
			return err
		}
		if len(b.Spec.Clusters) == 0 {
			return fmt.Errorf("conditions are %+v", b.Status.Conditions)
		}
		return nil
	})
}
