package live

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// renderers of rows, by group and resource. What has none shows its conditions and its phase.
var renderers = map[string]func(*metadata, json.RawMessage) (row, error){
	"core.gardener.cloud/shoots":              rendered(shootRow),
	"core.gardener.cloud/projects":            rendered(projectRow),
	"core.gardener.cloud/seeds":               rendered(seedRow),
	"cluster.karmada.io/clusters":             rendered(memberRow),
	"work.karmada.io/resourcebindings":        rendered(bindingRow),
	"work.karmada.io/clusterresourcebindings": rendered(bindingRow),
	"work.karmada.io/works":                   rendered(workRow),
	"/events":                                 rendered(eventRow),
	"events.k8s.io/events":                    rendered(eventRow),
	"/nodes":                                  rendered(nodeRow),
	"/pods":                                   rendered(podRow),
}

// rolloutRenderers are those of ViewRollout.
var rolloutRenderers = map[string]func(*metadata, json.RawMessage) (row, error){
	"work.karmada.io/resourcebindings":        rendered(rolloutRow),
	"work.karmada.io/clusterresourcebindings": rendered(rolloutRow),
}

// renderer of rows; nil if there is none of its own.
func (s source) renderer() func(*metadata, json.RawMessage) (row, error) {
	if s.view == ViewRollout {
		return rolloutRenderers[s.group+"/"+s.resource]
	}
	return renderers[s.group+"/"+s.resource]
}

// rendered reads as much of an object as its row needs.
func rendered[T any](add func(row, *metadata, *T)) func(*metadata, json.RawMessage) (row, error) {
	return func(m *metadata, object json.RawMessage) (row, error) {
		var read T
		if err := json.Unmarshal(object, &read); err != nil {
			return nil, err
		}
		r := m.row()
		add(r, m, &read)
		return r, nil
	}
}

func (s source) row(m *metadata, object json.RawMessage) (row, error) {
	if render := s.renderer(); render != nil {
		return render(m, object)
	}
	r := m.meta()
	var other struct {
		Status struct {
			Phase      any             `json:"phase"`
			Conditions json.RawMessage `json:"conditions"`
		} `json:"status"`
	}
	// Kinds of others may have a status of any form.
	if json.Unmarshal(object, &other) != nil {
		return r, nil
	}
	if phase, ok := other.Status.Phase.(string); ok {
		r.set("phase", short(phase, 200))
	}
	var c conditions
	if len(other.Status.Conditions) > 0 && json.Unmarshal(other.Status.Conditions, &c) == nil {
		r.set("conditions", c.row())
	}
	return r, nil
}

// named is a reference, or anything of which the name counts.
type named struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// shoot is what is shown of a Shoot.
type shoot struct {
	Spec struct {
		CloudProfile     *named `json:"cloudProfile"`
		CloudProfileName string `json:"cloudProfileName"`
		Purpose          string `json:"purpose"`
		Region           string `json:"region"`
		SeedName         string `json:"seedName"`
		Provider         struct {
			Type    string `json:"type"`
			Workers []struct {
				Name    string `json:"name"`
				Minimum int64  `json:"minimum"`
				Maximum int64  `json:"maximum"`
			} `json:"workers"`
		} `json:"provider"`
		Kubernetes struct {
			Version string `json:"version"`
		} `json:"kubernetes"`
		ControlPlane struct {
			HighAvailability struct {
				FailureTolerance named `json:"failureTolerance"`
			} `json:"highAvailability"`
		} `json:"controlPlane"`
		Extensions []struct {
			Type     string `json:"type"`
			Disabled bool   `json:"disabled"`
		} `json:"extensions"`
	} `json:"spec"`
	Status struct {
		Conditions         conditions `json:"conditions"`
		Hibernated         bool       `json:"hibernated"`
		TechnicalID        string     `json:"technicalID"`
		ObservedGeneration int64      `json:"observedGeneration"`
		LastOperation      *struct {
			Type           string `json:"type"`
			State          string `json:"state"`
			Progress       int64  `json:"progress"`
			LastUpdateTime string `json:"lastUpdateTime"`
			Description    string `json:"description"`
		} `json:"lastOperation"`
		LastErrors []struct {
			Description string   `json:"description"`
			Codes       []string `json:"codes"`
		} `json:"lastErrors"`
	} `json:"status"`
}

