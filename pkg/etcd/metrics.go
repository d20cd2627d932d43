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

// Metrics of the store of backups.
var (
	storeSuccess = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "store_last_success_timestamp_seconds",
		Help: "When an operation on the store of backups succeeded last. At that of delta, the store had all changes.",
	}, []string{"operation"})
	storeFailures = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "store_failures_total",
		Help: "How often an operation on the store of backups failed.",
	}, []string{"operation", "reason"})
	storeBytes = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "store_bytes_total",
		Help: "Bytes of backups that were put into the store.",
	}, []string{"kind"})
	storeChain = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "store_chain_deltas",
		Help: "Number of deltas to apply if the newest backups had to be restored now.",
	})
	storeVerification = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "store_verification_duration_seconds",
		Help: "How long it took to verify the newest backups and to restore them on trial, when that succeeded last.",
	})
)
