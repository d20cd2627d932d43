package machine

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestPod(t *testing.T) {
	pod := podFor("shoot--a--b-cpu-z1-1234-abcde", "class",
		apis.MachineSpec{
			Image: "machine:1", Namespace: "infra-a", Nameservers: []string{"172.18.0.2"}, VolumesDir: "/volumes/a",
		})
	if pod.Name != "machine-shoot--a--b-cpu-z1-1234-abcde" || pod.Namespace != "infra-a" {
		t.Errorf("%s/%s", pod.Namespace, pod.Name)
	}
	container := pod.Spec.Containers[0]
	if !*container.SecurityContext.Privileged || container.Command[0] != bootPath {
		t.Error("a machine must be privileged and boot")
	}
	if pod.Spec.DNSPolicy != corev1.DNSNone || pod.Spec.DNSConfig.Nameservers[0] != "172.18.0.2" {
		t.Errorf("name servers: %+v", pod.Spec.DNSConfig)
	}
	for _, variable := range container.Env {
		if variable.Name == "PROVIDER_ID" && variable.Value != "local:///infra-a/shoot--a--b-cpu-z1-1234-abcde" {
			t.Errorf("provider ID %s", variable.Value)
		}
	}
	if len(container.VolumeMounts) != len(pod.Spec.Volumes) {
		t.Error("every volume must be mounted")
	}
}

func TestHostname(t *testing.T) {
	long := strings.Repeat("x", 60) + "--y-z1-12345-abcde"
	if got := hostname(long); len(got) > 63 || got[0] == '-' || !strings.HasSuffix(got, "abcde") {
		t.Errorf("got %s", got)
	}
	if got := hostname("short"); got != "short" {
		t.Errorf("got %s", got)
	}
}

func TestMachinesOfAClass(t *testing.T) {
	pods := []corev1.Pod{
		*podFor("m1", "a", apis.MachineSpec{Namespace: "infra"}),
		*podFor("m2", "b", apis.MachineSpec{Namespace: "infra"}),
	}
	machines := machinesOf(pods, "a")
	if len(machines) != 1 || machines["local:///infra/m1"] != "m1" {
		t.Errorf("got %v", machines)
	}
}

func TestSpecOf(t *testing.T) {
	class := func(provider, spec string) *machinev1alpha1.MachineClass {
		return &machinev1alpha1.MachineClass{Provider: provider, ProviderSpec: runtime.RawExtension{Raw: []byte(spec)}}
	}
	if spec, err := specOf(class("local", `{"image":"a","namespace":"b"}`)); err != nil || spec.Image != "a" ||
		spec.Namespace != "b" {
		t.Errorf("%+v, %v", spec, err)
	}
	for name, bad := range map[string]*machinev1alpha1.MachineClass{
		"other provider": class("aws", `{"image":"a","namespace":"b"}`),
		"no JSON":        class("local", `{`),
		"no image":       class("local", `{"namespace":"b"}`),
	} {
		_, err := specOf(bad)
		if machineErr, ok := status.FromError(err); !ok || machineErr.Code() != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStatusOf(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want codes.Code
	}{
		"not found": {apierrors.NewNotFound(pods, "x"), codes.NotFound},
		"forbidden": {apierrors.NewForbidden(pods, "x", errors.New("no")), codes.PermissionDenied},
		"other":     {errors.New("x"), codes.Internal},
	} {
		machineErr, ok := status.FromError(statusOf(test.err, "doing"))
		if !ok || machineErr.Code() != test.want {
			t.Errorf("%s: got %v", name, machineErr)
		}
	}
	if statusOf(nil, "doing") != nil {
		t.Error("no error must stay none")
	}
}

func TestPodInFull(t *testing.T) {
	golden.Check(t, "pod", podFor("m1", "class",
		apis.MachineSpec{
			Image: "machine:1", Namespace: "infra-a", Nameservers: []string{"172.18.0.2"}, VolumesDir: "/volumes/a",
			Memory: new(resource.MustParse("2Gi")),
		}))
}

// What the node has beyond the machine type's memory is nothing that pods may have.
func TestAMachineOffersTheMemoryOfItsType(t *testing.T) {
	boot, err := os.ReadFile("../../machine/rootfs/usr/local/sbin/machine-boot")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?ms)^reserve_memory\(\) \{$.*?^\}$`).FindString(string(boot))
	for name, test := range map[string]struct{ memory, node, want string }{
		"a larger node":     {"2147483648", "24684872", "--system-reserved=memory=22587720Ki"},
		"a node of its own": {"2147483648", "2097152", ""},
		"a smaller node":    {"2147483648", "1048576", ""},
		"an unknown type":   {"", "24684872", ""},
	} {
		shell := exec.CommandContext(t.Context(), "sh", "-euc", function+"\nreserve_memory "+test.node)
		if test.memory != "" {
			shell.Env = []string{"MACHINE_MEMORY=" + test.memory}
		}
		got, err := shell.Output()
		if err != nil || strings.TrimSpace(string(got)) != test.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, test.want)
		}
	}
}

// The SSH daemon of machines lets in one user, by key, and proves itself with a key that no other machine has and that
// outlives reboots.
func TestSSHDaemonOfMachines(t *testing.T) {
	config, err := os.ReadFile("../../machine/rootfs/etc/ssh/sshd_config.d/10-machine.conf")
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("../../machine/rootfs/usr/local/sbin/machine-boot")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"AllowUsers " + bastionaccess.User, "PermitRootLogin no", "PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "HostKey /var/lib/node-agent/ssh_host_ed25519_key",
	} {
		if !strings.Contains(string(config), want+"\n") {
			t.Errorf("%q is not in\n%s", want, config)
		}
	}
	if !strings.Contains(string(boot), "-f /var/lib/node-agent/ssh_host_ed25519_key\n") {
		t.Error("machine-boot does not make the key")
	}
}
