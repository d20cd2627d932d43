package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

// poolInPlace is a pool whose machines stay.
func poolInPlace(name, hash string, strategy gardencorev1beta1.MachineUpdateStrategy,
	zones ...string) extensionsv1alpha1.WorkerPool {
	p := poolNamed(name, zones...)
	p.UpdateStrategy, p.MaxSurge, p.MaxUnavailable = &strategy, intstr.FromInt32(0), intstr.FromInt32(1)
	p.NodeAgentSecretName = new("gardener-node-agent-" + name)
	p.Annotations = map[string]string{gardencorev1beta1.AnnotationWorkerInPlaceUpdate: hash}
	return p
}

// What machine-controller-manager is told of pools that are updated in place.
func TestMachineDeploymentsInPlace(t *testing.T) {
	deployments, err := plan(technicalID, []extensionsv1alpha1.WorkerPool{
		poolInPlace("auto", "1", gardencorev1beta1.AutoInPlaceUpdate, "a", "b"),
		poolInPlace("manual", "1", gardencorev1beta1.ManualInPlaceUpdate, "a"),
	}, specOfZone)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, d := range deployments {
		object := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
		d.applyDeployment(object, "here")
		object.Spec.Replicas = d.replicas(nil, false)
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(data))
	}
	golden.CheckText(t, "machinedeployments-in-place", text.String())
}

// The class changes with what machines are drained for, and with nothing that they cannot change.
func TestClassOfMachinesThatStay(t *testing.T) {
	className := func(hash string, change func(*extensionsv1alpha1.WorkerPool)) string {
		p := poolInPlace("p", hash, gardencorev1beta1.AutoInPlaceUpdate, "a")
		change(&p)
		deployments, err := plan("x", []extensionsv1alpha1.WorkerPool{p}, specOfZone)
		if err != nil {
			t.Fatal(err)
		}
		return deployments[0].ClassName
	}
	nothing := func(*extensionsv1alpha1.WorkerPool) {}
	before := className("1", nothing)
	if className("2", nothing) == before {
		t.Error("an update is no update")
	}
	other := func(p *extensionsv1alpha1.WorkerPool) { p.Zones, p.MachineType = []string{"c"}, "big" }
	if className("1", other) != before {
		t.Error("machines that stay are updated for what they cannot change")
	}
}

func machineIn(name, deployment, class string, phase machinev1alpha1.MachinePhase) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: technicalID, Name: name, Labels: map[string]string{labelName: deployment},
	}}
	m.Spec.Class.Name, m.Status.CurrentStatus.Phase = class, phase
	return m
}

// Machines that were updated keep the class that they were made with; of others it goes.
func TestClassesOfUpdatedMachinesStay(t *testing.T) {
	class := func(name string) *machinev1alpha1.MachineClass {
		return &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: name}}
	}
	c := seed(t, userDataSecret(), class("made-with"), class("between"), class("of-replaced"),
		machineIn("m1", technicalID+"-auto-z1", "made-with", machinev1alpha1.MachineRunning),
		machineIn("m2", technicalID+"-rolling-z1", "of-replaced", machinev1alpha1.MachineTerminating))
	a := actuatorOf(c)
	worker := workerOf(poolInPlace("auto", "2", gardencorev1beta1.AutoInPlaceUpdate, "a"), poolNamed("rolling", "a"))
	if err := c.Create(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if err := a.Reconcile(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"made-with": true, "between": false, "of-replaced": false} {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: name}, &machinev1alpha1.MachineClass{})
		if (err == nil) != want {
			t.Errorf("class %s: %v", name, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"auto": "2"}, worker.Status.InPlaceUpdates.WorkerPoolToHashMap); diff != "" {
		t.Error(diff)
	}
}

