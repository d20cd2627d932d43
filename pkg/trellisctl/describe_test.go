package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func before(duration time.Duration) metav1.Time { return metav1.NewTime(today.Add(-duration)) }

// eventOf is one of a shoot, so long ago.
func eventOf(name string, uid types.UID, reason string, long time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: reason + "-" + name},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Shoot", Namespace: "garden-demo", Name: name, UID: uid,
		},
		Type: corev1.EventTypeNormal, Reason: reason, Message: "it was so", ReportingController: "garden-scheduler",
		EventTime: metav1.NewMicroTime(today.Add(-long)),
	}
}

// working is a shoot that much is to be told of.
func working() *gardencorev1beta1.Shoot {
	s := shoot("garden-demo", "one", "local")
	purpose, began, task := gardencorev1beta1.ShootPurposeTesting, before(time.Hour), "Deploying infrastructure"
	s.UID, s.Generation, s.Status.ObservedGeneration, s.Spec.Purpose = "u1", 3, 2, &purpose
	s.Spec.Region = "here"
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "pool", Minimum: 1, Maximum: 3, Zones: []string{"a", "b"}}}
	s.Spec.Maintenance = &gardencorev1beta1.Maintenance{
		TimeWindow: &gardencorev1beta1.MaintenanceTimeWindow{Begin: "020000+0000", End: "030000+0000"},
		AutoUpdate: &gardencorev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true},
	}
	s.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api.one"}}
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: "Reconcile", State: "Processing", Progress: 40, LastUpdateTime: before(5 * time.Second),
		Description: "Deploying etcd-main, Waiting until etcd-events is ready",
	}
	s.Status.LastErrors = []gardencorev1beta1.LastError{{
		TaskID: &task, Description: `task "Deploying infrastructure" failed: refused`, LastUpdateTime: &began,
		Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized, "ERR_OF_TOMORROW"},
	}}
	s.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: "APIServerAvailable", Status: "True", LastTransitionTime: before(time.Hour)},
		{
			Type: "EveryNodeReady", Status: "False", LastTransitionTime: before(2 * time.Minute), Reason: "NodeMissing",
			Message: "a node is missing",
		},
	}
	s.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &gardencorev1beta1.CARotation{
			Phase: gardencorev1beta1.RotationPrepared, LastInitiationTime: &began,
		},
	}}
	return s
}

func TestDescribingAShoot(t *testing.T) {
	earlier := eventOf("one", "u0", "OfAnEarlierShoot", time.Minute)
	repeated := eventOf("one", "u1", "Repeated", time.Hour)
	repeated.Type = corev1.EventTypeWarning
	repeated.Series = &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(today.Add(-time.Minute))}
	s := session(t, Target{Shoot: "one"}, interceptor.Funcs{}, working(), earlier, repeated,
		eventOf("one", "u1", "Scheduled", 30*time.Minute), eventOf("two", "u2", "OfAnother", time.Minute))
	var out bytes.Buffer
	err := s.DescribeShoot(t.Context(), &out, today)
	check(t, "shoot", lines(t, &out, err), []string{
		"Shoot one of project demo", "",
		"Namespace: garden-demo", "Seed: local", "Control plane: shoot--one", "Kubernetes: 1.36.3",
		"Provider: local, region here", "Purpose: testing", "Created: 60m ago", "State: awake",
		"Maintenance: 020000+0000 to 030000+0000, in 120m; updates Kubernetes",
		"Address: https://api.one (external)", "",
		"POOL NODES MACHINE IMAGE KUBERNETES ZONES", "pool 1-3 - - 1.36.3 a,b", "",
		"Waiting for: gardenlet, to begin with the newest change",
		"you, to have clients switch over (fetch new kubeconfigs), and then: trellisctl rotate ca complete one", "",
		"Operation: Reconcile Processing (40%), 5s ago",
		"running Deploying etcd-main", "running Waiting until etcd-events is ready",
		"failed before Deploying infrastructure", "",
		"Errors:", `task "Deploying infrastructure" failed: refused (60m ago)`,
		"ERR_INFRA_UNAUTHORIZED: the credentials lack permissions in the infrastructure; give them those that the " +
			"error names; it is not tried again before somebody changes something",
		"ERR_OF_TOMORROW: not known to this version of trellisctl", "",
		"CONDITION STATUS SINCE MEANING", "APIServerAvailable True 60m the API server answers",
		"EveryNodeReady False 2m every node is ready, and none is missing",
		"EveryNodeReady is False (NodeMissing): a node is missing", "",
		"CREDENTIALS PHASE BEGAN COMPLETED MEANING",
		"ca Prepared 60m ago - old and new are in use: clients can switch over", "",
		"EVENT SEEN FROM MESSAGE", "Scheduled 30m garden-scheduler it was so",
		"Repeated 60s (x3) garden-scheduler Warning: it was so",
	})
}

