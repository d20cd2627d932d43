package interpreter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

const pod = `{nodeSelector: {disk: ssd}, imagePullSecrets: [{name: pull}], containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}}, envFrom: [{configMapRef: {name: settings}}]}]}`

func TestHealthOfThirdPartyKinds(t *testing.T) {
	condition := func(name string) string { return "{conditions: [{type: " + name + ", status: \"True\"}]}" }
	tests := []struct {
		apiVersion, kind, spec, status string
		want                           Health
	}{
		{"apps.kruise.io/v1alpha1", "CloneSet", "{replicas: 4}", "{updatedReplicas: 4, availableReplicas: 4}", Healthy},
		{
			"apps.kruise.io/v1alpha1", "CloneSet", "{replicas: 4}", "{updatedReplicas: 3, availableReplicas: 4}",
			Unhealthy,
		},
		{
			"apps.kruise.io/v1beta1", "StatefulSet", "{replicas: 2}", "{updatedReplicas: 2, availableReplicas: 1}",
			Unhealthy,
		},
		{
			"apps.kruise.io/v1alpha1", "UnitedDeployment", "{replicas: 2}",
			"{updatedReplicas: 2, availableReplicas: 2}", Healthy,
		},
		{
			"apps.kruise.io/v1alpha1", "DaemonSet", "{}",
			"{desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}", Healthy,
		},
		{"apps.kruise.io/v1alpha1", "SidecarSet", "{}", "{matchedPods: 2, updatedPods: 1}", Unhealthy},
		{"apps.kruise.io/v1alpha1", "SidecarSet", "{}", "{}", Healthy},
		{"apps.kruise.io/v1alpha1", "BroadcastJob", "{}", "{desired: 2, active: 1}", Healthy},
		{"apps.kruise.io/v1alpha1", "BroadcastJob", "{}", "{desired: 2, active: 1, failed: 1}", Unhealthy},
		{"apps.kruise.io/v1alpha1", "AdvancedCronJob", "{}", "{}", Unknown},
		{"argoproj.io/v1alpha1", "Workflow", "{}", "{phase: Running}", Healthy},
		{"argoproj.io/v1alpha1", "Workflow", "{}", "{phase: Error}", Unhealthy},
		{"argoproj.io/v1alpha1", "Workflow", "{}", "{}", Unhealthy},
		{"batch.volcano.sh/v1alpha1", "Job", "{}", "{state: {phase: Pending}}", Healthy},
		{"batch.volcano.sh/v1alpha1", "Job", "{}", "{state: {phase: Failed}}", Unhealthy},
		{"flink.apache.org/v1beta1", "FlinkDeployment", "{}", "{jobStatus: {state: RUNNING}}", Healthy},
		{"flink.apache.org/v1beta1", "FlinkDeployment", "{}", "{jobStatus: {state: RECONCILING}}", Unhealthy},
		{
			"flink.apache.org/v1beta1", "FlinkDeployment", "{}",
			"{jobStatus: {state: CREATED}, error: 'back-off: ErrImagePull'}", Healthy,
		},
		{
			"flink.apache.org/v1beta1", "FlinkDeployment", "{}",
			"{jobManagerDeploymentStatus: READY, lifecycleState: STABLE}", Healthy,
		},
		{"helm.toolkit.fluxcd.io/v2", "HelmRelease", "{}", condition("Ready"), Healthy},
		{"helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "{}", condition("Stalled"), Unhealthy},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", "{}", condition("Ready"), Healthy},
		{"source.toolkit.fluxcd.io/v1", "GitRepository", "{}", condition("Ready"), Healthy},
		{"source.toolkit.fluxcd.io/v1", "Bucket", "{}", "{}", Unhealthy},
		{"source.toolkit.fluxcd.io/v1", "HelmChart", "{}", condition("Ready"), Healthy},
		{"source.toolkit.fluxcd.io/v1", "HelmRepository", "{}", condition("Ready"), Healthy},
		{"source.toolkit.fluxcd.io/v1beta2", "OCIRepository", "{}", condition("Ready"), Healthy},
		{"kubeflow.org/v1", "Notebook", "{}", "{containerState: {running: {}}}", Healthy},
		{"kubeflow.org/v1", "Notebook", "{}", "{containerState: {waiting: {reason: CrashLoopBackOff}}}", Unhealthy},
		{"kubeflow.org/v1", "Notebook", "{}", "{containerState: {terminated: {exitCode: 1}}}", Unhealthy},
		{"kubeflow.org/v1", "PyTorchJob", "{}", condition("Running"), Healthy},
		{"kubeflow.org/v1", "TFJob", "{}", condition("Failed"), Unhealthy},
		{"kubeflow.org/v2beta1", "MPIJob", "{}", "{}", Unhealthy},
		{"kyverno.io/v1", "ClusterPolicy", "{}", "{ready: true}", Healthy},
		{"kyverno.io/v1", "Policy", "{}", "{ready: false}", Unhealthy},
		{"kyverno.io/v1", "Policy", "{}", condition("Ready"), Healthy},
		{
			"ray.io/v1", "RayCluster", "{}",
			"{conditions: [{type: HeadPodReady, status: \"True\"}, {type: RayClusterProvisioned, status: \"True\"}]}",
			Healthy,
		},
		{"ray.io/v1", "RayCluster", "{}", condition("HeadPodReady"), Unhealthy},
		{"ray.io/v1", "RayJob", "{}", "{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}", Healthy},
		{"ray.io/v1", "RayJob", "{}", "{jobDeploymentStatus: Complete, jobStatus: FAILED}", Unhealthy},
		{"ray.io/v1", "RayService", "{}", condition("Ready"), Healthy},
		{"sparkoperator.k8s.io/v1beta2", "SparkApplication", "{}", "{applicationState: {state: RUNNING}}", Healthy},
		{"sparkoperator.k8s.io/v1beta2", "SparkApplication", "{}", "{applicationState: {state: FAILED}}", Unhealthy},
	}
	for _, tc := range tests {
		object := parse(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x}, spec: %s, status: %s}",
			tc.apiVersion, tc.kind, tc.spec, tc.status))
		if got := healthOf(object); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.kind, tc.status, got, tc.want)
		}
	}
}

