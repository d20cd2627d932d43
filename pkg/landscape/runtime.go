package landscape

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

//go:embed files
var files embed.FS

// runtimeValues fill the templates under files.
type runtimeValues struct {
	// NodeName, NodeIP, NodePods and Zone are of the node whose file it is.
	NodeName, NodeIP, NodePods, Zone string
	// FirstIP is the address of the first node, at which the landscape serves its nodes.
	FirstIP string
	// Labels of other nodes than the first.
	Labels string
	// Several says that the runtime cluster has several nodes, to be filled in where that matters.
	Several bool

	PodNetwork, ServiceNetwork, DNSServiceIP, ClusterDomain, Region, Domain string
	APIPort, RegistryPort, ZonePort                                         int
	PodPlugin                                                               string
	PodPluginDelegates                                                      bool
	EtcdImage, PauseImage, CoreDNSImage                                     string
	// SystemdCgroups leaves cgroups to systemd, which does not share the tree of a machine that has cgroup v2 only.
	// With cgroup v1 containerd and kubelet, which asks it, make them by themselves.
	SystemdCgroups bool

	vector imagevector.Vector
}

// KubernetesImage returns the image of a Kubernetes component of the runtime cluster.
func (v runtimeValues) KubernetesImage(name string) (string, error) {
	image, err := v.vector.Find(name, imagevector.Version(images.DefaultKubernetesVersion))
	return image.String(), err
}

// otherNode is the label of nodes at which the local cloud is not, as its chart says.
const otherNode = "local.trellis.garden/cloud=elsewhere"

// runtimeValues are those of a node.
func (l *Landscape) runtimeValues(n nodeNumber) (runtimeValues, error) {
	vector, err := l.imageVector()
	if err != nil {
		return runtimeValues{}, err
	}
	values := runtimeValues{
		NodeName: n.hostname(), NodeIP: n.ip().String(), NodePods: n.pods().String(), Zone: n.zone(), FirstIP: nodeIP,
		PodNetwork: podNetwork, ServiceNetwork: serviceNetwork,
		DNSServiceIP: dnsServiceIP, ClusterDomain: clusterDomain, Region: region, Domain: domain,
		APIPort: apiPort, RegistryPort: registryPort, ZonePort: zonePort,
		PodPlugin: "bridge", vector: vector,
	}
	if n != firstNode {
		values.Labels = otherNode
	}
	if values.SystemdCgroups, err = node.UnifiedCgroups(); err != nil {
		return runtimeValues{}, err
	}
	for name, target := range map[string]*string{
		"etcd-steward": &values.EtcdImage, "pause": &values.PauseImage, "coredns": &values.CoreDNSImage,
	} {
		image, err := vector.Find(name)
		if err != nil {
			return runtimeValues{}, err
		}
		*target = image.String()
	}
	if _, err := os.Stat(l.builtProgram("cni-" + localCloudPlugin)); err == nil {
		values.PodPlugin, values.PodPluginDelegates = localCloudPlugin, true
	}
	return values, nil
}

// builtVector is the text of an image vector that names the images that were built last by their content, so that what
// changed is rolled out.
func (l *Landscape) builtVector() (string, error) {
	data, err := os.ReadFile(filepath.Join(l.CacheDir(), images.VectorFile))
	if err != nil {
		return "", fmt.Errorf("the images are not built, `make images` builds them: %w", err)
	}
	return string(data), nil
}

// imageVector is the image vector with the images that were built last.
func (l *Landscape) imageVector() (imagevector.Vector, error) {
	if _, err := l.builtVector(); err != nil {
		return nil, err
	}
	if err := os.Setenv(imagevector.OverwriteEnv, filepath.Join(l.CacheDir(), images.VectorFile)); err != nil {
		return nil, err
	}
	return imagevector.Load()
}

func (l *Landscape) builtProgram(name string) string {
	return filepath.Join(l.CacheDir(), images.BinDir, name)
}

// render fills one template under files.
func render(name string, values any) (string, error) {
	text, err := fs.ReadFile(files, "files/"+name)
	if err != nil {
		return "", err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return "", err
	}
	return out.String(), nil
}

// nodeSpec describes a node of the landscape.
func (l *Landscape) nodeSpec(s state, n nodeNumber) (node.Spec, error) {
	values, err := l.runtimeValues(n)
	if err != nil {
		return node.Spec{}, err
	}
	spec := node.Spec{
		Name: l.Name, Hostname: n.hostname(), Dir: l.nodeDir(n),
		RootFS:  filepath.Join(l.CacheDir(), images.MachineRootDir),
		Address: netip.PrefixFrom(n.ip(), nodeBits).String(), Gateway: nodeGateway, Bridge: nodeBridge,
		Routes: n.routes(),
		Links: map[string]string{
			"/etc/systemd/system/multi-user.target.wants/containerd.service": "../containerd.service",
			"/etc/systemd/system/multi-user.target.wants/kubelet.service":    "../kubelet.service",
			"/etc/systemd/system/systemd-sysctl.service":                     "/dev/null",
			"/usr/local/bin/kubelet":                                         "kubernetes",
			"/usr/local/bin/kubectl":                                         "kubernetes",
		},
	}
	if n == firstNode {
		l.serve(&spec, s)
	} else {
		spec.Cgroup, spec.Switch = n.folder(), l.nodeDir(firstNode)
	}
	if spec.Mounts, err = l.nodeMounts(n); err != nil {
		return node.Spec{}, err
	}
	spec.Files, err = l.nodeFiles(values)
	return spec, err
}

