package federation

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// An object is deleted while a member that has it does not answer: people are told that it stays there, until it is
// gone.
func TestWhatStaysInAMemberIsTold(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	w.cutOff(t, "member2")
	eventually(t, "member2 is known not to answer", func() error {
		cluster := &clusterv1alpha1.Cluster{}
		err := w.fleet.Get(ctx, client.ObjectKey{Name: "member2"}, cluster)
		if err == nil && meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
			err = fmt.Errorf("conditions %v", cluster.Status.Conditions)
		}
		return err
	})
	template, err := deployment(w.fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Delete(ctx, template); err != nil {
		t.Fatal(err)
	}
	pending := func() string {
		cluster := &clusterv1alpha1.Cluster{}
		if err := w.fleet.Get(ctx, client.ObjectKey{Name: "member2"}, cluster); err != nil {
			return err.Error()
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionRemovalPending)
		if condition == nil {
			return ""
		}
		return condition.Reason + ": " + condition.Message
	}
	eventually(t, "the Cluster and an event tell what stays", func() error {
		var list eventsv1.EventList
		if err := w.fleet.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == "RemovalPending" && event.Regarding.Kind == "Deployment" &&
				strings.Contains(pending(), namespace+"/nginx-deployment") {
				return nil
			}
		}
		return fmt.Errorf("condition %q, %d events", pending(), len(list.Items))
	})
	w.reconnect("member2")
	eventually(t, "nothing stays", func() error {
		if told := pending(); told != "" {
			return fmt.Errorf("condition %s", told)
		}
		return nil
	})
	w.replicasIn(t, namespace, -1, -1)
}
