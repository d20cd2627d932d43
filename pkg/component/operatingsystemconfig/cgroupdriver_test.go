package operatingsystemconfig

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Where kubelet does not ask containerd, or gets no answer, its configuration tells what criConfig asks for.
func TestKubeletIsToldACgroupDriverThatIsNotItsDefault(t *testing.T) {
	const plain, told = "maxPods: 110", "cgroupDriver: systemd\nmaxPods: 110\n"
	named := base64.StdEncoding.EncodeToString([]byte("cgroupDriver: cgroupfs"))
	systemd, cgroupfs := extensionsv1alpha1.CgroupDriverSystemd, extensionsv1alpha1.CgroupDriverCgroupfs
	for name, test := range map[string]struct {
		driver                 *extensionsv1alpha1.CgroupDriverName
		encoding, data         string
		wantEncoding, wantData string
	}{
		"not its default": {&systemd, "", plain, "", told},
		"encoded":         {&systemd, "b64", base64.StdEncoding.EncodeToString([]byte(plain)), "", told},
		"by an extension": {&systemd, "b64", named, "b64", named},
		"its default":     {&cgroupfs, "", plain, "", plain},
		"none":            {nil, "", plain, "", plain},
	} {
		osc := withKubeletConfig(test.driver, test.encoding, test.data)
		if err := TellKubelet(osc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := withKubeletConfig(test.driver, test.wantEncoding, test.wantData)
		if difference := cmp.Diff(want, osc); difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
}

func TestAKubeletConfigurationThatCannotBeReadIsNamed(t *testing.T) {
	systemd := extensionsv1alpha1.CgroupDriverSystemd
	for name, osc := range map[string]*extensionsv1alpha1.OperatingSystemConfig{
		"no object":        withKubeletConfig(&systemd, "", "- no object"),
		"unknown encoding": withKubeletConfig(&systemd, "rot13", "a"),
	} {
		err := TellKubelet(osc)
		if err == nil || !strings.HasPrefix(err.Error(), "OperatingSystemConfig pool-a: file "+PathKubeletConfig) {
			t.Errorf("%s: want an error with the file's path, got %v", name, err)
		}
	}
}

// withKubeletConfig has the kubelet's configuration for all machines in the spec and another for one machine, as
// extensions add it, in the status; beside them files that stay as they are.
func withKubeletConfig(driver *extensionsv1alpha1.CgroupDriverName,
	encoding, data string) *extensionsv1alpha1.OperatingSystemConfig {
	file := func(path string) extensionsv1alpha1.File {
		return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{
			Inline: &extensionsv1alpha1.FileContentInline{Encoding: encoding, Data: data},
		}}
	}
	own := file(PathKubeletConfig)
	own.HostName = new("one")
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Name = "pool-a"
	osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{CgroupDriver: driver}
	osc.Spec.Files = []extensionsv1alpha1.File{file(PathKubeletConfig), plain("/etc/other", 0o644, "other: file")}
	osc.Status.ExtensionFiles = []extensionsv1alpha1.File{own, {
		Path:    PathKubeletConfig,
		Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: "a"}},
	}}
	return osc
}