// serve adds to the first node what it has for all nodes and for the host: the registry, and the ways from the host.
func (l *Landscape) serve(spec *node.Spec, s state) {
	spec.Helpers = []node.Helper{{Name: "registry", Args: []string{
		"registry", "--store", filepath.Join(l.CacheDir(), images.StoreDir), "--listen",
		nodeIP + ":" + strconv.Itoa(registryPort),
	}}}
	forward := func(address netip.Addr, port uint16) {
		spec.Forwards = append(spec.Forwards,
			node.Forward{Listen: endpoint(address, port), Target: fmt.Sprintf("%s:%d", nodeIP, port)})
	}
	for _, port := range hostPorts {
		forward(s.Loopback, port)
	}
	address := s.Loopback
	for range gatewayAddresses - 1 {
		address = address.Next()
		forward(address, gatewayPort)
	}
	address = s.Loopback
	for _, bastion := range bastionAddresses() {
		spec.Forwards = append(spec.Forwards,
			node.Forward{Listen: endpoint(address, bastionPort), Target: endpoint(bastion, sshPort)})
		address = address.Next()
	}
}

// runc is copied into the node, not mounted: it starts itself through an overlay of its folder, in which mounts do not
// show.
const runc = "runc"

// nodeMounts are the volumes of a node: folders that must not lie on an overlay, and the programs that it runs.
func (l *Landscape) nodeMounts(n nodeNumber) ([]node.Mount, error) {
	mounts := []node.Mount{
		{Source: l.kubernetesDir(n), Target: "/etc/kubernetes"},
		{Source: l.logDir(n), Target: "/var/log/landscape"},
		{Source: filepath.Join(l.logDir(n), "pods"), Target: "/var/log/pods"},
	}
	for _, name := range []string{"containerd", "kubelet", "etcd", localCloudPlugin, "backups"} {
		mounts = append(mounts, node.Mount{
			Source: filepath.Join(l.nodeDir(n), "var", name), Target: "/var/lib/" + name,
		})
	}
	for _, mount := range mounts {
		if err := os.MkdirAll(mount.Source, 0o755); err != nil {
			return nil, fmt.Errorf("volume of the node: %w", err)
		}
	}
	program := func(built, name string) {
		mounts = append(mounts, node.Mount{
			Source: l.builtProgram(built), Target: "/usr/local/bin/" + name, ReadOnly: true,
		})
	}
	program("kubernetes-v"+images.DefaultKubernetesVersion, "kubernetes")
	for _, name := range images.RuntimePrograms {
		if name != runc {
			program(name, name)
		}
	}
	return mounts, nil
}

func (l *Landscape) nodeFiles(values runtimeValues) ([]node.File, error) {
	rendered := map[string]string{
		"containerd.toml": "/etc/containerd/config.toml", "hosts.toml": "/etc/containerd/certs.d/_default/hosts.toml",
		"containerd.service": "/etc/systemd/system/containerd.service",
		"kubelet.service":    "/etc/systemd/system/kubelet.service",
		"landscape.conflist": "/etc/cni/net.d/10-landscape.conflist", "resolv.conf": "/etc/resolv.conf",
		"hosts": "/etc/hosts",
	}
	var result []node.File
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		path := rendered[name]
		content, err := render("node/"+name, values)
		if err != nil {
			return nil, fmt.Errorf("file %s of the node: %w", path, err)
		}
		result = append(result, node.File{Path: path, Content: content})
	}
	if env := environment(); len(env) > 0 {
		result = append(result, node.File{Path: "/" + images.SystemdEnvFile, Content: images.SystemdEnv(env)})
	}
	result = append(result, node.File{Path: "/usr/local/bin/" + runc, Source: l.builtProgram(runc), Mode: 0o755})
	plugins := []string{"bridge", "host-local", "loopback", "portmap"}
	if values.PodPluginDelegates {
		plugins = append(plugins, "cni-"+localCloudPlugin)
	}
	for _, name := range plugins {
		result = append(result, node.File{
			Path: "/opt/cni/bin/" + strings.TrimPrefix(name, "cni-"), Source: l.builtProgram(name), Mode: 0o755,
		})
	}
	return result, nil
}

// clientsOfAPI are static pods that are of no use before kube-apiserver answers: they would only fail and be held back
// for a while.
var clientsOfAPI = []string{"kube-controller-manager.yaml", "kube-scheduler.yaml", "kube-proxy.yaml"}