func TestWhatAShootWaitsFor(t *testing.T) {
	failed, errored, window := working(), working(), working()
	for _, s := range []*gardencorev1beta1.Shoot{failed, errored, window} {
		s.Status.Credentials, s.Status.ObservedGeneration = nil, s.Generation
	}
	failed.Status.LastOperation.State = gardencorev1beta1.LastOperationStateFailed
	errored.Status.LastOperation.State = gardencorev1beta1.LastOperationStateError
	confined := true
	window.Generation, window.Spec.Maintenance.ConfineSpecUpdateRollout = 9, &confined
	pools := working()
	pools.Status.ObservedGeneration = pools.Generation
	pools.Status.Credentials.Rotation.CertificateAuthorities.Phase = gardencorev1beta1.RotationWaitingForWorkersRollout
	pools.Status.Credentials.Rotation.CertificateAuthorities.PendingWorkersRollouts =
		[]gardencorev1beta1.PendingWorkersRollout{{Name: "a"}, {Name: "b"}}
	begins := shoot("garden-demo", "one", "local")
	for name, test := range map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  []string
	}{
		"a seed": {
			shoot("garden-demo", "one", ""), []string{
				"the scheduler, to find a seed; its reasons are among the events",
			},
		},
		"begin":    {begins, []string{"gardenlet of seed local, to begin"}},
		"next try": {errored, []string{"the next try, by itself"}},
		"somebody": {failed, []string{
			"somebody, to do away with the cause and change the shoot, or to try it again: trellisctl retry " +
				"shoot one --project demo",
		}},
		"a window": {window, []string{
			"gardenlet, to begin with the newest change, in the maintenance window that opens in 120m; to begin now: " +
				"trellisctl reconcile shoot one --project demo",
		}},
		"pools": {pools, []string{
			"you, to have machines replaced: trellisctl rotate workers one --project demo --pools a,b",
		}},
	} {
		check(t, name, waitingFor(test.shoot, "one --project demo", today), test.want)
	}
}

// Only what gardenlet joins while it works is a list of tasks.
func TestRunningTasks(t *testing.T) {
	for description, test := range map[string]struct {
		state gardencorev1beta1.LastOperationState
		want  []string
	}{
		"Deploying a, Deploying b":             {"Processing", []string{"Deploying a", "Deploying b"}},
		"Create of Shoot cluster initialized.": {"Processing", nil},
		"":                                     {"Processing", nil},
		`task "a" failed: x, and y`:            {"Failed", nil},
		"Shoot cluster successfully reconciled, x": {"Succeeded", nil},
	} {
		got := runningTasks(&gardencorev1beta1.LastOperation{State: test.state, Description: description})
		check(t, description, got, test.want)
	}
	check(t, "none", runningTasks(nil), nil)
}

// The newest events are shown, the oldest of them first, whichever recorder wrote them.
func TestNewestEvents(t *testing.T) {
	var events []corev1.Event
	for i := range 30 {
		event := eventOf("one", "", fmt.Sprintf("E%02d", i), 0)
		event.EventTime = metav1.MicroTime{}
		event.LastTimestamp = before(time.Duration(30-i) * time.Minute)
		events = append(events, *event)
	}
	slices.Reverse(events)
	sortEvents(events)
	got := newest(events, working())
	if len(got) != newestEvents || got[0].Reason != "E10" || got[newestEvents-1].Reason != "E29" {
		t.Errorf("got %d from %s to %s", len(got), got[0].Reason, got[len(got)-1].Reason)
	}
}

