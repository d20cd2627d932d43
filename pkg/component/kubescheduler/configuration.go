package kubescheduler

import "github.com/trellis-garden/trellis/pkg/managers"

// defaultSchedulerName is the scheduler that pods ask for unless they name another.
const defaultSchedulerName = "default-scheduler"

// configuration is the KubeSchedulerConfiguration.
func configuration(v Values) map[string]any {
	return map[string]any{
		"apiVersion":       "kubescheduler.config.k8s.io/v1",
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfigFile},
		"leaderElection":   election(v.Replicas),
		"enableProfiling":  false,
		"profiles":         []any{profile(v.Profile)},
	}
}

// election has one of several replicas work.
func election(replicas int32) map[string]any {
	if replicas <= 1 {
		return map[string]any{"leaderElect": false}
	}
	return map[string]any{
		"leaderElect": true, "leaseDuration": managers.LeaseDuration.String(),
		"renewDeadline": managers.RenewDeadline.String(), "retryPeriod": managers.RetryPeriod.String(),
	}
}

// profile scores nodes. Bin packing prefers those with the most of their resources requested, and must not weigh
// against it that CPU and memory be used evenly.
func profile(wanted Profile) map[string]any {
	result := map[string]any{"schedulerName": defaultSchedulerName}
	if wanted != BinPacking {
		return result
	}
	result["plugins"] = map[string]any{
		"score": map[string]any{"disabled": []any{map[string]any{"name": "NodeResourcesBalancedAllocation"}}},
	}
	result["pluginConfig"] = []any{map[string]any{
		"name": "NodeResourcesFit",
		"args": map[string]any{"scoringStrategy": map[string]any{
			"type": "MostAllocated",
			"resources": []any{
				map[string]any{"name": "cpu", "weight": 1},
				map[string]any{"name": "memory", "weight": 1},
			},
		}},
	}}
	return result
}
