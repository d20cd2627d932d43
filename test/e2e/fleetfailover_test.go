//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// patient never runs in member1, where its image cannot be had, and is ready in member2 when somebody says so.
const patient = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: patient, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: patient}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: {imageOverrider: [{component: Tag, operator: add, value: not-there}]}
  - targetCluster: {clusterNames: [member2]}
    overriders: {plaintext: [{path: /spec/template/spec/readinessGates, operator: add, value: [{conditionType: example.com/said}]}]}
---`

// An application that stays unhealthy in a member moves to the other one, with a part of its state. The old copy goes
// only when the new one is healthy.
func fleetMovesWhatFails(t *testing.T) {
	l := open(t)
	fleet, m1, m2 := l.fleet(t), l.shoot(t, "member1"), l.shoot(t, "member2")
	manifest := patient + fleetNginx("patient", 1, `
  dependentOverrides: [patient]
  propagateDeps: true
  failover:
    application:
      decisionConditions: {tolerationSeconds: 3}
      statePreservation: {rules: [{aliasLabelName: example.com/failed, jsonPath: "{.unavailableReplicas}"}]}
    failBack: {mode: Never}
  placement:
    clusterAffinities:
    - {affinityName: preferred, clusterNames: [member1]}
    - {affinityName: otherwise, clusterNames: [member2]}
`)
	l.removeAfterwards(t, fleet, manifest, "deploy/patient", m1, m2)
	fleet.apply(t, manifest)
	m2.eventually(t, 2*time.Minute, equals("True"), "get", "pods", "-l", "app=patient", "-o",
		`jsonpath={.items[*].status.conditions[?(@.type=="ContainersReady")].status}`)
	m2.eventually(t, time.Second, equals("1"), "get", "deploy", "patient", "-o",
		`jsonpath={.metadata.labels.example\.com/failed}`)

	fleet.eventually(t, time.Minute, equals("Unhealthy"), "get", "resourcebinding", "patient-deployment", "-o",
		`jsonpath={.status.aggregatedStatus[?(@.clusterName=="member2")].health}`)
	m1.run(t, "get", "deploy", "patient")
	pod := strings.TrimSpace(m2.run(t, "get", "pods", "-l", "app=patient", "-o", "name"))
	m2.run(t, "patch", pod, "--subresource=status", "--type=strategic", "-p",
		`{"status":{"conditions":[{"type":"example.com/said","status":"True"}]}}`)
	m1.eventually(t, time.Minute, equals(""), "get", "deploy", "patient", "--ignore-not-found", "-o", "name")
	fleet.eventually(t, time.Minute, equals("1"), "get", "deploy", "patient", "-o", "jsonpath={.status.readyReplicas}")
}