func shootRow(r row, m *metadata, s *shoot) {
	profile := s.Spec.CloudProfileName
	if s.Spec.CloudProfile != nil {
		profile = s.Spec.CloudProfile.Name
	}
	r.set("project", strings.TrimPrefix(m.Namespace, "garden-"))
	r.set("profile", profile)
	r.set("ownProfile", s.ownProfile())
	r.set("provider", s.Spec.Provider.Type)
	r.set("region", s.Spec.Region)
	r.set("version", s.Spec.Kubernetes.Version)
	r.set("purpose", s.Spec.Purpose)
	r.set("seed", s.Spec.SeedName)
	r.set("technicalID", s.Status.TechnicalID)
	r.set("ha", s.Spec.ControlPlane.HighAvailability.FailureTolerance.Type)
	r.set("hibernated", s.Status.Hibernated)
	r.set("creator", m.Annotations[gardencorev1beta1.GardenerCreatedBy])
	r.set("status", m.Labels[gardencorev1beta1.LabelShootStatus])
	r.set("conditions", s.Status.Conditions.row())
	r.set("drill", s.Status.Conditions.drill())
	r.set("generation", m.Generation)
	r.set("observedGeneration", s.Status.ObservedGeneration)
	r.set("workerless", len(s.Spec.Provider.Workers) == 0)
	var workers []string
	for _, w := range s.Spec.Provider.Workers {
		workers = append(workers, fmt.Sprintf("%s:%d-%d", w.Name, w.Minimum, w.Maximum))
	}
	r.set("workers", workers)
	for _, extension := range s.Spec.Extensions {
		if extension.Type == "federation" {
			r.set("fleet", !extension.Disabled)
		}
	}
	s.operation(r)
}

// ownProfile tells whether the profile is one of the project's own.
func (s *shoot) ownProfile() bool {
	return s.Spec.CloudProfile != nil &&
		s.Spec.CloudProfile.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile
}

// restoredOnTrial stands in gardenlet's message about backups before the time at which the newest were restored.
const restoredOnTrial = "restored on trial at "

// drill is when the backups of etcd were restored on trial last; empty if that is not told.
func (c conditions) drill() string {
	_, message := c.status(string(gardencorev1beta1.ShootEtcdBackupReady))
	_, rest, _ := strings.Cut(message, restoredOnTrial)
	text, _, _ := strings.Cut(rest, ",")
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return ""
	}
	return text
}

// operation shows what is done or was done last, and why it failed.
func (s *shoot) operation(r row) {
	if o := s.Status.LastOperation; o != nil {
		operation := row{"progress": o.Progress}
		operation.set("type", o.Type)
		operation.set("state", o.State)
		operation.set("time", o.LastUpdateTime)
		operation.set("description", short(o.Description, 200))
		r["operation"] = operation
	}
	var codes []string
	for _, e := range s.Status.LastErrors {
		codes = append(codes, e.Codes...)
	}
	r.set("codes", codes)
	if len(s.Status.LastErrors) > 0 {
		r.set("error", short(s.Status.LastErrors[0].Description, 200))
	}
}

type project struct {
	Spec struct {
		Namespace   string  `json:"namespace"`
		Description string  `json:"description"`
		Purpose     string  `json:"purpose"`
		Owner       *named  `json:"owner"`
		Members     []named `json:"members"`
	} `json:"spec"`
	Status struct {
		Phase               string `json:"phase"`
		StaleSinceTimestamp string `json:"staleSinceTimestamp"`
	} `json:"status"`
}

func projectRow(r row, _ *metadata, p *project) {
	r.set("projectNamespace", p.Spec.Namespace)
	r.set("phase", p.Status.Phase)
	r.set("description", short(p.Spec.Description, 200))
	r.set("purpose", short(p.Spec.Purpose, 200))
	r.set("members", len(p.Spec.Members))
	r.set("stale", p.Status.StaleSinceTimestamp)
	if p.Spec.Owner != nil {
		r.set("owner", p.Spec.Owner.Name)
	}
}

type seed struct {
	Spec struct {
		Provider struct {
			Type   string   `json:"type"`
			Region string   `json:"region"`
			Zones  []string `json:"zones"`
		} `json:"provider"`
		Taints   []taint `json:"taints"`
		Settings struct {
			Scheduling struct {
				Visible *bool `json:"visible"`
			} `json:"scheduling"`
		} `json:"settings"`
	} `json:"spec"`
	Status struct {
		Gardener struct {
			Version string `json:"version"`
		} `json:"gardener"`
		KubernetesVersion string         `json:"kubernetesVersion"`
		Conditions        conditions     `json:"conditions"`
		Allocatable       map[string]any `json:"allocatable"`
	} `json:"status"`
}

// taint of a seed, a member or a node.
type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

func taintTexts(taints []taint) []string {
	var result []string
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + t.Effect
		}
		result = append(result, text)
	}
	return result
}

func seedRow(r row, _ *metadata, s *seed) {
	r.set("provider", s.Spec.Provider.Type)
	r.set("region", s.Spec.Provider.Region)
	r.set("zones", s.Spec.Provider.Zones)
	r.set("taints", taintTexts(s.Spec.Taints))
	visible := s.Spec.Settings.Scheduling.Visible
	r.set("visible", visible == nil || *visible)
	r.set("version", s.Status.KubernetesVersion)
	r.set("gardenlet", s.Status.Gardener.Version)
	r.set("conditions", s.Status.Conditions.row())
	r.set("shoots", quantity(s.Status.Allocatable["shoots"]))
}

// quantity is a number as Kubernetes writes it, which is a text or a number.
func quantity(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.f", v)
	}
	return ""
}
