package federation

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/plan"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
	"github.com/trellis-garden/trellis/pkg/trellisctl"
)

const rolloutDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: "nginx:1"}]}
`

// rolloutPolicy has a wave of member1, which a test adds settings to, before the remaining clusters.
const rolloutPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  rollout:
    waves: [{name: canary, clusterAffinity: {clusterNames: [member1]}%s}]
%s
`

// newRollout brings nginx:1 to both members, where it becomes healthy.
func (w *world) newRollout(t *testing.T, wave, settings string) (namespace string) {
	t.Helper()
	namespace = w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, rolloutDeployment)...)
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(rolloutPolicy, wave, settings))...)
	w.imagesIn(t, namespace, "nginx:1", "nginx:1")
	w.playController(t, namespace)
	return namespace
}

func (w *world) setImage(t *testing.T, namespace, image string) {
	t.Helper()
	w.patchNginx(t, namespace, `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"`+image+`"}]}}}}`)
}

func (w *world) patchNginx(t *testing.T, namespace, patch string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apps/v1")
	object.SetKind("Deployment")
	object.SetNamespace(namespace)
	object.SetName("nginx")
	if err := w.fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (w *world) imageIn(name, namespace string) (string, error) {
	object, err := deployment(w.member[name], namespace)
	if err != nil {
		return "", err
	}
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		return "", fmt.Errorf("containers %v: %w", containers, err)
	}
	return containers[0].(map[string]any)["image"].(string), nil
}

// imagesIn waits until the members have these images.
func (w *world) imagesIn(t *testing.T, namespace string, want ...string) {
	t.Helper()
	for i, name := range memberNames {
		eventually(t, name+" has "+want[i], func() error {
			got, err := w.imageIn(name, namespace)
			if err == nil && got != want[i] {
				err = fmt.Errorf("%s; %s", got, w.rolloutText(namespace))
			}
			return err
		})
	}
}

func (w *world) rolloutText(namespace string) string {
	b, err := w.bindingOf(namespace)
	if err != nil || b.Status.Rollout == nil {
		return fmt.Sprintf("no rollout: %v", err)
	}
	r := b.Status.Rollout
	return fmt.Sprintf("rollout %d wave %d %s %s: %s", r.Number, r.CurrentWave, r.Phase, r.Reason, r.Message)
}

// rolloutIs waits for a phase, and a text in the message.
func (w *world) rolloutIs(t *testing.T, namespace string, phase workv1alpha2.RolloutPhase,
	text string) *workv1alpha2.RolloutStatus {
	t.Helper()
	var status *workv1alpha2.RolloutStatus
	eventually(t, "rollout is "+string(phase), func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		status = b.Status.Rollout
		if status == nil || status.Phase != phase || !strings.Contains(status.Message, text) {
			return fmt.Errorf("%s", w.rolloutText(namespace))
		}
		return nil
	})
	return status
}

func TestRolloutGoesInWaves(t *testing.T) {
	w := newWorld(t)
	whole := t
	kill := w.startFederation(whole)
	namespace := w.newRollout(t, "", "")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, "")

	t.Run("the first wave is waited for", func(t *testing.T) {
		w.setImage(t, namespace, "nginx:2")
		w.imagesIn(t, namespace, "nginx:2", "nginx:1")
		status := w.rolloutIs(t, namespace, workv1alpha2.RolloutProgressing,
			"wave canary (1 of 2): waiting for member1: not healthy")
		if status.Number != 2 || status.CurrentWave != 1 {
			t.Errorf("status %+v", status)
		}
	})
	t.Run("scaling goes everywhere at once", func(t *testing.T) {
		w.patchNginx(t, namespace, `{"spec":{"replicas":3}}`)
		w.replicasIn(t, namespace, 3, 3)
		w.imagesIn(t, namespace, "nginx:2", "nginx:1")
	})
	t.Run("a restart in the middle changes nothing", func(t *testing.T) {
		w.quietFor(t, namespace, 200*time.Millisecond)
		kill()
		kill = w.startFederation(whole)
		w.quietFor(t, namespace, time.Second)
		w.imagesIn(t, namespace, "nginx:2", "nginx:1")
	})
	t.Run("a healthy wave lets the next one come", func(t *testing.T) {
		kill()
		w.playController(t, namespace) // While nobody looks.
		w.startFederation(whole)
		w.imagesIn(t, namespace, "nginx:2", "nginx:2")
		w.playController(t, namespace)
		status := w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, "all clusters have the object")
		if len(status.Revisions) != 2 || status.StableRevision != status.UpdateRevision {
			t.Errorf("status %+v", status)
		}
		w.revisionsLeft(t, namespace, 2)
	})
	t.Run("nothing is written when nothing changes", func(t *testing.T) { w.quietFor(t, namespace, time.Second) })
	t.Run("without the policy nothing is left", func(t *testing.T) {
		policy := parse(t, fmt.Sprintf(rolloutPolicy, "", ""))[0]
		policy.SetNamespace(namespace)
		remove(t, w.fleet, policy)
		w.nothingLeft(t, namespace)
		w.revisionsLeft(t, namespace, 0)
	})
}

