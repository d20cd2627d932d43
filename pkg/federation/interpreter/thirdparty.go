package interpreter

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func init() { maps.Copy(kinds, thirdParty) }

// rolledOut judges kinds with the fields of a Deployment. As long as there are pods of the revision before, it may be
// these that are available, and not one of those that are updated.
func rolledOut(spec, status fields) bool {
	updated := status.number("updatedReplicas")
	return updated >= spec.numberOr("replicas", 1) && status.number("replicas") <= updated &&
		status.number("availableReplicas") >= updated
}

// ready judges kinds that say it by the condition Ready.
func ready(_, status fields) bool { return status.condition("Ready") }

// notFailed judges jobs: they are healthy once their controller has seen them, and until one fails.
func notFailed(_, status fields) bool {
	return len(status.list("conditions")) > 0 && !status.condition("Failed")
}

var (
	specReplicas = []string{"spec", "replicas"}
	specTemplate = []string{"spec", "template"}
	specSuspend  = [][]string{{"spec", "suspend"}}
)

// thirdParty are well-known kinds that others define, in any of their versions.
var thirdParty = map[schema.GroupKind]kind{
	{Group: "apps.kruise.io", Kind: "CloneSet"}: {
		replicas: specReplicas, pods: specTemplate, healthy: rolledOut,
		sums: []string{
			"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "updatedReadyReplicas",
			"expectedUpdatedReplicas",
		},
		status: summary{last: []string{"updateRevision", "currentRevision", "labelSelector"}},
	},
	{Group: "apps.kruise.io", Kind: "StatefulSet"}: {
		replicas: specReplicas, pods: specTemplate, healthy: rolledOut, dependencies: ownClaims,
		sums: []string{
			"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "updatedReadyReplicas",
			"currentReplicas",
		},
		status: summary{last: []string{"updateRevision", "currentRevision"}},
	},
	{Group: "apps.kruise.io", Kind: "DaemonSet"}: {
		pods: specTemplate, healthy: scheduledEverywhere,
		sums: []string{
			"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady",
			"updatedNumberScheduled", "numberUnavailable",
		},
		status: summary{last: []string{"daemonSetHash"}},
	},
	{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: {
		replicas: specReplicas, podsOf: unitedDeploymentPods, healthy: rolledOut,
		sums:   []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"},
		status: summary{conditions: true},
	},
	{Group: "apps.kruise.io", Kind: "SidecarSet"}: {
		pods: []string{}, sums: []string{"matchedPods", "updatedPods", "readyPods", "updatedReadyPods"},
		healthy: func(_, status fields) bool { return status.number("updatedPods") >= status.number("matchedPods") },
	},
	{Group: "apps.kruise.io", Kind: "BroadcastJob"}: {
		replicas: []string{"spec", "parallelism"}, pods: specTemplate,
		sums: []string{"active", "succeeded", "failed", "desired"},
		status: summary{
			conditions: true, earliest: []string{"startTime"}, latest: []string{"completionTime"},
			worst: map[string][]string{"phase": {"failed", "paused", "running", "completed"}},
		},
		healthy: func(_, status fields) bool {
			return status.number("desired") > 0 && status.number("failed") == 0 &&
				status.number("succeeded")+status.number("active") > 0
		},
	},
	{Group: "apps.kruise.io", Kind: "AdvancedCronJob"}: {
		podsOf: advancedCronJobPods,
		status: summary{lists: []string{"active"}, last: []string{"type"}, latest: []string{"lastScheduleTime"}},
	},
	{Group: "argoproj.io", Kind: "Workflow"}: {
		replicas: []string{"spec", "parallelism"}, podsOf: workflowPods, retained: specSuspend,
		dependencies: workflowDependencies,
		healthy: func(_, status fields) bool {
			phase := status.text("phase")
			return phase != "" && phase != "Error" && phase != "Failed"
		},
	},
	{Group: "batch.volcano.sh", Kind: "Job"}: {
		parts: volcanoTasks,
		sums:  []string{"pending", "running", "succeeded", "failed", "terminating", "unknown", "minAvailable"},
		status: summary{
			whole: true, counts: []string{"taskStatusCount"}, merged: []string{"controlledResources"}, conditions: true,
			last: []string{"version", "retryCount", "runningDuration", "state"},
		},
		healthy: func(_, status fields) bool {
			phase := status.part("state").text("phase")
			return phase != "" && phase != "Failed"
		},
	},
	{Group: "flink.apache.org", Kind: "FlinkDeployment"}: {
		components: flinkComponents, dependencies: flinkDependencies, healthy: flinkHealthy,
		status: summary{whole: true, last: []string{
			"clusterInfo", "error", "jobManagerDeploymentStatus", "jobStatus", "lifecycleState", "observedGeneration",
			"reconciliationStatus", "taskManager",
		}},
	},
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}: {
		healthy: ready, retained: specSuspend, dependencies: helmReleaseDependencies,
		sums: []string{"failures", "upgradeFailures", "installFailures"},
		status: summary{conditions: true, last: []string{
			"lastAttemptedRevision", "lastAppliedRevision", "lastAttemptedValuesChecksum", "helmChart",
			"lastReleaseRevision",
		}},
	},
	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}: {
		healthy: ready, retained: specSuspend,
		status:   summary{conditions: true, last: []string{"lastAttemptedRevision", "lastAppliedRevision"}},
		secrets:  [][]string{{"decryption", "secretRef", "name"}, {"kubeConfig", "secretRef", "name"}},
		accounts: [][]string{{"serviceAccountName"}},
	},
	{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}: {
		healthy: ready, retained: specSuspend, status: sourceStatus,
		secrets: [][]string{{"secretRef", "name"}, {"verify", "secretRef", "name"}, {"proxySecretRef", "name"}},
	},
	{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"}: {
		healthy: ready, retained: specSuspend, status: sourceStatus,
		secrets: [][]string{{"secretRef", "name"}, {"certSecretRef", "name"}, {"proxySecretRef", "name"}},
	},
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart"}: {
		healthy: ready, retained: specSuspend, status: sourceStatus,
		secrets: [][]string{{"verify", "secretRef", "name"}},
	},
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmRepository"}: {
		healthy: ready, retained: specSuspend, status: sourceStatus,
		secrets: [][]string{{"secretRef", "name"}, {"certSecretRef", "name"}},
	},
	{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}: {
		healthy: ready, retained: specSuspend, status: sourceStatus,
		secrets: [][]string{
			{"secretRef", "name"}, {"verify", "secretRef", "name"}, {"certSecretRef", "name"},
			{"proxySecretRef", "name"},
		},
		accounts: [][]string{{"serviceAccountName"}},
	},
	{Group: "kubeflow.org", Kind: "Notebook"}: {
		single: true, pods: specTemplate, healthy: notebookHealthy, sums: []string{"readyReplicas"},
		status: summary{whole: true, conditions: true, last: []string{"containerState"}},
	},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:  trainingJob("pytorchReplicaSpecs"),
	{Group: "kubeflow.org", Kind: "TFJob"}:       trainingJob("tfReplicaSpecs"),
	{Group: "kubeflow.org", Kind: "MPIJob"}:      trainingJob("mpiReplicaSpecs"),
	{Group: "kubeflow.org", Kind: "XGBoostJob"}:  trainingJob("xgbReplicaSpecs"),
	{Group: "kubeflow.org", Kind: "PaddleJob"}:   trainingJob("paddleReplicaSpecs"),
	{Group: "kubeflow.org", Kind: "JAXJob"}:      trainingJob("jaxReplicaSpecs"),
	{Group: "kyverno.io", Kind: "ClusterPolicy"}: kyvernoPolicy,
	{Group: "kyverno.io", Kind: "Policy"}:        kyvernoPolicy,
	{Group: "ray.io", Kind: "RayCluster"}: {
		parts: rayParts("spec"),
		sums: []string{
			"readyWorkerReplicas", "availableWorkerReplicas", "desiredWorkerReplicas", "minWorkerReplicas",
			"maxWorkerReplicas",
		},
		status: summary{
			whole: true, conditions: true, last: []string{"endpoints", "head", "state", "stateTransitionTimes"},
			latest:     []string{"lastUpdateTime"},
			quantities: []string{"desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU"},
		},
		healthy: func(_, status fields) bool {
			return status.condition("HeadPodReady") && status.condition("RayClusterProvisioned") &&
				!status.condition("RayClusterReplicaFailure")
		},
	},
	{Group: "ray.io", Kind: "RayJob"}: {
		parts: rayParts("spec", "rayClusterSpec"),
		status: summary{
			whole: true, texts: []string{"reason", "message"},
			worst: map[string][]string{
				"jobDeploymentStatus": {
					"ValidationFailed", "Failed", "Retrying", "Suspending", "Suspended", "Waiting", "Initializing",
					"Running", "Complete",
				},
				"jobStatus": {"FAILED", "STOPPED", "PENDING", "RUNNING", "SUCCEEDED"},
			},
		},
		healthy: func(_, status fields) bool {
			switch status.text("jobDeploymentStatus") {
			case "Running":
				return true
			case "Complete":
				return status.text("jobStatus") == "SUCCEEDED"
			}
			return false
		},
	},
	{Group: "ray.io", Kind: "RayService"}: {
		workload: rayServiceWorkload, revise: rayServiceRevise, parts: rayParts("spec", "rayClusterConfig"),
		partsAreOne: true, healthy: ready,
		sums: []string{"numServeEndpoints"},
		status: summary{
			whole: true, conditions: true,
			last:   []string{"serviceStatus", "activeServiceStatus", "pendingServiceStatus"},
			latest: []string{"lastUpdateTime"},
		},
	},
	{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}: {
		components: sparkComponents, dependencies: sparkDependencies,
		sums: []string{"executionAttempts", "submissionAttempts"},
		status: summary{
			whole: true, merged: []string{"executorState"},
			latest: []string{"lastSubmissionAttemptTime", "terminationTime"},
			last:   []string{"applicationState", "driverInfo", "sparkApplicationId", "submissionID"},
		},
		healthy: func(_, status fields) bool {
			state := status.part("applicationState").text("state")
			return state != "" && state != "FAILED"
		},
	},
}