func TestReplicasAndComponentsOfThirdPartyKinds(t *testing.T) {
	tests := map[string]struct {
		object string
		// want is replicas of CPU and memory, by component
		want string
	}{
		"CloneSet": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 3, template: {spec: ` + pod + `}}}`, "3×500m/1Gi",
		},
		"UnitedDeployment": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: x}, spec: {replicas: 5, template: {cloneSetTemplate: {spec: {template: {spec: ` + pod + `}}}}}}`, "5×500m/1Gi",
		},
		"BroadcastJob": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, metadata: {name: x}, spec: {template: {spec: ` +
				pod + `}}}`, "1×500m/1Gi",
		},
		"DaemonSet": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {name: x}, spec: {template: {spec: ` +
				pod + `}}}`, "",
		},
		"SidecarSet": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: x}, spec: ` + pod + `}`, "",
		},
		"Workflow": {
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, spec: {parallelism: 2, nodeSelector: {a: b}}}`, "2×0/0",
		},
		"Notebook": {
			`{apiVersion: kubeflow.org/v1, kind: Notebook, metadata: {name: x}, spec: {template: {spec: ` + pod + `}}}`,
			"1×500m/1Gi",
		},
		"volcano Job": {
			`{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: x}, spec: {tasks: [{name: ps, replicas: 2, template: {spec: ` + pod + `}}, {minAvailable: 3, replicas: 4, template: {spec: ` + pod + `}}]}}`, "ps 2×500m/1Gi, task-1 3×500m/1Gi",
		},
		"PyTorchJob": {
			`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 4, template: {spec: ` + pod + `}}, Master: {template: {spec: ` + pod + `}}}}}`, "master 1×500m/1Gi, worker 4×500m/1Gi",
		},
		"MPIJob": {
			`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: x}, spec: {mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}}}`, "launcher 1×0/0, worker 2×0/0",
		},
		"RayCluster": {
			`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}, spec: {headGroupSpec: {template: {spec: ` +
				pod + `}}, workerGroupSpecs: [{groupName: small, replicas: 2, template: {spec: ` + pod + `}}, {}]}}`,
			"ray-head 1×500m/1Gi, small 2×500m/1Gi, worker-2 0×0/0",
		},
		"RayService": {
			`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: x}, spec: {rayClusterConfig: {headGroupSpec: {template: {spec: {}}}, workerGroupSpecs: [{replicas: 2, template: {spec: ` + pod + `}}]}}}`, "3×500m/1Gi",
		},
		"FlinkDeployment": {`{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x}, spec: {flinkConfiguration: {taskmanager.numberOfTaskSlots: "2"}, job: {parallelism: 5},
			jobManager: {resource: {cpu: 1, memory: 2048m}}, taskManager: {resource: {cpu: 0.5, memory: 1g}}}}`, "jobmanager 1×1/2Gi, taskmanager 3×500m/1Gi"},
		"SparkApplication": {
			`{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: x}, spec: {type: Scala, driver: {cores: 1, memory: 512m}, executor: {instances: 2, coreRequest: 500m, memory: 10g}}}`,
			"driver 1×1/896Mi, executor 2×500m/11Gi",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			components, err := componentsOf(object)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range components {
				r := c.ReplicaRequirements.ResourceRequest
				got = append(got, fmt.Sprintf("%s %d×%s/%s", c.Name, c.Replicas, r.Cpu(), r.Memory()))
			}
			workload, err := workloadOf(object)
			if err != nil {
				t.Fatal(err)
			}
			if workload != nil {
				r := workload.Requirements.ResourceRequest
				got = append(got, fmt.Sprintf("%d×%s/%s", workload.Replicas, r.Cpu(), r.Memory()))
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

func TestReviseOfThirdPartyKinds(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"CloneSet": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 3}}`,
			`{"replicas":5}`,
		},
		"Workflow": {
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, spec: {}}`, `{"parallelism":5}`,
		},
		"one group of workers": {
			`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: x}, spec: {rayClusterConfig: {workerGroupSpecs: [{replicas: 1}]}}}`,
			`{"rayClusterConfig":{"workerGroupSpecs":[{"replicas":4}]}}`,
		},
		"groups in proportion": {
			`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: x}, spec: {rayClusterConfig: {workerGroupSpecs: [{replicas: 6}, {replicas: 2}]}}}`,
			`{"rayClusterConfig":{"workerGroupSpecs":[{"replicas":3},{"replicas":1}]}}`,
		},
		"groups alike": {
			`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: x}, spec: {rayClusterConfig: {workerGroupSpecs: [{}, {}]}}}`,
			`{"rayClusterConfig":{"workerGroupSpecs":[{"replicas":2},{"replicas":2}]}}`,
		},
		"without replicas": {`{apiVersion: kyverno.io/v1, kind: Policy, metadata: {name: x}, spec: {}}`, `{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			revised, err := revise(parse(t, tc.object), 5)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(revised.Object["spec"])
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"Deployment": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: ns}, spec: {template: {spec: {serviceAccountName: runner, imagePullSecrets: [{name: pull}, {name: pull}],
			initContainers: [{name: i, env: [{name: A, valueFrom: {secretKeyRef: {name: early, key: k}}}]}],
			containers: [{name: c, envFrom: [{secretRef: {name: from}}, {configMapRef: {name: settings}}], env: [{name: B, valueFrom: {configMapKeyRef: {name: one, key: k}}}]}],
			volumes: [{name: a, configMap: {name: mounted}}, {name: b, secret: {secretName: hidden}}, {name: c, persistentVolumeClaim: {claimName: data}},
				{name: d, projected: {sources: [{configMap: {name: kube-root-ca.crt}}, {secret: {name: projected}}, {serviceAccountToken: {path: t}}]}}, {name: e, csi: {driver: x, nodePublishSecretRef: {name: publish}}}]}}}}`,
			"ConfigMap/mounted ConfigMap/one ConfigMap/settings PersistentVolumeClaim/data Secret/early Secret/from " +
				"Secret/hidden Secret/projected Secret/publish Secret/pull ServiceAccount/runner"},
		"default account": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: ns}, spec: {serviceAccountName: default}}`, "",
		},
		"StatefulSet": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: own}}], template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: own}}, {name: b, persistentVolumeClaim: {claimName: other}}]}}}}`,
			"PersistentVolumeClaim/other",
		},
		"CronJob": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: ns}, spec: {jobTemplate: {spec: {template: {spec: ` + pod + `}}}}}`, "ConfigMap/settings Secret/pull",
		},
		"DaemonSet": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, namespace: ns}, spec: {template: {spec: ` +
				pod + `}}}`, "ConfigMap/settings Secret/pull",
		},
		"Ingress": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, namespace: ns}, spec: {tls: [{secretName: tls}, {}]}}`, "Secret/tls",
		},
		"ServiceImport": {
			`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: x, namespace: ns}}`,
			"EndpointSlice/ Service/derived-x",
		},
		"HelmRelease": {
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: x, namespace: ns}, spec: {serviceAccountName: sa, valuesFrom: [{kind: Secret, name: a}, {kind: ConfigMap, name: b}, {kind: Other, name: c}], kubeConfig: {secretRef: {name: kc}}}}`,
			"ConfigMap/b Secret/a Secret/kc ServiceAccount/sa",
		},
		"Kustomization": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, namespace: ns}, spec: {decryption: {secretRef: {name: sops}}}}`, "Secret/sops",
		},
		"GitRepository": {
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: x, namespace: ns}, spec: {secretRef: {name: ssh}, verify: {secretRef: {name: keys}}}}`, "Secret/keys Secret/ssh",
		},
		"OCIRepository": {
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: x, namespace: ns}, spec: {serviceAccountName: puller}}`, "ServiceAccount/puller",
		},
		"PyTorchJob": {
			`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x, namespace: ns}, spec: {pytorchReplicaSpecs: {Worker: {template: {spec: ` + pod + `}}}}}`, "ConfigMap/settings Secret/pull",
		},
		"RayService": {
			`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: x, namespace: ns}, spec: {rayClusterConfig: {headGroupSpec: {template: {spec: ` + pod + `}}}}}`, "ConfigMap/settings Secret/pull",
		},
		"AdvancedCronJob": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, metadata: {name: x, namespace: ns}, spec: {template: {broadcastJobTemplate: {spec: {template: {spec: ` + pod + `}}}}}}`, "ConfigMap/settings Secret/pull",
		},
		"Workflow": {
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x, namespace: ns}, spec: {serviceAccountName: wf, executor: {serviceAccountName: ex}, volumes: [{name: v, secret: {secretName: s}}], templates: [{script: {env: [{name: A, valueFrom: {secretKeyRef: {name: t, key: k}}}], source: x}}]}}`,
			"Secret/s Secret/t ServiceAccount/ex ServiceAccount/wf",
		},
		"FlinkDeployment": {
			`{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x, namespace: ns}, spec: {serviceAccount: flink, podTemplate: {spec: ` + pod + `}}}`, "ConfigMap/settings Secret/pull ServiceAccount/flink",
		},
		"SparkApplication": {
			`{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: x, namespace: ns}, spec: {imagePullSecrets: [pull], driver: {serviceAccount: spark, secrets: [{name: s}]}, executor: {configMaps: [{name: c}]}}}`, "ConfigMap/c Secret/pull Secret/s ServiceAccount/spark",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			references, err := dependenciesOf(parse(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range references {
				got = append(got, r.Kind+"/"+r.Name)
				if r.Namespace != "ns" {
					t.Errorf("%s is in namespace %q", r.Name, r.Namespace)
				}
			}
			// order is by API group first
			text := strings.Join(got, " ")
			if text != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

func TestAggregateOfThirdPartyKinds(t *testing.T) {
	tests := map[string]struct {
		object   string
		statuses []string
		want     string
	}{
		"CloneSet": {`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x, generation: 2}}`,
			[]string{
				`{"replicas": 2, "updatedReplicas": 2, "updateRevision": "a", "generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": 2}`,
				`{"replicas": 1, "updateRevision": "b", "generation": 3, "observedGeneration": 3, "resourceTemplateGeneration": 2}`,
			},
			`{"observedGeneration":2,"replicas":3,"updateRevision":"b","updatedReplicas":2}`},
		"Kustomization": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, generation: 1}}`,
			[]string{
				`{"conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "one", "lastTransitionTime": "2025-01-01T00:00:00Z"}], "lastAppliedRevision": "main@1"}`,
				`{"conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "two", "lastTransitionTime": "2025-02-01T00:00:00Z"}]}`,
			},
			`{"conditions":[{"lastTransitionTime":"2025-02-01T00:00:00Z","message":"a=one, b=two","reason":"Succeeded","status":"True","type":"Ready"}],"lastAppliedRevision":"main@1"}`,
		},
		"Kyverno": {`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: x}}`,
			[]string{
				`{"ready": true, "rulecount": {"validate": 1}}`,
				`{"ready": false, "rulecount": {"validate": 2, "mutate": 1}}`,
			},
			`{"ready":false,"rulecount":{"mutate":1,"validate":3}}`},
		"PyTorchJob that failed in one": {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x}}`,
			[]string{
				`{"conditions": [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}], "completionTime": "2025-01-01T00:02:00Z", "replicaStatuses": {"Worker": {"succeeded": 2}}}`,
				`{"conditions": [{"type": "Failed", "status": "True"}], "startTime": "2025-01-01T00:00:00Z", "replicaStatuses": {"Worker": {"failed": 1, "succeeded": 1}}}`,
			},
			`{"conditions":[{"lastTransitionTime":"2025-01-01T00:00:00Z","lastUpdateTime":"2025-01-01T00:00:00Z","message":"PyTorchJob is created.","reason":"PyTorchJobCreated","status":"True","type":"Created"},` +
				`{"lastTransitionTime":"2025-01-01T00:02:00Z","lastUpdateTime":"2025-01-01T00:02:00Z","message":"PyTorchJob failed in member clusters: b","reason":"PyTorchJobFailed","status":"True","type":"Failed"}],` +
				`"replicaStatuses":{"Worker":{"failed":1,"succeeded":3}},"startTime":"2025-01-01T00:00:00Z"}`},
		"RayJob": {`{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: x}}`,
			[]string{
				`{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}`,
				`{"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "message": "m"}`,
			},
			`{"jobDeploymentStatus":"Running","jobStatus":"RUNNING","message":"b=m"}`},
		"RayCluster": {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}}`,
			[]string{
				`{"readyWorkerReplicas": 2, "desiredCPU": "1500m", "desiredGPU": "0"}`,
				`{"readyWorkerReplicas": 1, "desiredCPU": "1", "desiredGPU": "2"}`,
			},
			`{"desiredCPU":"2500m","desiredGPU":"2","readyWorkerReplicas":3}`},
		"one member alone": {
			`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}}`, []string{`{"any": {"thing": 1}}`},
			`{"any":{"thing":1}}`,
		},
		"Flink": {
			`{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x}}`,
			[]string{`{"lifecycleState": "STABLE"}`, `{"error": ""}`}, `{"lifecycleState":"STABLE"}`,
		},
		"AdvancedCronJob": {`{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, metadata: {name: x}}`,
			[]string{
				`{"active": [{"name": "a"}], "lastScheduleTime": "2025-01-01T00:00:00Z"}`,
				`{"active": [{"name": "b"}], "type": "Job", "lastScheduleTime": "2024-01-01T00:00:00Z"}`,
			},
			`{"active":[{"name":"a"},{"name":"b"}],"lastScheduleTime":"2025-01-01T00:00:00Z","type":"Job"}`},
		"PersistentVolumeClaim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}}`,
			[]string{`{"phase": "Bound"}`, `{"phase": "Pending"}`}, `{"phase":"Pending"}`,
		},
		"PodDisruptionBudget": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}}`,
			[]string{`{"currentHealthy": 1}`, `{"currentHealthy": 2}`}, `{"currentHealthy":3}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var items []workv1alpha2.AggregatedStatusItem
			for i, status := range tc.statuses {
				items = append(items, workv1alpha2.AggregatedStatusItem{
					ClusterName: string(rune('a' + i)), Status: &runtime.RawExtension{Raw: []byte(status)},
				})
			}
			status, known, err := New().Aggregate(t.Context(), parse(t, tc.object), items, len(items))
			if err != nil || !known {
				t.Fatalf("known: %v, %v", known, err)
			}
			got, err := json.Marshal(status)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestReflectOfThirdPartyKinds(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"fields that are known": {
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x, generation: 4}, status: {observedGeneration: 4, replicas: 1, updateRevision: r, secret: s}}`,
			`{"generation":4,"observedGeneration":4,"replicas":1,"resourceTemplateGeneration":7,"updateRevision":"r"}`,
		},
		"conditions": {
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, metadata: {name: x, generation: 1}, status: {conditions: [{type: Ready}], other: 1}}`, `{"conditions":[{"type":"Ready"}],"generation":1,"resourceTemplateGeneration":7}`,
		},
		"all": {
			`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}, status: {state: ready, any: 1}}`,
			`{"any":1,"state":"ready"}`,
		},
		"nothing":      {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}}`, `null`},
		"unknown kind": {`{apiVersion: example.com/v1, kind: Any, metadata: {name: x}, status: {a: 1}}`, `{"a":1}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(reflectStatus(parse(t, tc.object), 7))
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestRetainedFieldsOfThirdPartyKinds(t *testing.T) {
	wanted :=
		parse(t,
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: x}, spec: {suspend: false, interval: 1m}}`)
	observed :=
		parse(t,
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: x}, spec: {suspend: true, interval: 5m}}`)
	got := retain(wanted, observed)
	if spec := section(got, "spec"); spec["suspend"] != true || spec["interval"] != "1m" {
		t.Errorf("got %v", spec)
	}
}