// A MachineSet whose class is wanted again may have new machines; one that machines are to leave may not.
func TestAClassThatIsWantedAgain(t *testing.T) {
	const label = machineutils.LabelKeyMachineSetScaleUpDisabled
	set := func(name, class string) *machinev1alpha1.MachineSet {
		s := &machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: technicalID, Name: name, Labels: map[string]string{labelName: "d", label: "true"},
		}}
		s.Spec.Template.Spec.Class.Name = class
		return s
	}
	c := seed(t, set("again", "wanted"), set("left", "other"))
	wanted := Deployment{
		Name: "d", ClassName: "wanted", Pool: poolInPlace("auto", "1", gardencorev1beta1.AutoInPlaceUpdate),
	}
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "d"}}
	if _, err := actuatorOf(c).missingInPlace(t.Context(), deployment, wanted); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"again": false, "left": true} {
		got := &machinev1alpha1.MachineSet{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if _, forbidden := got.Labels[label]; forbidden != want {
			t.Errorf("%s: got %v", name, got.Labels)
		}
	}
}

// Nobody waits for machines whose owner has not said that they be updated, nor for those that are being; but for those
// that are missing.
func TestUpdatesByHandAreNotWaitedFor(t *testing.T) {
	deployment := &machinev1alpha1.MachineDeployment{}
	deployment.Spec.Replicas, deployment.Spec.Template.Spec.Class.Name = 3, "new"
	deployment.Status.Replicas, deployment.Status.AvailableReplicas = 3, 2
	updating := machineIn("m1", "d", "old", machinev1alpha1.MachineInPlaceUpdating)
	if err := readinessManual(deployment, "new", []machinev1alpha1.Machine{*updating}); err != nil {
		t.Errorf("got %v", err)
	}
	pending := machineIn("m1", "d", "old", machinev1alpha1.MachinePending)
	if err := readinessManual(deployment, "new", []machinev1alpha1.Machine{*pending}); err == nil {
		t.Error("a machine is missing")
	}
}

// A budget that blocks the drain for an update is told as one that blocks the drain of a machine that goes.
func TestBlockedDrainsForUpdatesAreTold(t *testing.T) {
	blocked := machineIn("m1", technicalID+"-auto-z1", "old", machinev1alpha1.MachineRunning)
	blocked.Status.LastOperation.Description = "Drain failed due to - pod disruption budget default/web is " +
		"misconfigured. Will retry in next sync. Initiate node drain"
	selected := func(since time.Duration) []machinev1alpha1.Machine {
		blocked.Status.Conditions = []corev1.NodeCondition{{
			Type: machinev1alpha1.NodeInPlaceUpdate, Reason: machinev1alpha1.SelectedForUpdate,
			LastTransitionTime: metav1.NewTime(time.Now().Add(-since)),
		}}
		return []machinev1alpha1.Machine{*blocked}
	}
	missing := errors.New("1 of 2")
	if told, err := withDrains(missing, drainsOf(selected(time.Second), time.Now())); err != nil ||
		!strings.Contains(told.Error(), "default/web") {
		t.Errorf("got %v, %v", told, err)
	}
	if _, err := withDrains(missing, drainsOf(selected(drainPatience), time.Now())); err == nil {
		t.Error("it is waited for what does not come")
	}
	blocked.Status.Conditions = nil
	if drains := drainsOf([]machinev1alpha1.Machine{*blocked}, time.Now()); len(drains) > 0 {
		t.Errorf("got %v", drains)
	}
}

// An update that failed tells why.
func TestFailedUpdatesAreTold(t *testing.T) {
	failed := machineIn("m1", technicalID+"-auto-z1", "old", machinev1alpha1.MachineInPlaceUpdateFailed)
	failed.Status.LastOperation.Description = "Machine m1 failed to update dependencies: no such image"
	a := actuatorOf(seed(t, failed))
	wanted := Deployment{Name: technicalID + "-auto-z1", ClassName: "new",
		Pool: poolInPlace("auto", "2", gardencorev1beta1.AutoInPlaceUpdate)}
	deployment := &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: wanted.Name},
	}
	deployment.Spec.Replicas, deployment.Spec.Template.Spec.Class.Name = 1, "new"
	missing, err := a.missingInPlace(t.Context(), deployment, wanted)
	if err != nil || missing == nil || !strings.Contains(missing.Error(), "no such image") {
		t.Errorf("got %v, %v", missing, err)
	}
}