var sourceStatus = summary{conditions: true, last: []string{
	"artifact", "url", "observedIgnore", "observedChartName", "observedSourceArtifactRevision", "observedLayerSelector",
	"observedRecurseSubmodules",
}}

var kyvernoPolicy = kind{
	status: summary{conditions: true, all: []string{"ready"}, counts: []string{"rulecount"}, last: []string{"autogen"}},
	healthy: func(_, status fields) bool {
		if is, told := status["ready"].(bool); told {
			return is
		}
		return status.condition("Ready")
	},
}

// trainingJob knows the jobs of Kubeflow, which differ in the name of the field with their roles.
func trainingJob(roles string) kind {
	return kind{
		parts: func(object *unstructured.Unstructured) []part {
			var result []part
			all := section(object, "spec").part(roles)
			for _, role := range sortedKeys(all) {
				spec := all.part(role)
				result = append(result, part{
					name: strings.ToLower(role), replicas: spec.numberOr("replicas", 1),
					template: spec.part("template"),
				})
			}
			return result
		},
		healthy: notFailed, aggregate: aggregateTrainingJob,
		status: summary{
			counts: []string{"replicaStatuses"}, earliest: []string{"startTime"}, latest: []string{"lastReconcileTime"},
			reflected: []string{"completionTime", "conditions"},
		},
	}
}