// FuzzInterpret asks every question about an object of every kind: none may panic.
func FuzzInterpret(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c"}]}}},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"spec":"x","status":[],"metadata":{"labels":{"resourcetemplate.karmada.io/retain-replicas":"true"}}}`,
		`{"spec":{"replicas":-1,"tasks":[{"template":{"spec":{"containers":{}}}}],"rayClusterConfig":{"workerGroupSpecs":[{"replicas":1e300}]}}}`,
		`{"spec":{"parallelism":1e18,"volumes":[null,{"secret":1}],"ports":[{"nodePort":{}}],"driver":{"memory":"99999999999999t"}},"status":{"active":1e300,"loadBalancer":{"ingress":[1]}}}`,
	} {
		f.Add([]byte(seed),
			[]byte(`{"replicas": 1e300, "conditions": [1, {"type": {}}], "replicaStatuses": {"a": {"b": {"c": 1}}}}`))
	}
	f.Fuzz(func(t *testing.T, data, status []byte) {
		var raw map[string]any
		if json.Unmarshal(data, &raw) != nil || raw == nil || !json.Valid(status) {
			return
		}
		i := New()
		for groupKind := range kinds {
			raw["apiVersion"], raw["kind"] = groupKind.Group+"/v1", groupKind.Kind
			encoded, err := json.Marshal(raw)
			if err != nil {
				return
			}
			object := parse(t, string(encoded))
			items := []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "a", Status: &runtime.RawExtension{Raw: status}},
				{ClusterName: "b", Status: &runtime.RawExtension{Raw: status}}, {ClusterName: "c"},
			}
			_, _ = i.Workload(t.Context(), object)
			_, _ = i.Components(t.Context(), object)
			_, _ = i.Revise(t.Context(), object, 3)
			_, _ = i.Prune(t.Context(), object)
			_, _ = i.Retain(t.Context(), object, object)
			_, _, _ = i.Aggregate(t.Context(), object, items, 3)
			_, _, _ = i.Aggregate(t.Context(), object, nil, 0)
			_, _ = i.Reflect(t.Context(), object, 1)
			_, _ = i.Health(t.Context(), object)
			_, _ = i.Dependencies(t.Context(), object)
		}
	})
}
