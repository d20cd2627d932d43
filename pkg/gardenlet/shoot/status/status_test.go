package status

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

var now = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func TestLastErrors(t *testing.T) {
	quota := &extension.Error{
		Kind: "Infrastructure", Name: "x", Description: "too many networks",
		Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded},
	}
	for _, test := range []struct {
		name  string
		err   error
		tasks []string
		codes []gardencorev1beta1.ErrorCode
	}{
		{"none", nil, nil, nil},
		{"not of a task", errors.New("no"), []string{""}, nil},
		{
			"a user's mistake", &plan.ConfigurationError{Err: errors.New("no")}, []string{""},
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem},
		},
		{"of tasks", flow.Errors{
			{TaskID: "Deploying infrastructure", Err: fmt.Errorf("waiting: %w", flow.Permanent(quota))},
			{TaskID: "Deploying etcd-main", Err: errors.New("no storage")},
		}, []string{"Deploying infrastructure", "Deploying etcd-main"}, quota.Codes},
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
		{
			"nothing to be done", &plan.ConfigurationError{Err: errors.New("no")}, now,
			gardencorev1beta1.LastOperationStateFailed,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := &gardencorev1beta1.ShootStatus{
				RetryCycleStartTime: &test.since, LastOperation: &gardencorev1beta1.LastOperation{},
			}
			Failed(test.cause, 30*time.Minute, now)(status)
			if status.LastOperation.State != test.want || len(status.LastErrors) != 1 {
				t.Errorf("got %+v, errors %v", status.LastOperation, status.LastErrors)
			}
		})
	}
}

func TestOperationType(t *testing.T) {
	last := func(t gardencorev1beta1.LastOperationType,
		s gardencorev1beta1.LastOperationState) *gardencorev1beta1.LastOperation {
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
	in := plantest.Inputs()
	p := plantest.Plan(t, in)
	status := &in.Shoot.Status
	Begin(p, in.Shoot, "local", gardencorev1beta1.Gardener{Version: "v1"}, now)(status)
	if status.TechnicalID != "shoot--demo--member1" || status.ObservedGeneration != 1 ||
		ptr.Deref(status.SeedName, "") != "local" ||
		status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing ||
		len(status.AdvertisedAddresses) != 2 {
		t.Errorf("status at the start is %+v", status)
	}
	finished(&Infrastructure{Nodes: []string{"10.180.7.0/24"}, Egress: []string{"1.2.3.4/32"}}, false, now)(status)
	if status.LastOperation.Progress != 100 || status.Networking.Nodes[0] != "10.180.7.0/24" ||
		status.Networking.EgressCIDRs[0] != "1.2.3.4/32" || status.RetryCycleStartTime != nil {
		t.Errorf("status at the end is %+v, networking %+v", status, status.Networking)
	}
	if !Settled(in.Shoot) {
		t.Error("the shoot does not count as settled")
	}
}

func TestSuccessIsTold(t *testing.T) {
	change := func(in *plan.Inputs) {
		in.Shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
			EncryptionConfig: &gardencorev1beta1.EncryptionConfig{
				Resources: []string{"configmaps"},
				Provider: gardencorev1beta1.EncryptionProvider{
					Type: new(gardencorev1beta1.EncryptionProviderTypeAESGCM),
				},
			},
		}
	}
	status := &gardencorev1beta1.ShootStatus{
		Credentials: &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: gardencorev1beta1.RotationCompleting},
		}},
	}
	in := plantest.Inputs()
	change(in)
	Succeeded(plantest.New(t, change), in.Shoot, nil, metav1.NewTime(time.Unix(1_800_000_000, 0)))(status)
	if phase := status.Credentials.Rotation.CertificateAuthorities.Phase; phase != gardencorev1beta1.RotationCompleted {
		t.Errorf("the phase is %s", phase)
	}
	if applied := status.Credentials.EncryptionAtRest; applied.Provider.Type != "aesgcm" ||
		len(applied.Resources) != 1 || applied.Resources[0] != "configmaps" {
		t.Errorf("encryption at rest is %+v", applied)
	}
}

// A restore goes on until it has succeeded, and says so then; what follows is an ordinary operation.
func TestRestores(t *testing.T) {
	s := &gardencorev1beta1.ShootStatus{}
	s.BeginRestore("one", "two", now)
	for range 2 {
		if s.LastOperation = Start(s.LastOperation, false, now); s.LastOperation.Type !=
			gardencorev1beta1.LastOperationTypeRestore {
			t.Fatalf("it goes on as %s", s.LastOperation.Type)
		}
	}
	finished(nil, false, now)(s)
	if s.LastOperation.Description != "Shoot cluster has been successfully restored." {
		t.Errorf("it ends with %q", s.LastOperation.Description)
	}
	if next := Start(s.LastOperation, false, now); next.Type != gardencorev1beta1.LastOperationTypeReconcile {
		t.Errorf("it is followed by %s", next.Type)
	}
}