func scheduledEverywhere(_, status fields) bool {
	updated := status.number("updatedNumberScheduled")
	return updated >= status.number("desiredNumberScheduled") && status.number("numberAvailable") >= updated
}

// ownClaims takes out what a StatefulSet makes itself.
func ownClaims(object *unstructured.Unstructured, d *dependencies) error {
	for _, claim := range section(object, "spec").list("volumeClaimTemplates") {
		d.remove("PersistentVolumeClaim", claim.part("metadata").text("name"))
	}
	return nil
}

// unitedDeploymentPods finds the template under the kind of workload that it makes.
func unitedDeploymentPods(object *unstructured.Unstructured) fields {
	template := section(object, "spec").part("template")
	for _, form := range []string{
		"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate",
	} {
		if workload := template.part(form); workload != nil {
			return workload.part("spec", "template", "spec")
		}
	}
	return template.part("spec")
}

func advancedCronJobPods(object *unstructured.Unstructured) fields {
	template := section(object, "spec").part("template")
	if job := template.part("broadcastJobTemplate"); job != nil {
		return job.part("spec", "template", "spec")
	}
	return template.part("jobTemplate", "spec", "template", "spec")
}

// workflowPods is what all pods of a Workflow share. Their containers differ too much to say what one needs.
func workflowPods(object *unstructured.Unstructured) fields {
	spec, pod := section(object, "spec"), fields{}
	copyFields(pod, spec, "affinity", "nodeSelector", "tolerations", "serviceAccountName", "imagePullSecrets",
		"volumes")
	return pod
}

