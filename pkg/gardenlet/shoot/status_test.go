package shoot

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

var now = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func TestLastErrors(t *testing.T) {
	quota := &extension.Error{Kind: "Infrastructure", Name: "x", Description: "too many networks", Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded}}
	for _, test := range []struct {
		name  string
		err   error
		tasks []string
		codes []gardencorev1beta1.ErrorCode
	}{
		{"none", nil, nil, nil},
		{"not of a task", errors.New("no"), []string{""}, nil},
		{"a user's mistake", &configurationError{errors.New("no")}, []string{""}, []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}},
		{"of tasks", flow.Errors{
			{TaskID: "Deploying infrastructure", Err: fmt.Errorf("waiting: %w", flow.Permanent(quota))},
			{TaskID: "Deploying main etcd", Err: errors.New("no storage")},
		}, []string{"Deploying infrastructure", "Deploying main etcd"}, quota.Codes},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := lastErrors(test.err, now)
			var tasks []string
			var codes []gardencorev1beta1.ErrorCode
			for _, e := range got {
				tasks = append(tasks, ptr.Deref(e.TaskID, ""))
				codes = append(codes, e.Codes...)
			}
			if !slices.Equal(tasks, test.tasks) || !slices.Equal(codes, test.codes) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestFailed(t *testing.T) {
	hourAgo := metav1.NewTime(now.Add(-time.Hour))
	for _, test := range []struct {
		name  string
		cause error
		since metav1.Time
		want  gardencorev1beta1.LastOperationState
	}{
		{"will be retried", errors.New("no"), now, gardencorev1beta1.LastOperationStateError},
		{"tried for too long", errors.New("no"), hourAgo, gardencorev1beta1.LastOperationStateFailed},
		{"nothing to be done", &configurationError{errors.New("no")}, now, gardencorev1beta1.LastOperationStateFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := &gardencorev1beta1.ShootStatus{RetryCycleStartTime: &test.since, LastOperation: &gardencorev1beta1.LastOperation{}}
			failed(test.cause, 30*time.Minute, now)(status)
			if status.LastOperation.State != test.want || len(status.LastErrors) != 1 {
				t.Errorf("got %+v, errors %v", status.LastOperation, status.LastErrors)
			}
		})
	}
}

func TestOperationType(t *testing.T) {
	last := func(t gardencorev1beta1.LastOperationType, s gardencorev1beta1.LastOperationState) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{Type: t, State: s}
	}
	for _, test := range []struct {
		last     *gardencorev1beta1.LastOperation
		deleting bool
		want     gardencorev1beta1.LastOperationType
	}{
		{nil, false, gardencorev1beta1.LastOperationTypeCreate},
		{last("Create", "Pending"), false, gardencorev1beta1.LastOperationTypeCreate},
		{last("Create", "Error"), false, gardencorev1beta1.LastOperationTypeCreate},
		{last("Create", "Succeeded"), false, gardencorev1beta1.LastOperationTypeReconcile},
		{last("Reconcile", "Error"), false, gardencorev1beta1.LastOperationTypeReconcile},
		{last("Create", "Processing"), true, gardencorev1beta1.LastOperationTypeDelete},
		{nil, true, gardencorev1beta1.LastOperationTypeDelete},
	} {
		if got := operationType(test.last, test.deleting); got != test.want {
			t.Errorf("after %+v, deleting %v: %s, want %s", test.last, test.deleting, got, test.want)
		}
	}
}

func TestBeginAndSucceed(t *testing.T) {
	in := inputs()
	p := plan(t, in)
	status := &in.Shoot.Status
	begin(p, in.Shoot, "local", gardencorev1beta1.Gardener{Version: "v1"}, now)(status)
	if status.TechnicalID != "shoot--demo--member1" || status.ObservedGeneration != 1 || ptr.Deref(status.SeedName, "") != "local" ||
		status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing || len(status.AdvertisedAddresses) != 2 {
		t.Errorf("status at the start is %+v", status)
	}
	succeeded(&infrastructureState{nodes: []string{"10.180.7.0/24"}, egress: []string{"1.2.3.4/32"}}, false, now)(status)
	if status.LastOperation.Progress != 100 || status.Networking.Nodes[0] != "10.180.7.0/24" || status.Networking.EgressCIDRs[0] != "1.2.3.4/32" || status.RetryCycleStartTime != nil {
		t.Errorf("status at the end is %+v, networking %+v", status, status.Networking)
	}
	if !settled(in.Shoot) {
		t.Error("the shoot does not count as settled")
	}
}

func TestSoften(t *testing.T) {
	condition := func(status gardencorev1beta1.ConditionStatus, age time.Duration) *gardencorev1beta1.Condition {
		return &gardencorev1beta1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	operation := func(t gardencorev1beta1.LastOperationType, s gardencorev1beta1.LastOperationState, age time.Duration) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{Type: t, State: s, LastUpdateTime: metav1.NewTime(now.Add(-age))}
	}
	long := operation("Reconcile", "Succeeded", time.Hour)
	for _, test := range []struct {
		name      string
		previous  *gardencorev1beta1.Condition
		last      *gardencorev1beta1.LastOperation
		threshold time.Duration
		want      gardencorev1beta1.ConditionStatus
	}{
		{"no threshold", condition("True", time.Hour), long, 0, "False"},
		{"was True", condition("True", time.Hour), long, time.Minute, "Progressing"},
		{"progressing for a short time", condition("Progressing", 30*time.Second), long, time.Minute, "Progressing"},
		{"progressing for too long", condition("Progressing", 2*time.Minute), long, time.Minute, "False"},
		{"stays False", condition("False", time.Second), long, time.Minute, "False"},
		{"an operation has just ended", condition("False", time.Hour), operation("Reconcile", "Succeeded", time.Second), time.Minute, "Progressing"},
		{"being created", nil, operation("Create", "Processing", time.Second), 0, "Progressing"},
	} {
		found := gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionFalse}
		if got := soften(found, test.previous, test.last, test.threshold, now.Time).Status; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNextLook(t *testing.T) {
	for _, test := range []struct {
		name      string
		condition gardencorev1beta1.Condition
		want      time.Duration
	}{
		{"well", gardencorev1beta1.Condition{Status: "True", LastTransitionTime: now}, time.Minute},
		{"has just turned", gardencorev1beta1.Condition{Status: "Progressing", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}, soon},
		{"has been bad for long", gardencorev1beta1.Condition{Status: "False", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}, time.Minute},
	} {
		shoot := &gardencorev1beta1.Shoot{Status: gardencorev1beta1.ShootStatus{Conditions: []gardencorev1beta1.Condition{test.condition}}}
		if got := nextLook(shoot, time.Minute, now.Time); got != test.want {
			t.Errorf("%s: next look in %s, want %s", test.name, got, test.want)
		}
	}
}

func TestEveryNodeReady(t *testing.T) {
	workers := []gardencorev1beta1.Worker{{Name: "a", Minimum: 1}}
	node := func(status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: "a"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: "CNI"}}},
		}
	}
	for _, test := range []struct {
		nodes  []corev1.Node
		reason string
	}{
		{nil, "MissingNodes"},
		{[]corev1.Node{node(corev1.ConditionFalse)}, "KubeletNotReady"},
		{[]corev1.Node{node(corev1.ConditionTrue)}, "EveryNodeReady"},
	} {
		if got := EveryNodeReady(workers, test.nodes); got.Reason != test.reason {
			t.Errorf("got %+v, want %s", got, test.reason)
		}
	}
}
