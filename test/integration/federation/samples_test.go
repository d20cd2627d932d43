package federation

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
)

// What people have for Karmada applies unchanged: these are the shapes of its public samples.

// A definition goes to a member by a cluster-wide policy, and its objects follow, changed by an override.
func TestCustomResourceAndItsDefinition(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	definition := parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  creationTimestamp: null
  name: orchards.samples.example.org
spec:
  group: samples.example.org
  names: {kind: Orchard, listKind: OrchardList, plural: orchards, singular: orchard}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              rows: {type: integer, format: int32, minimum: 1}
              kind: {type: string}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    served: true
    storage: true
    subresources: {status: {}}
status:
  acceptedNames: {kind: "", plural: ""}
  conditions: []
  storedVersions: []
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: orchards}
spec:
  resourceSelectors:
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    name: orchards.samples.example.org
  placement: {clusterAffinity: {clusterNames: [member1]}}
`)
	t.Cleanup(func() { w.notServed(t, "samples.example.org") })
	for _, object := range definition {
		if err := w.fleet.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, w.fleet, object) })
	}
	eventually(t, "the fleet serves the kind", func() error {
		_, err := get(w.fleet, "samples.example.org/v1", "Orchard", namespace, "any")
		return wantGone(err)
	})
	apply(t, w.fleet, namespace, parse(t, `
apiVersion: samples.example.org/v1
kind: Orchard
metadata: {name: apples}
spec: {rows: 2, kind: apple}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: orchards}
spec:
  resourceSelectors: [{apiVersion: samples.example.org/v1, kind: Orchard}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: orchards}