// revisionsLeft waits until a number of revisions are stored.
func (w *world) revisionsLeft(t *testing.T, namespace string, want int) {
	t.Helper()
	eventually(t, "revisions", func() error {
		var list corev1.SecretList
		if err := w.fleet.List(ctx, &list, client.InNamespace(workv1alpha2.RevisionsNamespace)); err != nil {
			return err
		}
		got := 0
		for _, secret := range list.Items {
			if secret.Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d revisions, want %d", got, want)
		}
		return nil
	})
}

// control writes what trellisctl would.
func (w *world) control(t *testing.T, namespace string, change func(*workv1alpha2.RolloutControl)) {
	t.Helper()
	b, err := w.bindingOf(namespace)
	if err != nil {
		t.Fatal(err)
	}
	before := b.DeepCopy()
	b.Spec.RolloutControl = &workv1alpha2.RolloutControl{}
	change(b.Spec.RolloutControl)
	if err := w.fleet.Patch(ctx, b, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestRolloutRollsBack(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newRollout(t, "", "    progressDeadlineSeconds: 1\n    onFailure: Rollback")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, "")
	w.setImage(t, namespace, "nginx:2")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutRolledBack,
		"wave canary (1 of 2) was not healthy for more than 1s: member1: not ")
	w.imagesIn(t, namespace, "nginx:1", "nginx:1")
	w.playController(t, namespace)

	t.Run("the object stays as it is", func(t *testing.T) {
		object, err := deployment(w.fleet, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(object.Object["spec"]); !strings.Contains(text, "nginx:2") {
			t.Errorf("spec %s", text)
		}
	})
	t.Run("scaling goes on", func(t *testing.T) {
		w.patchNginx(t, namespace, `{"spec":{"replicas":4}}`)
		w.replicasIn(t, namespace, 4, 4)
		w.imagesIn(t, namespace, "nginx:1", "nginx:1")
		w.playController(t, namespace)
	})
	t.Run("the next change begins anew", func(t *testing.T) {
		b, err := w.bindingOf(namespace)
		if err != nil {
			t.Fatal(err)
		}
		before := b.Status.Rollout
		apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(rolloutPolicy, "", ""))...) // With the usual deadline.
		w.setImage(t, namespace, "nginx:3")
		w.imagesIn(t, namespace, "nginx:3", "nginx:1")
		w.playController(t, namespace)
		w.imagesIn(t, namespace, "nginx:3", "nginx:3")
		w.playController(t, namespace)
		if after := w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, ""); after.Number != before.Number+1 {
			t.Errorf("rollout %d after %d", after.Number, before.Number)
		}
	})
	t.Run("undo", func(t *testing.T) {
		b, err := w.bindingOf(namespace)
		if err != nil {
			t.Fatal(err)
		}
		status := b.Status.Rollout
		w.control(t, namespace, func(c *workv1alpha2.RolloutControl) {
			c.Undo = &workv1alpha2.RolloutUndo{Number: status.Number, Revision: status.Revisions[0].Revision}
		})
		w.imagesIn(t, namespace, "nginx:1", "nginx:1")
		w.rolloutIs(t, namespace, workv1alpha2.RolloutRolledBack,
			"somebody went back to revision "+status.Revisions[0].Revision)
	})
}

