package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// What machine-controller-manager says of a drain, in the order in which it does.
const (
	drainBegins = "Machine is running. " + machineutils.InitiateDrain
	twoBudgets  = `Drain failed due to - [error while evicting pod "b-1": pod disruption budget default/b is ` +
		`misconfigured and requires zero voluntary evictions, error while evicting pod "a-1": pod disruption budget ` +
		`shop/a is misconfigured and requires zero voluntary evictions, error while evicting pod "b-2": pod ` +
		`disruption budget default/b is misconfigured and requires zero voluntary evictions]. Will retry in next ` +
		`sync. ` + machineutils.InitiateDrain
	noBudget = "Drain failed due to - timeout expired while waiting for pod \"c\" terminating scheduled on node n. " +
		"Will retry in next sync. " + machineutils.InitiateDrain
	drained = "Drain successful. " + machineutils.InitiateVMDeletion
)

// going is a machine of deployment d whose deletion was asked for a while ago; with 0 it stays.
func going(since time.Duration, description string) *machinev1alpha1.Machine {
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: technicalID, Name: "m", Finalizers: []string{"mcm"},
		Labels: map[string]string{machinev1alpha1.NodeLabelKey: "n", labelName: "d"},
	}}
	if since > 0 {
		deleted := metav1.NewTime(time.Now().Add(-since))
		machine.DeletionTimestamp = &deleted
	}
	machine.Status.LastOperation.Description = description
	return machine
}

// A rolling update that does not get on says which node is drained for how long, and which budgets hinder it. When it
// cannot get on, that is an error before the time is up.
func TestWhatBlocksADrain(t *testing.T) {
	const tooMany = "1 machines too many are left"
	const budgets = ", and PodDisruptionBudget default/b, shop/a allows no eviction although all its pods are " +
		"healthy: give its pods more replicas, or allow one of them to be away"
	for name, test := range map[string]struct {
		machine   *machinev1alpha1.Machine
		want      string
		isBlocked bool
	}{
		"not going": {going(0, twoBudgets), "", false},
		"is tried":  {going(time.Hour, drainBegins), "; node n of machine m has been drained for 1h0m0s", false},
		"just begun": {
			going(time.Minute, twoBudgets), "; node n of machine m has been drained for 1m0s" + budgets, false,
		},
		"budgets": {
			going(time.Hour, twoBudgets), "; node n of machine m has been drained for 1h0m0s" + budgets, true,
		},
		"other error": {
			going(time.Hour, noBudget), "; node n of machine m has been drained for 1h0m0s: timeout expired while " +
				`waiting for pod "c" terminating scheduled on node n`, false,
		},
		"drained": {going(time.Hour, drained), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			if deleted := test.machine.DeletionTimestamp; deleted != nil {
				now = deleted.Add(now.Sub(deleted.Time).Round(time.Minute))
			}
			told, blocked := withDrains(errors.New(tooMany),
				drainsOf([]machinev1alpha1.Machine{*test.machine}, now))
			if (blocked != nil) != test.isBlocked || (told == nil) != test.isBlocked {
				t.Fatalf("told %v, blocked %v", told, blocked)
			}
			err := errors.Join(told, blocked)
			if err.Error() != tooMany+test.want {
				t.Errorf("got %v\nwant %s", err, tooMany+test.want)
			}
			if codes := extension.Codes(err); test.isBlocked !=
				slices.Contains(codes, gardencorev1beta1.ErrorRetryableConfigurationProblem) {
				t.Errorf("codes are %v", codes)
			}
		})
	}
}

// The Worker fails with what blocks the drain, and not only when the time for all machines is up.
func TestABlockedDrainEndsTheWait(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "d"}}
	deployment.Status.Replicas = 1
	for name, test := range map[string]struct {
		machine     *machinev1alpha1.Machine
		timeout     time.Duration
		want, never string
	}{
		"blocked": {going(time.Hour, twoBudgets), time.Hour, "default/b, shop/a", "not ready after"},
		"slow":    {going(time.Hour, drainBegins), time.Millisecond, "not ready after 1ms: d: 1 machines too", "allows"},
	} {
		a := &actuator{
			client:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment, test.machine).Build(),
			options: Options{PollInterval: time.Millisecond, ReadyTimeout: test.timeout},
		}
		err := a.waitReady(t.Context(), technicalID, []Deployment{{Name: "d"}})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), test.never) ||
			!strings.Contains(err.Error(), "node n of machine m") {
			t.Errorf("%s: got %v, want it with %q and without %q", name, err, test.want, test.never)
		}
	}
}

// TestAttackEndlessNamesInADrain plays the owner of a shoot with so many budgets, and so long names of pods, that the
// Worker's status could not be written any more.
func TestAttackEndlessNamesInADrain(t *testing.T) {
	var budgets, names strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&budgets, "pod disruption budget default/%d is misconfigured, ", i)
		names.WriteString("a pod\u00e9 ")
	}
	var machines []machinev1alpha1.Machine
	for range 10 {
		for _, failure := range []string{budgets.String(), names.String()} {
			machines = append(machines, *going(time.Second, "Drain failed due to - "+failure+
				". Will retry in next sync. "+machineutils.InitiateDrain))
		}
	}
	told, _ := withDrains(errors.New("too many"), drainsOf(machines, time.Now()))
	if length := len(told.Error()); length > 4000 || !strings.Contains(told.Error(), "and 15 more") {
		t.Errorf("%d bytes are told: %.300s", length, told)
	}
}

// What a drain is blocked by is read out of texts of machine-controller-manager. With others, the release is not to be
// taken before they are read here.
func TestTextsOfDrains(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/gardener/machine-controller-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"drain/drain.go":                    `: pod disruption budget %s/%s is misconfigured and requires`,
		"machinecontroller/machine_util.go": `"Drain failed due to - %s. Will retry in next sync. %s"`,
	} {
		path := filepath.Join(strings.TrimSpace(string(folder)), "pkg", "util", "provider", filepath.FromSlash(file))
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), want) {
			t.Errorf("%s does not have %s", path, want)
		}
	}
}