// prepareRuntime writes for the first node certificates, kubeconfigs, kubelet's configuration and the static pods of
// the control plane; those of clientsOfAPI only once the API server has been ready.
func (l *Landscape) prepareRuntime(s state, ready bool) error {
	if err := l.issueCertificates(s); err != nil {
		return err
	}
	if err := l.writeKubeconfigs(s); err != nil {
		return err
	}
	return l.writeConfiguration(firstNode, func(name string) bool {
		return ready || !slices.Contains(clientsOfAPI, filepath.Base(name))
	})
}

func (l *Landscape) runtimePKI() pki {
	return pki{dir: filepath.Join(l.kubernetesDir(firstNode), "pki")}
}

func (l *Landscape) issueCertificates(s state) error {
	p := l.runtimePKI()
	for _, name := range []string{"ca", "ca-etcd", "ca-front-proxy"} {
		if err := p.authority(name); err != nil {
			return fmt.Errorf("authority %s of the runtime cluster: %w", name, err)
		}
	}
	for _, c := range runtimeCertificates(s.Loopback) {
		if err := p.issue(c); err != nil {
			return fmt.Errorf("runtime cluster: %w", err)
		}
	}
	return p.serviceAccountKey()
}

// proxyCertificate is the same for all nodes: what kube-proxy may do does not depend on where it runs.
var proxyCertificate = certificate{name: "kube-proxy", ca: "ca", user: "system:kube-proxy"}

// kubeletCertificates are a node's own: by them its kubelet gets to what that node needs, and is recognized.
func kubeletCertificates(n nodeNumber) []certificate {
	user := "system:node:" + n.hostname()
	return []certificate{
		{name: "kubelet-server", ca: "ca", user: user, hosts: []string{n.hostname(), n.ip().String()}},
		{name: "kubelet", ca: "ca", user: user, groups: []string{"system:nodes"}},
	}
}

func runtimeCertificates(loopback netip.Addr) []certificate {
	service := "kubernetes.default.svc"
	return append(kubeletCertificates(firstNode), []certificate{
		{name: "kube-apiserver", ca: "ca", user: "kube-apiserver", hosts: []string{
			"kubernetes", "kubernetes.default", service, service + "." + clusterDomain, nodeName, "localhost",
			kubernetesIP, nodeIP, "127.0.0.1", loopback.String(),
		}},
		{name: "etcd-server", ca: "ca-etcd", user: "etcd", hosts: []string{"localhost", "127.0.0.1"}, both: true},
		{name: "etcd-client", ca: "ca-etcd", user: "kube-apiserver"},
		{name: "front-proxy-client", ca: "ca-front-proxy", user: "front-proxy-client"},
		{name: "kubelet-client", ca: "ca", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{name: "kube-controller-manager", ca: "ca", user: "system:kube-controller-manager"},
		{name: "kube-scheduler", ca: "ca", user: "system:kube-scheduler"},
		proxyCertificate,
		{name: "admin", ca: "ca", user: "admin", groups: []string{"system:masters"}},
	}...)
}

// apiServer is the runtime cluster's kube-apiserver as nodes reach it.
var apiServer = fmt.Sprintf("https://%s:%d", nodeIP, apiPort)

func (l *Landscape) writeKubeconfigs(s state) error {
	for _, client := range []string{"kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy", "admin"} {
		path := filepath.Join(l.kubernetesDir(firstNode), client+".kubeconfig")
		if err := l.writeKubeconfig(path, apiServer, client); err != nil {
			return err
		}
	}
	return l.writeKubeconfig(l.RuntimeKubeconfig(), "https://"+endpoint(s.Loopback, apiPort), "admin")
}

func (l *Landscape) writeKubeconfig(path, server, client string) error {
	data, err := l.runtimePKI().kubeconfig(server, "", "ca", client)
	if err != nil {
		return err
	}
	return replaceFile(path, data, 0o600)
}

// startNode starts a node with everything that kubelet needs: on the first one, to bring up the control plane. It says
// whether the node runs already with another specification, such as an older binary's: that changes only when it is
// started anew.
func (l *Landscape) startNode(ctx context.Context, s state, n nodeNumber) (outdated bool, err error) {
	if n == firstNode {
		err = l.prepareRuntime(s, false)
	} else {
		err = l.prepareNode(n)
	}
	if err != nil {
		return false, err
	}
	spec, err := l.nodeSpec(s, n)
	if err != nil {
		return false, err
	}
	if _, running := node.Running(spec.Dir); running {
		return isOutdated(spec), nil
	}
	if n != firstNode {
		// What an earlier one left behind; for the first node, register has removed that of all.
		if err := spec.CleanUp(); err != nil {
			return false, err
		}
	}
	_, err = node.Start(ctx, spec)
	return false, err
}

// outdated says whether a node runs with another specification than it would be started with.
func (l *Landscape) outdated(s state, n nodeNumber) (bool, error) {
	spec, err := l.nodeSpec(s, n)
	return err == nil && isOutdated(spec), err
}

// isOutdated says whether a node was started with another specification.
func isOutdated(spec node.Spec) bool {
	saved, err := node.LoadSpec(spec.Path())
	return err != nil || !saved.Equal(spec)
}
