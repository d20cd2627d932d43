package live

import (
	"encoding/json"
	"strings"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

type member struct {
	Spec struct {
		SyncMode string   `json:"syncMode"`
		Region   string   `json:"region"`
		Zone     string   `json:"zone"`
		Zones    []string `json:"zones"`
		Taints   []taint  `json:"taints"`
	} `json:"spec"`
	Status struct {
		KubernetesVersion string     `json:"kubernetesVersion"`
		Conditions        conditions `json:"conditions"`
		NodeSummary       *struct {
			TotalNum int64 `json:"totalNum"`
			ReadyNum int64 `json:"readyNum"`
		} `json:"nodeSummary"`
		ResourceSummary struct {
			Allocatable map[string]any `json:"allocatable"`
			Allocated   map[string]any `json:"allocated"`
		} `json:"resourceSummary"`
	} `json:"status"`
}

func memberRow(r row, m *metadata, c *member) {
	ready, _ := c.Status.Conditions.status("Ready")
	zones := c.Spec.Zones
	if len(zones) == 0 && c.Spec.Zone != "" {
		zones = []string{c.Spec.Zone}
	}
	r.set("version", c.Status.KubernetesVersion)
	r.set("mode", c.Spec.SyncMode)
	r.set("region", c.Spec.Region)
	r.set("zones", zones)
	r.set("ready", ready)
	r.set("conditions", c.Status.Conditions.row())
	r.set("taints", taintTexts(c.Spec.Taints))
	r.set("labels", m.Labels)
	if nodes := c.Status.NodeSummary; nodes != nil {
		r["nodes"] = row{"total": nodes.TotalNum, "ready": nodes.ReadyNum}
	}
	for _, resource := range []string{"cpu", "memory", "pods"} {
		room := row{}
		room.set("allocatable", quantity(c.Status.ResourceSummary.Allocatable[resource]))
		room.set("allocated", quantity(c.Status.ResourceSummary.Allocated[resource]))
		r.set(resource, room)
	}
}

// object that something is about.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

func (o *object) row() row {
	r := row{}
	r.set("apiVersion", o.APIVersion)
	r.set("kind", o.Kind)
	r.set("namespace", o.Namespace)
	r.set("name", o.Name)
	return r
}

type binding struct {
	Spec struct {
		Resource object `json:"resource"`
		Replicas int64  `json:"replicas"`
		Clusters []struct {
			Name     string `json:"name"`
			Replicas int64  `json:"replicas"`
		} `json:"clusters"`
	} `json:"spec"`
	Status struct {
		Conditions       conditions `json:"conditions"`
		AggregatedStatus []struct {
			ClusterName string `json:"clusterName"`
			Applied     bool   `json:"applied"`
			Health      string `json:"health"`
		} `json:"aggregatedStatus"`
		Rollout *struct {
			Number      int64             `json:"number"`
			Phase       string            `json:"phase"`
			Message     string            `json:"message"`
			CurrentWave int64             `json:"currentWave"`
			Waves       []json.RawMessage `json:"waves"`
		} `json:"rollout"`
	} `json:"status"`
}

func bindingRow(r row, m *metadata, b *binding) {
	r.set("object", b.Spec.Resource.row())
	r.set("replicas", b.Spec.Replicas)
	r.set("policy", m.policy())
	scheduled, message := b.Status.Conditions.status("Scheduled")
	r.set("scheduled", scheduled)
	if scheduled != "True" {
		r.set("message", short(message, 500))
	}
	r.set("clusters", b.clusters())
	if rollout := b.Status.Rollout; rollout != nil {
		progress := row{"number": rollout.Number, "waves": len(rollout.Waves), "wave": rollout.CurrentWave}
		progress.set("phase", rollout.Phase)
		progress.set("message", short(rollout.Message, 200))
		r["rollout"] = progress
	}
}

// policy of a binding, in words.
func (m *metadata) policy() string {
	if name := m.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" {
		return "PropagationPolicy " + m.Annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation] + "/" + name
	}
	if name := m.Annotations[policyv1alpha1.ClusterPropagationPolicyNameAnnotation]; name != "" {
		return "ClusterPropagationPolicy " + name
	}
	return ""
}

// staged is a binding whose changes may go from wave to wave.
type staged struct {
	Spec struct {
		Resource       object         `json:"resource"`
		Rollout        map[string]any `json:"rollout"`
		RolloutControl map[string]any `json:"rolloutControl"`
	} `json:"spec"`
	Status struct {
		Rollout map[string]any `json:"rollout"`
	} `json:"status"`
}

// rolloutRow has the rollout as it is in the status, so that pages know every wave. Whether there is one is a field, by
// which pages ask for those only.
func rolloutRow(r row, m *metadata, s *staged) {
	if s.Spec.Rollout == nil || s.Status.Rollout == nil {
		return
	}
	r.set("staged", true)
	r.set("object", s.Spec.Resource.row())
	r.set("policy", m.policy())
	r["rollout"] = s.Status.Rollout
	if s.Spec.RolloutControl != nil {
		r["control"] = s.Spec.RolloutControl
	}
}

func (b *binding) clusters() []row {
	var result []row
	for _, cluster := range b.Spec.Clusters {
		c := row{"name": cluster.Name}
		c.set("replicas", cluster.Replicas)
		for _, status := range b.Status.AggregatedStatus {
			if status.ClusterName == cluster.Name {
				c.set("applied", status.Applied)
				c.set("health", status.Health)
			}
		}
		result = append(result, c)
	}
	return result
}

type work struct {
	Spec struct {
		Workload struct {
			Manifests []struct {
				object
				Metadata struct {
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
				} `json:"metadata"`
			} `json:"manifests"`
		} `json:"workload"`
	} `json:"spec"`
	Status struct {
		Conditions       conditions `json:"conditions"`
		ManifestStatuses []struct {
			Health string `json:"health"`
		} `json:"manifestStatuses"`
	} `json:"status"`
}

func workRow(r row, m *metadata, w *work) {
	r.set("cluster", strings.TrimPrefix(m.Namespace, "karmada-es-"))
	if len(w.Spec.Workload.Manifests) > 0 {
		first := w.Spec.Workload.Manifests[0]
		about := object{first.APIVersion, first.Kind, first.Metadata.Namespace, first.Metadata.Name}
		r.set("object", about.row())
	}
	applied, _ := w.Status.Conditions.status("Applied")
	held, _ := w.Status.Conditions.status("DeletionHeld")
	r.set("applied", applied)
	if held == "True" && m.DeletionTimestamp != nil {
		r.set("held", true)
		r.set("since", *m.DeletionTimestamp)
	}
	if len(w.Status.ManifestStatuses) > 0 {
		r.set("health", w.Status.ManifestStatuses[0].Health)
	}
}
