package etcd

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const metricsNamespace = "etcd_steward"

// Metrics beside those of etcd, in the same registry.
var skipped = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: metricsNamespace, Name: "skipped_total",
	Help: "How often something was skipped because the volume has no room for it.",
}, []string{"care"})
