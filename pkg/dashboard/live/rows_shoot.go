package live

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// event is one of either group.
type event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Note    string `json:"note"`
	Count   int64  `json:"count"`
	Series  *struct {
		Count            int64  `json:"count"`
		LastObservedTime string `json:"lastObservedTime"`
	} `json:"series"`
	FirstTimestamp      string  `json:"firstTimestamp"`
	LastTimestamp       string  `json:"lastTimestamp"`
	EventTime           string  `json:"eventTime"`
	InvolvedObject      *object `json:"involvedObject"`
	Regarding           *object `json:"regarding"`
	ReportingComponent  string  `json:"reportingComponent"`
	ReportingController string  `json:"reportingController"`
	Source              struct {
		Component string `json:"component"`
	} `json:"source"`
}

func eventRow(r row, m *metadata, e *event) {
	count, last := e.Count, firstOf(e.LastTimestamp, e.EventTime, m.CreationTimestamp)
	if e.Series != nil {
		count, last = e.Series.Count, firstOf(e.Series.LastObservedTime, last)
	}
	r.set("type", e.Type)
	r.set("reason", e.Reason)
	r.set("message", short(firstOf(e.Message, e.Note), 1000))
	r.set("count", max(count, 1))
	r.set("first", firstOf(e.FirstTimestamp, e.EventTime, m.CreationTimestamp))
	r.set("last", last)
	r.set("source", firstOf(e.ReportingComponent, e.ReportingController, e.Source.Component))
	for _, about := range []*object{e.InvolvedObject, e.Regarding} {
		if about != nil {
			r.set("object", about.row())
		}
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

type node struct {
	Spec struct {
		Unschedulable bool    `json:"unschedulable"`
		Taints        []taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions conditions `json:"conditions"`
		NodeInfo   struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

func nodeRow(r row, m *metadata, n *node) {
	ready, _ := n.Status.Conditions.status("Ready")
	r.set("ready", ready)
	r.set("version", n.Status.NodeInfo.KubeletVersion)
	r.set("pool", m.Labels[gardencorev1beta1.LabelWorkerPool])
	r.set("zone", m.Labels[corev1.LabelTopologyZone])
	r.set("machineType", m.Labels[corev1.LabelInstanceTypeStable])
	r.set("unschedulable", n.Spec.Unschedulable)
	r.set("conditions", n.Status.Conditions.row())
}

type pod struct {
	Spec struct {
		NodeName   string  `json:"nodeName"`
		Containers []named `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase             string `json:"phase"`
		Reason            string `json:"reason"`
		ContainerStatuses []struct {
			Ready        bool  `json:"ready"`
			RestartCount int64 `json:"restartCount"`
			State        struct {
				Waiting    *reason `json:"waiting"`
				Terminated *reason `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type reason struct {
	Reason string `json:"reason"`
}

func podRow(r row, _ *metadata, p *pod) {
	ready, restarts, why := 0, int64(0), p.Status.Reason
	for _, container := range p.Status.ContainerStatuses {
		if container.Ready {
			ready++
		}
		restarts += container.RestartCount
		for _, state := range []*reason{container.State.Terminated, container.State.Waiting} {
			if state != nil && state.Reason != "Completed" {
				why = firstOf(state.Reason, why)
			}
		}
	}
	r.set("phase", p.Status.Phase)
	r.set("ready", fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)))
	r.set("restarts", restarts)
	r.set("node", p.Spec.NodeName)
	r.set("reason", why)
}
