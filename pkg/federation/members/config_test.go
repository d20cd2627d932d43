package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://from-kubeconfig"}}]
users: [{name: u, user: {%s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func TestRESTConfig(t *testing.T) {
	withUser := func(user string) map[string][]byte {
		return map[string][]byte{"kubeconfig": []byte(strings.Replace(kubeconfig, "%s", user, 1))}
	}
	tests := map[string]struct {
		endpoint string
		secret   map[string][]byte
		host     string
		err      string
	}{
		"token":                     {"https://a", map[string][]byte{"token": []byte("t")}, "https://a", ""},
		"certificate":               {"https://a", map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}, "https://a", ""},
		"kubeconfig":                {"", withUser("token: t"), "https://from-kubeconfig", ""},
		"kubeconfig, other address": {"https://a", withUser("token: t"), "https://a", ""},
		"nothing":                   {"https://a", nil, "", "has neither a kubeconfig nor a token"},
		"no endpoint":               {"", map[string][]byte{"token": []byte("t")}, "", "spec.apiEndpoint is empty"},
		"a command is never run":    {"", withUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}"), "", "no commands and no files"},
		"a file is never read":      {"", withUser("tokenFile: /etc/passwd"), "", "no commands and no files"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: tc.endpoint}}
			config, err := RESTConfig(cluster, &corev1.Secret{Data: tc.secret})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || config.Host != tc.host {
				t.Errorf("got %v, %v", config, err)
			}
		})
	}
}

func TestResourceSummary(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		}}
	}
	pod := func(node string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}}},
		}}}
	}
	nodes := []corev1.Node{node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse)}
	summary := resourceSummary(nodes, []corev1.Pod{pod("a"), pod("a"), pod("b"), pod("")})
	for _, check := range []struct {
		list      corev1.ResourceList
		cpu, pods string
		what      string
	}{
		{summary.Allocatable, "4", "10", "only nodes that are ready count"},
		{summary.Allocated, "1", "2", "pods on them"},
		{summary.Allocating, "500m", "1", "pods without a node"},
	} {
		cpu, pods := check.list[corev1.ResourceCPU], check.list[corev1.ResourcePods]
		if cpu.String() != check.cpu || pods.String() != check.pods {
			t.Errorf("%s: got %s CPU, %s pods", check.what, cpu.String(), pods.String())
		}
	}
	if n := nodeSummary(nodes); n.TotalNum != 2 || n.ReadyNum != 1 {
		t.Errorf("got %+v", n)
	}
}