func TestRolloutPauses(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newRollout(t, ", pause: true", "")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, "")
	w.control(t, namespace, func(c *workv1alpha2.RolloutControl) { c.Paused = true })
	eventually(t, "the pause is known", func() error {
		b, err := w.bindingOf(namespace)
		if err == nil && b.Status.SchedulerObservedGeneration != b.Generation {
			err = fmt.Errorf("generation %d, observed %d", b.Generation, b.Status.SchedulerObservedGeneration)
		}
		return err
	})
	w.setImage(t, namespace, "nginx:2")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutPaused, "somebody paused the rollout")
	w.patchNginx(t, namespace, `{"spec":{"replicas":5}}`)
	w.replicasIn(t, namespace, 5, 5)
	w.imagesIn(t, namespace, "nginx:1", "nginx:1")

	t.Run("the policy doesn't take it back", func(t *testing.T) {
		apply(t, w.fleet, namespace, parse(t,
			fmt.Sprintf(rolloutPolicy, ", pause: true", "    revisionHistoryLimit: 3"))...)
		eventually(t, "the policy is known", func() error {
			b, err := w.bindingOf(namespace)
			if err == nil && (b.Spec.Rollout == nil || *b.Spec.Rollout.RevisionHistoryLimit != 3) {
				err = fmt.Errorf("rollout %+v", b.Spec.Rollout)
			}
			return err
		})
		w.rolloutIs(t, namespace, workv1alpha2.RolloutPaused, "somebody paused the rollout")
	})
	w.control(t, namespace, func(*workv1alpha2.RolloutControl) {})
	w.imagesIn(t, namespace, "nginx:2", "nginx:1")
	w.playController(t, namespace)
	status := w.rolloutIs(t, namespace, workv1alpha2.RolloutPaused, "wave canary (1 of 2) is done")
	w.imagesIn(t, namespace, "nginx:2", "nginx:1")
	w.control(t, namespace, func(c *workv1alpha2.RolloutControl) {
		c.Resumed = &workv1alpha2.RolloutResumption{Number: status.Number, Stop: status.Stops}
	})
	w.imagesIn(t, namespace, "nginx:2", "nginx:2")
}