func workflowDependencies(object *unstructured.Unstructured, d *dependencies) error {
	spec := section(object, "spec")
	d.add("ServiceAccount", spec.part("executor").text("serviceAccountName"))
	for _, claim := range spec.list("volumeClaimTemplates") {
		d.remove("PersistentVolumeClaim", claim.part("metadata").text("name"))
	}
	for _, template := range spec.list("templates") {
		pod := fields{}
		copyFields(pod, template, "initContainers", "volumes", "serviceAccountName")
		pod["containers"] = append(workflowContainers(template), entries(template["sidecars"])...)
		if err := d.addDecoded(pod); err != nil {
			return err
		}
	}
	return nil
}

// workflowContainers are those of a template that runs a pod.
func workflowContainers(template fields) []any {
	var result []any
	for _, form := range []string{"container", "script"} {
		if container := template.part(form); container != nil {
			only := fields{}
			copyFields(only, container, "env", "envFrom")
			result = append(result, map[string]any(only))
		}
	}
	return append(result, entries(template.part("containerSet")["containers"])...)
}

func entries(value any) []any {
	list, _ := value.([]any)
	return list
}

func volcanoTasks(object *unstructured.Unstructured) []part {
	var result []part
	for i, task := range section(object, "spec").list("tasks") {
		result = append(result, part{
			name:     orNumbered(task.text("name"), "task", i),
			replicas: task.numberOr("minAvailable", task.numberOr("replicas", 1)), template: task.part("template"),
		})
	}
	return result
}

func helmReleaseDependencies(object *unstructured.Unstructured, d *dependencies) error {
	spec := section(object, "spec")
	for _, values := range spec.list("valuesFrom") {
		if kind := values.text("kind"); kind == "Secret" || kind == "ConfigMap" {
			d.add(kind, values.text("name"))
		}
	}
	d.add("Secret", spec.part("chart", "spec", "verify", "secretRef").text("name"),
		spec.part("kubeConfig", "secretRef").text("name"))
	d.add("ServiceAccount", spec.text("serviceAccountName"))
	return nil
}

// notebookHealthy: a notebook that runs, is about to, or has ended well.
func notebookHealthy(_, status fields) bool {
	state := status.part("containerState")
	switch {
	case state.part("running") != nil:
		return true
	case state.part("waiting") != nil:
		return state.part("waiting").text("reason") == "ContainerCreating"
	case state.part("terminated") != nil:
		return state.part("terminated").number("exitCode") == 0
	}
	return false
}

// flinkHealthy: a job that is only about to run is healthy if it is the user's image or program that keeps it from
// running: another cluster would not help.
func flinkHealthy(_, status fields) bool {
	switch status.part("jobStatus").text("state") {
	case "":
		return status.text("jobManagerDeploymentStatus") == "READY" && status.text("lifecycleState") == "STABLE"
	case "RUNNING", "FINISHED", "FAILED", "CANCELED", "SUSPENDED", "CANCELLING", "FAILING", "RESTARTING":
		return true
	case "CREATED", "INITIALIZING", "RECONCILING":
		for _, mistake := range []string{"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"} {
			if strings.Contains(status.text("error"), mistake) {
				return true
			}
		}
	}
	return false
}
