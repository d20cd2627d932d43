package docs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What is only slow must not be restarted: with both cores of a node busy, an answer may take seconds, and that for a
// while.
const (
	patienceForAnAnswer = 5 * time.Second
	patienceForAProgram = time.Minute
)

// Every probe waits long enough for an answer, and kubelet ends only containers that gave none for a minute.
func TestProbesArePatient(t *testing.T) {
	probes := 0
	for source, templates := range podTemplates(t) {
		for _, template := range templates {
			for _, container := range slices.Concat(template.spec.InitContainers, template.spec.Containers) {
				where := source + " " + template.name + ":" + container.Name
				for kind, probe := range map[string]*corev1.Probe{
					"startup": container.StartupProbe, "readiness": container.ReadinessProbe,
					"liveness": container.LivenessProbe,
				} {
					if probe == nil {
						continue
					}
					probes++
					if timeout := seconds(probe.TimeoutSeconds, 1); timeout < patienceForAnAnswer {
						t.Errorf("%s: the %s probe waits %s for an answer, less than %s", where, kind, timeout,
							patienceForAnAnswer)
					}
					patience := seconds(probe.PeriodSeconds, 10) * time.Duration(cmp.Or(probe.FailureThreshold, 3))
					if kind != "readiness" && patience < patienceForAProgram {
						t.Errorf("%s: the %s probe gives up after %s, before %s", where, kind, patience,
							patienceForAProgram)
					}
				}
			}
		}
	}
	if probes < 50 {
		t.Errorf("found only %d probes", probes)
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
