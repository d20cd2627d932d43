package etcd

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const metricsNamespace = "etcd_steward"

// Metrics beside those of etcd, in the same registry.
var (
	skipped = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "skipped_total",
		Help: "How often something was skipped because the volume has no room for it.",
	}, []string{"care"})
	fillLevels = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "fill_level_percent",
		Help: "How full the quota and the volume are: 0, 70 or 85, beside what is deleted for lack of room.",
	}, []string{"of"})
	volumeSize = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "volume_size_bytes", Help: "Size of the volume of the data.",
	})
	volumeFree = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "volume_free_bytes", Help: "Free space on the volume of the data.",
	})
)
