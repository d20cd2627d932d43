package federation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
)

// TestCronFederatedHPA: what was due a minute ago, while nothing ran, is made up for, and reaches the members.
func TestCronFederatedHPA(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, w.fleet, namespace, input(t, "003-karmada-cool-policy")[0])
	due := time.Now().UTC().Add(-time.Minute).Truncate(time.Minute)
	clock := parse(t, fmt.Sprintf(`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: clock}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nginx}, rules: [{name: now, schedule: "%d %d * * *", targetReplicas: 5}]}}`, due.Minute(), due.Hour()))[0]
	apply(t, w.fleet, namespace, clock)
	c := &autoscalingv1alpha1.CronFederatedHPA{}
	key := types.NamespacedName{Namespace: namespace, Name: "clock"}
	if err := w.fleet.Get(ctx, key, c); err != nil {
		t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Status.ExecutionHistories = []autoscalingv1alpha1.ExecutionHistory{
		{RuleName: "now", NextExecutionTime: new(metav1.NewTime(due))},
	}
	if err := w.fleet.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.startFederation(t)
	eventually(t, "it was executed", func() error {
		if err := w.fleet.Get(ctx, key, c); err != nil {
			return err
		}
		h := c.Status.ExecutionHistories
		if len(h) != 1 || len(h[0].SuccessfulExecutions) != 1 || *h[0].SuccessfulExecutions[0].AppliedReplicas != 5 ||
			!h[0].NextExecutionTime.After(time.Now()) {
			return fmt.Errorf("history %+v", h)
		}
		return nil
	})
	eventually(t, "the members have it", func() error {
		object, err := deployment(w.member["member1"], namespace)
		if err != nil || object.Object["spec"].(map[string]any)["replicas"] != int64(5) {
			return fmt.Errorf("%v %w", object.Object["spec"], err)
		}
		return nil
	})

	for rule, want := range map[string]string{
		`{name: a, schedule: "now", targetReplicas: 1}`:          "schedule",
		`{name: a, schedule: "0 8 * * *"}`:                       "targetReplicas",
		`{name: a, schedule: "0 8 * * *", targetMinReplicas: 1}`: "targetReplicas",
		`{name: "", schedule: "0 8 * * *", targetReplicas: 1}`:   "name",
		`{name: a, schedule: "0 8 * * *", targetReplicas: -1}`:   "targetReplicas",
	} {
		bad := parse(t, fmt.Sprintf(`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: bad, namespace: %s}, spec: {
			scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nginx}, rules: [%s]}}`, namespace, rule))[0]
		if err := w.fleet.Create(ctx, bad); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestFailedRuleIsSeen: `kubectl get` tells which rule failed when it acted last, with -o wide why, and not what failed
// before.
func TestFailedRuleIsSeen(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	object := parse(t, `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: clock}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nginx}, rules: [
		{name: good, schedule: "0 8 * * *", targetReplicas: 5}, {name: bad, schedule: "0 8 * * *", targetReplicas: 2}]}}`)[0]
	apply(t, w.fleet, namespace, object)
	clock := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "clock"}, clock); err != nil {
		t.Fatal(err)
	}
	now := new(metav1.Now())
	failed := []autoscalingv1alpha1.FailedExecution{{ScheduleTime: now, ExecutionTime: now, Message: "long ago"}}
	clock.Status.ExecutionHistories = []autoscalingv1alpha1.ExecutionHistory{
		{RuleName: "good", FailedExecutions: failed},
		{RuleName: "bad", FailedExecutions: failed, LastFailure: "spec.rules[1]: no such thing"},
	}
	if err := w.fleet.Status().Update(ctx, clock); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(w.fleetConfig)
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	text, err := answer(config, http.MethodGet,
		"/apis/autoscaling.karmada.io/v1alpha1/namespaces/"+namespace+"/cronfederatedhpas")
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		t.Fatal(err)
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[fmt.Sprintf("%s %d", column.Name, column.Priority)] = table.Rows[0].Cells[i]
	}
	if cells["Failed-Rule 0"] != "bad" || cells["Failure 1"] != "spec.rules[1]: no such thing" {
		t.Errorf("got %v", cells)
	}
}

// TestNeverActingRuleIsSeen: `kubectl get` tells why a rule never acts, also if it is not the first.
func TestNeverActingRuleIsSeen(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: clock}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nginx}, rules: [
		{name: good, schedule: "0 8 * * *", targetReplicas: 5}, {name: bad, schedule: "0 25 * * *", targetReplicas: 2}]}}`)[0])
	w.startFederation(t)
	config := rest.CopyConfig(w.fleetConfig)
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	eventually(t, "the table has the reason", func() error {
		table, err := answer(config, http.MethodGet,
			"/apis/autoscaling.karmada.io/v1alpha1/namespaces/"+namespace+"/cronfederatedhpas")
		if err != nil || !strings.Contains(table, "0 25 * * *") ||
			!strings.Contains(table, `"spec.rules[1].schedule: `) {
			return fmt.Errorf("got %s, %w", table, err)
		}
		return nil
	})
}
