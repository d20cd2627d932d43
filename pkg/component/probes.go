package component

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What is only slow is not to be restarted, nor taken out of its Service where it is the only one: with all of a node's
// cores busy for minutes, that makes more work, for itself and for those that wait for it. docs/probes_test.go holds
// all pods to this, in seconds.
const (
	// patienceForAnAnswer is how long a probe waits.
	patienceForAnAnswer = 10
	// patienceWithAProgram is how long a program that has begun may give no answer until it is ended.
	patienceWithAProgram = 180
	// patienceAtStart is how long a program may take to give its first one.
	patienceAtStart = 300
	// patienceWithAnEndpoint is how long a program that was ready may not be until it gets no connections.
	patienceWithAnEndpoint = 30

	// livenessPeriod is long: probes cost idle CPU.
	livenessPeriod = 20
)

// HealthEndpoint is where a container tells about its health.
type HealthEndpoint struct {
	Scheme corev1.URIScheme
	Port   int32
	// Ready and Live are paths.
	Ready, Live string
}

// SecureHealthz is /healthz over TLS, as the programs of Kubernetes serve it.
func SecureHealthz(port int32) HealthEndpoint {
	return HealthEndpoint{Scheme: corev1.URISchemeHTTPS, Port: port, Ready: "/healthz", Live: "/healthz"}
}

// Healthz is /healthz and /readyz, as our programs serve them.
func Healthz(port int32) HealthEndpoint {
	return HealthEndpoint{Scheme: corev1.URISchemeHTTP, Port: port, Ready: "/readyz", Live: "/healthz"}
}

// Startup is the probe until a program has begun. It asks every second, and when it first succeeds, kubelet asks for
// readiness at once.
func (h HealthEndpoint) Startup() *corev1.Probe { return h.probe(h.Live, 1, patienceAtStart) }

// Readiness is the probe, every so many seconds, by which a pod gets connections.
func (h HealthEndpoint) Readiness(period int32) *corev1.Probe {
	return h.probe(h.Ready, period, patienceWithAnEndpoint)
}

// Liveness is the probe by which a program is ended.
func (h HealthEndpoint) Liveness() *corev1.Probe {
	return h.probe(h.Live, livenessPeriod, patienceWithAProgram)
}

// probe fails after so many seconds without success.
func (h HealthEndpoint) probe(path string, period, patience int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Scheme: h.Scheme, Path: path, Port: intstr.FromInt32(h.Port),
		}},
		TimeoutSeconds:   patienceForAnAnswer,
		PeriodSeconds:    period,
		SuccessThreshold: 1,
		FailureThreshold: (patience + period - 1) / period,
	}
}