spec:
  resourceSelectors: [{apiVersion: samples.example.org/v1, kind: Orchard}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders:
      plaintext:
      - {path: /spec/rows, operator: replace, value: 4}
      - {path: /metadata/annotations, operator: add, value: {shaped-by: override}}
`)...)
	eventually(t, "member1 has the object as overridden", func() error {
		object, err := get(w.member["member1"], "samples.example.org/v1", "Orchard", namespace, "apples")
		if err != nil {
			return err
		}
		rows, _, _ := unstructured.NestedInt64(object.Object, "spec", "rows")
		if rows != 4 || object.GetAnnotations()["shaped-by"] != "override" {
			return fmt.Errorf("%d rows, annotations %v", rows, object.GetAnnotations())
		}
		return nil
	})
	if _, err := get(w.member["member2"], "apiextensions.k8s.io/v1", "CustomResourceDefinition", "",
		"orchards.samples.example.org"); wantGone(err) != nil {
		t.Error("member2 has the definition as well")
	}
}

// notServed waits until the fleet has ceased to tell of a group: controllers that start before would wait for its
// objects.
func (w *world) notServed(t *testing.T, group string) {
	t.Helper()
	discovering, err := discovery.NewDiscoveryClientForConfig(w.fleetConfig)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fleet does not serve "+group, func() error {
		groups, err := discovering.ServerGroups()
		if err != nil {
			return err
		}
		for _, known := range groups.Groups {
			if known.Name == group {
				return errors.New("it is still told of")
			}
		}
		return nil
	})
}

// Labels and annotations are added, removed and replaced for one cluster each; what is absent stays so.
func TestLabelsAndAnnotationsOfClusters(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, labels: {app: nginx}, annotations: {tier: any}}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{image: nginx, name: nginx, command: [nginx], args: [-q]}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: halves}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    clusterTolerations: [{key: maintenance, operator: Exists, effect: NoSchedule}]
    replicaScheduling:
      replicaDivisionPreference: Weighted
      replicaSchedulingType: Divided
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 1}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: stages}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders:
      labelsOverrider:
      - {operator: add, value: {stage: second}}
      - {operator: remove, value: {absent: absent}}
      - {operator: replace, value: {missing: nothing}}
      commandOverrider: [{containerName: nginx, operator: add, value: [-t]}]
      argsOverrider: [{containerName: nginx, operator: remove, value: [-q]}]
  - targetCluster: {clusterNames: [member1]}
    overriders:
      annotationsOverrider:
      - {operator: add, value: {stage: first}}
      - {operator: replace, value: {tier: "1"}}
      imageOverrider: [{component: Registry, operator: replace, value: registry.example.org}]
`)...)
	w.replicasIn(t, namespace, 1, 1)
	eventually(t, "each member has its own", func() error {
		one, err := deployment(w.member["member1"], namespace)
		two, err2 := deployment(w.member["member2"], namespace)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		containers, _, _ := unstructured.NestedSlice(two.Object, "spec", "template", "spec", "containers")
		got := fmt.Sprint(one.GetAnnotations()["stage"], one.GetAnnotations()["tier"], one.GetLabels()["stage"],
			imageOf(one), " ",
			two.GetLabels()["stage"], two.GetLabels()["missing"], two.GetAnnotations()["tier"], imageOf(two),
			containers[0].(map[string]any)["command"], containers[0].(map[string]any)["args"])
		if want := "first1registry.example.org/nginx secondanynginx[nginx -t] <nil>"; got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

// Further shapes are accepted, with strict decoding, as they are.
func TestShapesOfSamples(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	for name, text := range map[string]string{
		"field selector": `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: foo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  association: false
  placement:
    clusterAffinity:
      exclude: [member3]
      labelSelector: {matchLabels: {location: us}}
      fieldSelector: {matchExpressions: [{key: provider, operator: In, values: [one, two]}, {key: region, operator: NotIn, values: [south]}]}
    spreadConstraints: [{spreadByField: region, maxGroups: 2, minGroups: 2}, {spreadByField: cluster, maxGroups: 3, minGroups: 1}]`,
		"ordered affinities": `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: foo}
spec:
  priority: 2
  preemption: Always
  schedulerName: default-scheduler
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinities:
    - {affinityName: local, labelSelector: {matchLabels: {cloud: private}}}
    - {affinityName: elsewhere, clusterNames: [a, b]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}`,
		"failover with the older names": `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: foo}
spec:
  propagateDeps: true
  failover:
    application:
      decisionConditions: {tolerationSeconds: 60}
      purgeMode: Graciously
      gracePeriodSeconds: 600
      statePreservation: {rules: [{aliasLabelName: example.org/checkpoint, jsonPath: "{ .jobStatus.jobID }"}]}
    cluster: {purgeMode: Directly}
  conflictResolution: Overwrite
  suspension: {dispatchingOnClusters: {clusterNames: [a]}}
  resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet, labelSelector: {matchExpressions: [{key: app, operator: In, values: [db]}]}}]`,
		"the older form of overrides": `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: foo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  targetCluster: {labelSelector: {matchLabels: {region: dc1}}}
  overriders:
    plaintext: [{path: "/spec/template/spec/containers/0/image", operator: replace, value: "registry/nginx"}, {path: /metadata/annotations, operator: add, value: {a: b}}]
    imageOverrider: [{predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: replace, value: "1.2"}]`,
		"fields of documents": `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: foo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default}]
  overrideRules:
  - overriders:
      fieldOverrider:
      - {fieldPath: /data/settings.yaml, yaml: [{subPath: /level, operator: replace, value: debug}, {subPath: /old, operator: remove}]}`,
		"quota": `
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: test}
spec:
  overall: {cpu: 100, memory: 200Gi}
  staticAssignments:
  - {clusterName: member1, hard: {cpu: 20, memory: 50Gi}}
  - {clusterName: member2, hard: {cpu: 50, memory: 100Gi}}`,
		"taint policy": `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: foo}
spec:
  targetClusters: {clusterNames: [member1]}
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False"]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]
  taints: [{key: not-ready, effect: NoSchedule}, {key: not-ready, effect: NoExecute}]`,
		"rebalancer": `
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: demo}
spec:
  ttlSecondsAfterFinished: 60
  workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: reader}]`,
		"customization": `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: demo}
spec:
  target: {apiVersion: example.org/v1, kind: Widget}
  customizations:
    healthInterpretation: {luaScript: "function InterpretHealth(observedObj) return true end"}`,
		"interpreter webhook": `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: examples}
webhooks:
- name: widgets.example.org
  rules: [{operations: [InterpretReplica, ReviseReplica, Retain, AggregateStatus], apiGroups: [example.org], apiVersions: [v1], kinds: [Widget]}]
  clientConfig: {url: "https://interpreter.example.org:445/interpreter", caBundle: YQ==}
  interpreterContextVersions: [v1alpha1]
  timeoutSeconds: 3`,
		"member": `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: tried}
spec:
  apiEndpoint: https://172.18.0.3:6443
  impersonatorSecretRef: {name: tried-impersonator, namespace: karmada-cluster}
  secretRef: {name: tried, namespace: karmada-cluster}
  syncMode: Push
  provider: example
  region: north
  zone: a
  resourceModels:
  - {grade: 0, ranges: [{name: cpu, min: "0", max: "1"}, {name: memory, min: "0", max: 4Gi}]}
  - {grade: 1, ranges: [{name: cpu, min: "1", max: "9223372036854775807"}, {name: memory, min: 4Gi, max: "9223372036854775807"}]}
  taints: [{effect: NoSchedule, key: cluster.karmada.io/not-ready}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := w.tried(t, namespace, text); err != nil {
				t.Error(err)
			}
		})
	}
}