func TestDescribingAProject(t *testing.T) {
	demo, description := "garden-demo", "to try things"
	object := project("described", &demo)
	object.Status.Phase, object.Spec.Description = gardencorev1beta1.ProjectReady, &description
	object.Spec.Owner = &rbacv1.Subject{Kind: "User", Name: "alice"}
	object.Spec.Members = []gardencorev1beta1.ProjectMember{
		{Subject: rbacv1.Subject{Kind: "User", Name: "alice"}, Role: "admin", Roles: []string{"owner"}},
		{Subject: rbacv1.Subject{Kind: "ServiceAccount", Namespace: "garden-demo", Name: "robot"}, Role: "viewer"},
	}
	stale := before(-24 * time.Hour)
	object.Status.StaleAutoDeleteTimestamp = &stale
	s := session(t, Target{Project: "described"}, interceptor.Funcs{}, object)
	var out bytes.Buffer
	err := s.DescribeProject(t.Context(), &out, today)
	check(t, "project", lines(t, &out, err), []string{
		"Project described", "", "Namespace: garden-demo", "Phase: Ready", "Description: to try things",
		"Owner: alice", "Created: 60m ago", "Will be deleted: 2026-01-03T00:00:00Z, unless it is used", "",
		"MEMBER KIND ROLES", "alice User admin, owner", "garden-demo/robot ServiceAccount viewer", "",
		"SHOOT PROJECT SEED PROVIDER VERSION NODES LAST OPERATION STATUS AGE", "", "Events: none lately",
	})
	if err := session(t, Target{}, interceptor.Funcs{}).DescribeProject(t.Context(), &out, today); err == nil ||
		!strings.Contains(err.Error(), "`trellisctl describe project demo`") {
		t.Errorf("got %v", err)
	}
}

// Who may not read events is told so, and everything else.
func TestDescribingASeed(t *testing.T) {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", CreationTimestamp: before(time.Hour)}}
	seed.Spec.Provider.Type, seed.Spec.Provider.Region = "local", "here"
	seed.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: "seed.gardener.cloud/protected"}}
	seed.Spec.Networks.Pods, seed.Spec.Networks.Services = "10.1.0.0/16", "10.2.0.0/16"
	seed.Status.Conditions = []gardencorev1beta1.Condition{{
		Type: "EmergencyStopShootReconciliations", Status: "True", Reason: "EmergencyStopRequested", Message: "stopped",
	}}
	s := session(t, Target{Seed: "local"}, forbiddenEvents(), seed, shoot("garden-demo", "one", "local"))
	var out bytes.Buffer
	err := s.DescribeSeed(t.Context(), &out, today)
	check(t, "seed", lines(t, &out, err), []string{
		"Seed local", "", "Provider: local, region here", "Shoots: 1", "Taints: seed.gardener.cloud/protected",
		"Networks: pods 10.1.0.0/16; services 10.2.0.0/16", "Created: 60m ago", "", "CONDITION STATUS SINCE MEANING",
		"EmergencyStopShootReconciliations True - operators have stopped work on all its shoots",
		"EmergencyStopShootReconciliations is True (EmergencyStopRequested): stopped", "",
		"Events: you may not read them in namespace default",
	})
	err = session(t, Target{Seed: "none"}, interceptor.Funcs{}).DescribeSeed(t.Context(), &out, today)
	if err == nil || !strings.Contains(err.Error(), "`trellisctl ls seeds`") {
		t.Errorf("got %v", err)
	}
}

// forbiddenEvents is a garden whose events its user may not list.
func forbiddenEvents() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, ok := list.(*corev1.EventList); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no operator"))
			}
			return c.List(ctx, list, options...)
		},
	}
}
