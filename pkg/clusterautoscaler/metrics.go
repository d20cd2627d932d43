package clusterautoscaler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
)

// metrics have the names that dashboards of Kubernetes' cluster-autoscaler use.
type metrics struct {
	unschedulable          prometheus.Gauge
	up, down               prometheus.Counter
	minimum, maximum, goal *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace = "cluster_autoscaler"
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	perGroup := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help},
			[]string{"node_group"})
	}
	m := &metrics{
		unschedulable: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "unschedulable_pods_count",
			Help: "Pending pods without room on nodes that are there or on their way.",
		}),
		up:      counter("scaled_up_nodes_total", "Machines that were asked for."),
		down:    counter("scaled_down_nodes_total", "Nodes that were removed."),
		minimum: perGroup("node_group_min_count", "Minimum of the node group."),
		maximum: perGroup("node_group_max_count", "Maximum of the node group."),
		goal:    perGroup("node_group_target_count", "Machines that the node group is to have."),
	}
	registry.MustRegister(m.unschedulable, m.up, m.down, m.minimum, m.maximum, m.goal)
	return m
}

// observe records what was seen; groups only if they are wanted.
func (m *metrics) observe(groups []*nodegroup.Group, unschedulable int, perGroup bool) {
	m.unschedulable.Set(float64(unschedulable))
	if !perGroup {
		return
	}
	for _, group := range groups {
		m.minimum.WithLabelValues(group.Name).Set(float64(group.Minimum))
		m.maximum.WithLabelValues(group.Name).Set(float64(group.Maximum))
		m.goal.WithLabelValues(group.Name).Set(float64(group.Target))
	}
}

func (m *metrics) scaledUp(count int) { m.up.Add(float64(count)) }
func (m *metrics) scaledDown()        { m.down.Inc() }
