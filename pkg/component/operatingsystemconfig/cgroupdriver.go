package operatingsystemconfig

import (
	"fmt"

	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// TellKubelet writes the cgroup driver that spec.criConfig asks for into the kubelet's configuration files, where it is
// not the kubelet's default, cgroupfs. It is for a configuration as webhooks and extensions have left it, since these
// choose the driver.
//
// Most kubelets take containerd's driver instead, which is the same. But containerd 1, which a machine image may have,
// tells none, and kubelets before Kubernetes 1.34 may not ask: before 1.31 they do not, later a feature gate can keep
// them from it. So the version of a pool's kubelets does not say whether they have to be told, and all are.
func TellKubelet(osc *extensionsv1alpha1.OperatingSystemConfig) error {
	cri := osc.Spec.CRIConfig
	if cri == nil || cri.CgroupDriver == nil || *cri.CgroupDriver == extensionsv1alpha1.CgroupDriverCgroupfs {
		return nil
	}
	for _, files := range [][]extensionsv1alpha1.File{osc.Spec.Files, osc.Status.ExtensionFiles} {
		for i := range files {
			if files[i].Path != PathKubeletConfig || files[i].Content.Inline == nil {
				continue
			}
			told, err := withCgroupDriver(files[i].Content.Inline, *cri.CgroupDriver)
			if err != nil {
				return fmt.Errorf("OperatingSystemConfig %s: file %s: %w", osc.Name, PathKubeletConfig, err)
			}
			files[i].Content.Inline = told
		}
	}
	return nil
}

// withCgroupDriver adds the driver to a configuration, or leaves it as it is where it names one: an extension that does
// so knows better. What is told is legible, as node-agents used to write it when they did this themselves: so nothing
// changes on their machines, and no kubelet starts again.
func withCgroupDriver(inline *extensionsv1alpha1.FileContentInline,
	driver extensionsv1alpha1.CgroupDriverName) (*extensionsv1alpha1.FileContentInline, error) {
	content, err := inline.Decode()
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, err
	}
	if config["cgroupDriver"] != nil {
		return inline, nil
	}
	config["cgroupDriver"] = driver
	if content, err = yaml.Marshal(config); err != nil {
		return nil, err
	}
	return &extensionsv1alpha1.FileContentInline{Data: string(content)}, nil
}
