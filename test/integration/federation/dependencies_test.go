package federation

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// shopWithSettings is a Deployment that reads a ConfigMap, and a Service that nothing refers to but an annotation.
const shopWithSettings = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
  annotations:
    federation.trellis.garden/dependencies: '[{"apiVersion":"v1","kind":"Service","labelSelector":{"matchLabels":{"app":"shop"}}}]'
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: nginx, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, labels: {app: shop}}
spec: {selector: {app: shop}, ports: [{port: 80}]}
`

const settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: %s}}`

// settingsIn waits until the members have these values of the setting; "" means no ConfigMap.
func (w *world) settingsIn(t *testing.T, namespace string, want ...string) {
	t.Helper()
	for i, name := range memberNames {
		eventually(t, fmt.Sprintf("%s has color %q", name, want[i]), func() error {
			object, err := get(w.member[name], "v1", "ConfigMap", namespace, "settings")
			if want[i] == "" {
				return wantGone(err)
			}
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedString(object.Object, "data", "color"); got != want[i] {
				return fmt.Errorf("color is %q", got)
			}
			return nil
		})
	}
}

func (w *world) patchPolicy(t *testing.T, namespace, name, patch string) {
	t.Helper()
	policy, err := get(w.fleet, "policy.karmada.io/v1alpha1", "PropagationPolicy", namespace, name)
	if err == nil {
		err = w.fleet.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDependenciesFollow(t *testing.T) {
	w := newWorld(t)
	whole := t
	kill := w.startFederation(whole)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, shopWithSettings)...)
	w.replicasIn(t, namespace, 2, -1)
	eventually(t, "the Service follows", func() error {
		_, err := get(w.member["member1"], "v1", "Service", namespace, "shop")
		return err
	})

	t.Run("what appears later, and changes", func(t *testing.T) {
		apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(settings, "red"))...)
		w.settingsIn(t, namespace, "red", "")
		apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(settings, "blue"))...)
		w.settingsIn(t, namespace, "blue", "")
	})
	t.Run("to other clusters, also after a restart", func(t *testing.T) {
		kill()
		w.patchPolicy(t, namespace, "shop", `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member2"]}}}}`)
		w.startFederation(whole)
		w.replicasIn(t, namespace, -1, 2)
		w.settingsIn(t, namespace, "", "blue")
	})
	t.Run("a policy of its own comes beside, and goes", func(t *testing.T) {
		own := parse(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: settings}, spec: {
			resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}], placement: {clusterAffinity: {clusterNames: [member1]}}}}`)[0]
		apply(t, w.fleet, namespace, own)
		w.settingsIn(t, namespace, "blue", "blue")
		own.SetNamespace(namespace)
		remove(t, w.fleet, own)
		w.settingsIn(t, namespace, "", "blue")
	})
	t.Run("gone when nobody requires it", func(t *testing.T) {
		w.patchPolicy(t, namespace, "shop", `{"spec":{"propagateDeps":false}}`)
		w.settingsIn(t, namespace, "", "")
		w.replicasIn(t, namespace, -1, 2)
		eventually(t, "its binding is gone", func() error {
			b := &workv1alpha2.ResourceBinding{}
			return wantGone(w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings-configmap"}, b))
		})
		if _, err := get(w.fleet, "v1", "ConfigMap", namespace, "settings"); err != nil {
			t.Error(errors.Join(errors.New("the template stays"), err))
		}
	})
}

func TestDependencyInheritsConflictResolution(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	if err := w.member["member1"].Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	apply(t, w.member["member1"], namespace, parse(t, fmt.Sprintf(settings, "theirs"))...)
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(settings, "ours"))...)
	apply(t, w.fleet, namespace, parse(t, shopWithSettings)...)
	eventually(t, "the conflict is told", func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "settings-configmap"},
			b); err != nil {
			return err
		}
		if len(b.Status.AggregatedStatus) != 1 || b.Status.AggregatedStatus[0].AppliedMessage == "" {
			return fmt.Errorf("status %+v", b.Status)
		}
		return nil
	})
	w.settingsIn(t, namespace, "theirs", "")
	w.patchPolicy(t, namespace, "shop", `{"spec":{"conflictResolution":"Overwrite"}}`)
	w.settingsIn(t, namespace, "ours", "")
}
