package extension

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

type state struct {
	operation string
	timestamp string
	deleting  bool
	lastType  gardencorev1beta1.LastOperationType
	lastState gardencorev1beta1.LastOperationState
}

func object(s state) *extensionsv1alpha1.Infrastructure {
	infrastructure := &extensionsv1alpha1.Infrastructure{}
	if s.operation != "" {
		infrastructure.Annotations = map[string]string{
			gardencorev1beta1.GardenerOperation: s.operation, gardencorev1beta1.GardenerTimestamp: s.timestamp,
		}
	}
	if s.deleting {
		now := metav1.Now()
		infrastructure.DeletionTimestamp = &now
	}
	if s.lastType != "" {
		infrastructure.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: s.lastType, State: s.lastState}
	}
	return infrastructure
}

const (
	create     = gardencorev1beta1.LastOperationTypeCreate
	reconciled = gardencorev1beta1.LastOperationTypeReconcile
	migrate    = gardencorev1beta1.LastOperationTypeMigrate
	restore    = gardencorev1beta1.LastOperationTypeRestore
	succeeded  = gardencorev1beta1.LastOperationStateSucceeded
	failing    = gardencorev1beta1.LastOperationStateError
	working    = gardencorev1beta1.LastOperationStateProcessing
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		state state
		want  action
	}{
		"new":                   {state{operation: "reconcile"}, actionReconcile},
		"new without a request": {state{}, actionReconcile},
		"settled":               {state{lastType: create, lastState: succeeded}, actionNone},
		"asked again": {
			state{operation: "reconcile", lastType: create, lastState: succeeded}, actionReconcile,
		},
		"failed before": {state{lastType: create, lastState: failing}, actionReconcile},
		"interrupted":   {state{lastType: reconciled, lastState: working}, actionReconcile},
		"deleted": {
			state{deleting: true, lastType: create, lastState: succeeded}, actionDelete,
		},
		"deleted while asked for":              {state{operation: "reconcile", deleting: true}, actionDelete},
		"to be restored, but state is missing": {state{operation: "wait-for-state"}, actionNone},
		"to be restored":                       {state{operation: "restore"}, actionRestore},
		"interrupted restoration":              {state{lastType: restore, lastState: working}, actionRestore},
		"to be migrated": {
			state{operation: "migrate", lastType: reconciled, lastState: succeeded}, actionMigrate,
		},
		"interrupted migration": {state{lastType: migrate, lastState: failing}, actionMigrate},
		"migrated":              {state{lastType: migrate, lastState: succeeded}, actionNone},
		"migrated and deleted": {
			state{deleting: true, lastType: migrate, lastState: succeeded}, actionNone,
		},
		"came back": {
			state{operation: "restore", lastType: migrate, lastState: succeeded}, actionRestore,
		},
	} {
		if got := decide(object(test.state)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestOperationType(t *testing.T) {
	for name, test := range map[string]struct {
		state state
		want  gardencorev1beta1.LastOperationType
	}{
		"first":               {state{}, create},
		"unfinished creation": {state{lastType: create, lastState: failing}, create},
		"later":               {state{lastType: create, lastState: succeeded}, reconciled},
		"after a restoration": {state{lastType: restore, lastState: succeeded}, reconciled},
	} {
		if got := operationType(actionReconcile, object(test.state).Status.LastOperation); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestOwnStatusWritesDoNotWakeTheController(t *testing.T) {
	asked := state{operation: "reconcile", timestamp: "1"}
	for name, test := range map[string]struct {
		before *state
		after  state
		want   bool
	}{
		"seen first":          {nil, asked, true},
		"settled, seen first": {nil, state{lastType: create, lastState: succeeded}, false},
		"asked":               {&state{lastType: create, lastState: succeeded}, asked, true},
		"asked once more":     {&asked, state{operation: "reconcile", timestamp: "2"}, true},
		"picked up":           {&asked, state{lastType: create, lastState: working}, false},
		"failed": {
			&state{lastType: create, lastState: working}, state{lastType: create, lastState: failing}, false,
		},
		"deletion requested": {
			&state{lastType: create, lastState: succeeded},
			state{deleting: true, lastType: create, lastState: succeeded}, true,
		},
		"deletion makes progress": {
			&state{deleting: true}, state{deleting: true, lastType: create, lastState: working}, false,
		},
	} {
		var before extensionsv1alpha1.Object
		if test.before != nil {
			before = object(*test.before)
		}
		if got := isWanted(before, object(test.after)); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCodes(t *testing.T) {
	quota, auth := gardencorev1beta1.ErrorInfraQuotaExceeded, gardencorev1beta1.ErrorInfraUnauthenticated
	inner := WithCodes(errors.New("quota"), quota)
	for name, test := range map[string]struct {
		err  error
		want []gardencorev1beta1.ErrorCode
	}{
		"none":    {errors.New("x"), nil},
		"wrapped": {fmt.Errorf("machine: %w", inner), []gardencorev1beta1.ErrorCode{quota}},
		"joined": {
			errors.Join(inner, WithCodes(errors.New("y"), auth), inner), []gardencorev1beta1.ErrorCode{quota, auth},
		},
		"nested": {WithCodes(inner, auth), []gardencorev1beta1.ErrorCode{auth, quota}},
	} {
		if got := Codes(test.err); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if WithCodes(nil, quota) != nil {
		t.Error("no error must stay none")
	}
}

func TestRequeueDelay(t *testing.T) {
	err := fmt.Errorf("outer: %w", &RequeueAfter{After: time.Second, Cause: errors.New("waiting")})
	if delay, asked := requeueDelay(err); !asked || delay != time.Second || err.Error() != "outer: waiting" {
		t.Errorf("got %s, %v, %v", delay, asked, err)
	}
}

func TestSupersedes(t *testing.T) {
	for name, test := range map[string]struct {
		state   state
		version string
		want    bool
	}{
		"cache shows the request being worked on": {state{operation: "reconcile"}, "9", false},
		"own writes":        {state{lastType: create, lastState: working}, "12", false},
		"changed meanwhile": {state{operation: "reconcile"}, "12", true},
		"deleted meanwhile": {state{deleting: true}, "100", true},
	} {
		current := object(test.state)
		current.ResourceVersion = test.version
		if got := supersedes(current, "10"); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