func TestRolloutPolicyIsChecked(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	tests := map[string]struct{ rollout, message string }{
		"names are unique":     {`{waves: [{name: a}, {name: a}]}`, "name must be unique"},
		"the last wave's name": {`{waves: [{name: remaining}]}`, "is that of the last wave"},
		"a name":               {`{waves: [{name: A_b}]}`, "spec.rollout.waves[0].name"},
		"no cluster": {
			`{waves: [{name: a, maxClusters: 0}]}`, "must be a number from 1 on or a percentage",
		},
		"no percentage":          {`{waves: [{name: a, maxClusters: "0%"}]}`, "a percentage from 1% to 100%"},
		"too large a percentage": {`{waves: [{name: a, maxClusters: "101%"}]}`, "a percentage from 1% to 100%"},
		"no time":                {`{waves: [{name: a, soakSeconds: -1}]}`, "soakSeconds"},
		"no deadline":            {`{progressDeadlineSeconds: 0}`, "progressDeadlineSeconds"},
		"an unknown action":      {`{onFailure: Panic}`, "onFailure"},
		"too long a history":     {`{revisionHistoryLimit: 33}`, "revisionHistoryLimit"},
		"everything is given": {
			`{paused: true, onFailure: Rollback, waves: [{name: a, maxClusters: "10%", soakSeconds: 1, pause: true}, {name: b, maxClusters: 3}]}`, "",
		},
		"nothing is given at all": {`{}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object :=
				parse(t, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {generateName: "+
					"p-}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  rollout: "+tc.rollout)[0]
			object.SetNamespace(namespace)
			err := w.fleet.Create(ctx, object, client.DryRunAll)
			switch {
			case tc.message == "" && err != nil:
				t.Error(err)
			case tc.message != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.message)):
				t.Errorf("got %v, want %q", err, tc.message)
			}
		})
	}
}

// A cluster may join later, so waves that name none of the fleet are accepted, and told of.
func TestWavesWithoutEffectAreTold(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	const policy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  rollout:
    waves:
    - {name: canary, clusterAffinity: {clusterNames: [membre1, member1]}}
    - {name: second, clusterAffinity: {clusterNames: [member1, member2]}}
`
	const (
		unknown = "spec.rollout.waves[0].clusterAffinity.clusterNames[0]: the fleet has no cluster of this name; it " +
			"has member1, member2"
		late = "spec.rollout.waves[1].clusterAffinity.clusterNames[0]: wave canary before it takes cluster " +
			"member1; it gets changes with that one"
	)
	document := "PropagationPolicy " + namespace + "/web"
	want := []plan.Warning{{Document: document, Message: unknown}, {Document: document, Message: late}}
	if got := w.planned(t, namespace, policy, false).Warnings; !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	apply(t, w.fleet, namespace, parse(t, policy)...)
	w.warned(t, namespace, "RolloutWaves", unknown, late)
}

// TestRolloutCommands speaks as users of trellisctl do.
func TestRolloutCommands(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newRollout(t, "", "")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutCompleted, "")
	f := &trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}
	status := func(t *testing.T, wants ...string) {
		t.Helper()
		eventually(t, "the status tells", func() error {
			var out bytes.Buffer
			if err := f.RolloutStatus(ctx, &out, "deployment/nginx", namespace, false); err != nil {
				return err
			}
			for _, want := range wants {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					return fmt.Errorf("%s is missing in\n%s", want, out.String())
				}
			}
			return nil
		})
	}
	status(t, `Policy: +PropagationPolicy `+namespace+`/nginx`, `Rollout: +1, Completed \(Initial\)`,
		`canary +1 +1 +\d +- +done`, `remaining +1 +1 +\d +- +done`)

	if err := f.ControlRollout(ctx, "deploy/nginx", namespace, false, rollout.Pause); err != nil {
		t.Fatal(err)
	}
	w.setImage(t, namespace, "nginx:2")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutPaused, "somebody paused the rollout")
	status(t, `canary +1 +0 +0 +- +not yet`, `Message: +somebody paused the rollout; resume it`)
	if err := f.ControlRollout(ctx, "deploy/nginx", namespace, false, rollout.Resume); err != nil {
		t.Fatal(err)
	}
	w.imagesIn(t, namespace, "nginx:2", "nginx:1")
	w.rolloutIs(t, namespace, workv1alpha2.RolloutProgressing, "member1: not healthy")
	status(t, `Revision: +[0-9a-f]{16}, of the object; [0-9a-f]{16} before`, `canary +1 +1 +0 +- +Progressing`,
		`remaining +1 +0 +0 +- +not yet`)
	if err := f.ControlRollout(ctx, "deploy/nginx", namespace, false, rollout.Resume); err == nil ||
		!strings.Contains(err.Error(), "nothing stops it") {
		t.Errorf("resuming what is under way: %v", err)
	}

	undo := func(c *workv1alpha2.RolloutControl, s *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error) {
		return rollout.Undo(c, s, "1")
	}
	if err := f.ControlRollout(ctx, "deploy/nginx", namespace, false, undo); err != nil {
		t.Fatal(err)
	}
	w.imagesIn(t, namespace, "nginx:1", "nginx:1")
	status(t, `Rollout: +2, RolledBack \(Undone\)`, `canary .* rolled back`)
	var out bytes.Buffer
	if err := f.RolloutHistory(ctx, &out, "deploy/nginx", namespace); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^1 +[0-9a-f]{16} .* in all clusters, instead of the object's$`).
		MatchString(out.String()) ||
		!regexp.MustCompile(`(?m)^2 +[0-9a-f]{16} .* the object's, rolled back$`).MatchString(out.String()) {
		t.Errorf("history:\n%s", out.String())
	}
	if err := f.RolloutStatus(ctx, &out, "deploy/nginx", namespace, true); err == nil ||
		!strings.Contains(err.Error(), "rollout 2 of Deployment nginx: RolledBack") {
		t.Errorf("watching ends with %v", err)
	}

	t.Run("objects without one", func(t *testing.T) {
		other := w.newNamespace(t)
		apply(t, w.fleet, other, input(t, "000-karmada-nginx-3docs")...)
		eventually(t, "the error says why", func() error {
			err := f.RolloutStatus(ctx, &out, "deploy/nginx", other, false)
			if err == nil || !strings.Contains(err.Error(),
				"has no staged rollout: its policy (PropagationPolicy "+other+
					"/nginx-propagation) has no spec.rollout") {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	})
}
