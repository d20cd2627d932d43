package docs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What is only slow must not be restarted: with both cores of a node busy, an answer may take seconds, and that for
// minutes.
const (
	patienceForAnAnswer    = 10 * time.Second
	patienceWithAProgram   = 3 * time.Minute
	patienceAtStart        = 5 * time.Minute
	patienceWithAnEndpoint = 30 * time.Second
)

// Every probe waits long enough for an answer. Kubelet ends only containers that gave none for minutes, be it from
// their start or later, and a pod, which may be the only one of its Service, gets connections until it was not ready
// for half a minute.
func TestProbesArePatient(t *testing.T) {
	probes := 0
	for source, templates := range podTemplates(t) {
		for _, template := range templates {
			for _, container := range slices.Concat(template.spec.InitContainers, template.spec.Containers) {
				where := source + " " + template.name + ":" + container.Name
				found, problems := impatience(container)
				probes += found
				for _, problem := range problems {
					t.Errorf("%s: %s", where, problem)
				}
			}
		}
	}
	if probes < 50 {
		t.Errorf("found only %d probes", probes)
	}
}

// impatience counts the probes of a container, and says which of them give up early.
func impatience(container corev1.Container) (probes int, problems []string) {
	for _, rule := range []struct {
		kind  string
		probe *corev1.Probe
		least time.Duration
	}{
		{"startup", container.StartupProbe, patienceAtStart},
		{"readiness", container.ReadinessProbe, patienceWithAnEndpoint},
		{"liveness", container.LivenessProbe, patienceWithAProgram},
	} {
		if rule.probe == nil {
			continue
		}
		probes++
		if timeout := seconds(rule.probe.TimeoutSeconds, 1); timeout < patienceForAnAnswer {
			problems = append(problems, fmt.Sprintf("the %s probe waits %s for an answer, less than %s", rule.kind,
				timeout, patienceForAnAnswer))
		}
		if patience := patienceOf(rule.probe); patience < rule.least {
			problems = append(problems, fmt.Sprintf("the %s probe gives up after %s, before %s", rule.kind, patience,
				rule.least))
		}
	}
	if live := container.LivenessProbe; live != nil && container.StartupProbe == nil {
		if start := seconds(live.InitialDelaySeconds, 0) + patienceOf(live); start < patienceAtStart {
			problems = append(problems, fmt.Sprintf("without a startup probe it has %s to begin, less than %s", start,
				patienceAtStart))
		}
	}
	return probes, problems
}

// patienceOf a probe is how long it fails until kubelet acts.
func patienceOf(probe *corev1.Probe) time.Duration {
	return seconds(probe.PeriodSeconds, 10) * time.Duration(cmp.Or(probe.FailureThreshold, 3))
}

func TestImpatienceIsSeen(t *testing.T) {
	patient := func(period, failures int32) *corev1.Probe {
		return &corev1.Probe{TimeoutSeconds: 10, PeriodSeconds: period, FailureThreshold: failures}
	}
	delayed := patient(20, 9)
	delayed.InitialDelaySeconds = 120
	for name, test := range map[string]struct {
		container corev1.Container
		want      string
	}{
		"no probes": {corev1.Container{}, ""},
		"patient": {corev1.Container{
			StartupProbe: patient(1, 300), ReadinessProbe: patient(2, 15), LivenessProbe: patient(20, 9),
		}, ""},
		"a delay instead of a startup probe": {corev1.Container{LivenessProbe: delayed}, ""},
		"defaults of Kubernetes": {
			corev1.Container{ReadinessProbe: &corev1.Probe{FailureThreshold: 10}}, "waits 1s for an answer",
		},
		"liveness":  {corev1.Container{StartupProbe: patient(1, 300), LivenessProbe: patient(10, 6)}, "after 1m0s"},
		"readiness": {corev1.Container{ReadinessProbe: patient(5, 2)}, "after 10s"},
		"startup":   {corev1.Container{StartupProbe: patient(2, 90)}, "after 3m0s"},
		"a start without patience": {
			corev1.Container{LivenessProbe: patient(20, 9)}, "without a startup probe it has 3m0s to begin",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := impatience(test.container)
			if got := strings.Join(problems, "; "); (got == "") != (test.want == "") ||
				!strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// An API server whose etcd does not answer is not mended by a restart, which only takes its caches away.
func TestAPIServersOutliveASlowEtcd(t *testing.T) {
	found := 0
	for source, templates := range podTemplates(t) {
		for _, template := range templates {
			for _, container := range template.spec.Containers {
				probe := container.LivenessProbe
				if probe == nil || probe.HTTPGet == nil ||
					!slices.Contains([]string{"kube-apiserver", "apiserver", "garden-apiserver"}, container.Name) {
					continue
				}
				found++
				if probe.HTTPGet.Path != "/livez?exclude=etcd" {
					t.Errorf("%s %s:%s: its liveness probe asks %s, which fails with etcd", source, template.name,
						container.Name, probe.HTTPGet.Path)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d API servers", found)
	}
}

// A process whose manager has leases and first lists of its own would end where the others go on.
func TestManagersArePatient(t *testing.T) {
	made := regexp.MustCompile(`\b(ctrl\.NewManager|manager\.New)\(`)
	patient := regexp.MustCompile(`\b(managers\.Patient|command\.Inside)\(`)
	found := 0
	eachFile(t, ".go", func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") {
			return
		}
		managers := len(made.FindAll(text, -1))
		found += managers
		if managers > len(patient.FindAll(text, -1)) {
			t.Errorf("%s makes a manager without managers.Patient or command.Inside", path)
		}
	})
	if found < 8 {
		t.Errorf("found only %d managers", found)
	}
}

// seconds of a probe's field, or the default of Kubernetes where it is not set.
func seconds(value, ifUnset int32) time.Duration {
	return time.Duration(cmp.Or(value, ifUnset)) * time.Second
}
