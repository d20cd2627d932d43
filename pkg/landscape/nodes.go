package landscape

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/landscape/node"
)

const (
	// maxNodes is how many nodes the runtime cluster can have. Each node knows the ways to all that may come.
	maxNodes = 9
	// podBits is the size of a node's part of podNetwork.
	podBits = 20
	// volumeClass is the StorageClass of the runtime cluster, whose volumes are folders of nodes.
	volumeClass = "default"
)

// nodeNumber is which node of the runtime cluster it is. The first one has the control plane, and what the landscape
// has once: the registry, the local cloud with all machines, the gateway, DNS. The others are plain nodes.
type nodeNumber int

const firstNode nodeNumber = 1

// nodesOf are so many nodes, in order.
func nodesOf(count int) []nodeNumber {
	var all []nodeNumber
	for n := range count {
		all = append(all, firstNode+nodeNumber(n))
	}
	return all
}

// suffix tells the names of other nodes from those of the first.
func (n nodeNumber) suffix() string {
	if n == firstNode {
		return ""
	}
	return "-" + strconv.Itoa(int(n))
}

func (n nodeNumber) hostname() string { return nodeName + n.suffix() }

// zone of the node. Each has its own; the first one's stays when others come.
func (n nodeNumber) zone() string { return region + n.suffix() }

// folder is the node's in the state folder, and its directory in the landscape's cgroups.
func (n nodeNumber) folder() string { return "node" + n.suffix() }

// ip is the node's address.
func (n nodeNumber) ip() netip.Addr {
	address := netip.MustParseAddr(nodeIP)
	for range n - firstNode {
		address = address.Next()
	}
	return address
}

// pods is the node's part of podNetwork.
func (n nodeNumber) pods() netip.Prefix {
	bytes := netip.MustParsePrefix(podNetwork).Addr().As4()
	bytes[2] += byte(n-firstNode) << (24 - podBits)
	return netip.PrefixFrom(netip.AddrFrom4(bytes), podBits)
}

// routes lead to the pods of all other nodes that the runtime cluster may have, so that a node needs no others when
// one is added.
func (n nodeNumber) routes() []node.Route {
	var routes []node.Route
	for _, other := range nodesOf(maxNodes) {
		if other != n {
			routes = append(routes, node.Route{Network: other.pods().String(), Via: other.ip().String()})
		}
	}
	return routes
}

// zonesOf are the zones of so many nodes. One node has none that matters: the seed keeps what its file says.
func zonesOf(count int) []string {
	if count < 2 {
		return nil
	}
	var zones []string
	for _, n := range nodesOf(count) {
		zones = append(zones, n.zone())
	}
	return zones
}

// errNodes says how many nodes there can be.
var errNodes = fmt.Errorf("has to be a number from 1 to %d, as in `make up NODES=3`", maxNodes)

// ParseNodes reads how many nodes a landscape is to have; 0 leaves that as it is.
func ParseNodes(text string) (int, error) {
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 || count > maxNodes {
		return 0, errNodes
	}
	return count, nil
}

// nodesWanted is how many nodes a landscape is to have that has so many: what `up` was asked for, or as before when
// that is 0.
func (l *Landscape) nodesWanted(present, asked int) (int, error) {
	present = max(present, 1)
	switch {
	case asked == 0:
		return present, nil
	case asked < 1 || asked > maxNodes:
		return 0, fmt.Errorf("--nodes is %d, and %w", asked, errNodes)
	case asked < present:
		return 0, fmt.Errorf("landscape %s has %d nodes and cannot go back to %d, as volumes lie on all of them: %s "+
			"goes on with %d, %s removes it", l.Name, present, asked, l.make("up"), present, l.make("down"))
	}
	return asked, nil
}

// nodeNamed finds one of the landscape's nodes by its name; "" is the first.
func nodeNamed(name string, count int) (nodeNumber, error) {
	var names []string
	for _, n := range nodesOf(count) {
		if name == "" || name == n.hostname() {
			return n, nil
		}
		names = append(names, n.hostname())
	}
	return 0, fmt.Errorf("there is no node %q; the nodes are %s", name, strings.Join(names, ", "))
}

// nodes is how many nodes were started.
func (s state) nodes() int { return max(s.Nodes, 1) }

// joinNodes starts the nodes beside the first one, and waits until all are Ready.
func (r *run) joinNodes(ctx context.Context, c *cluster) error {
	if err := r.admitNodes(ctx, c); err != nil {
		return err
	}
	for _, n := range nodesOf(r.state.nodes())[1:] {
		r.Step("starting %s", n.hostname())
		outdated, err := r.startNode(ctx, r.state, n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.hostname(), err)
		}
		if outdated {
			r.Step("%s runs with an older configuration; %s renews it", n.hostname(), r.make("down up"))
		}
	}
	for _, n := range nodesOf(r.state.nodes()) {
		r.Step("waiting for %s", n.hostname())
		if err := await(ctx, func(ctx context.Context) (string, error) {
			return nodeMissing(ctx, c.client, n.hostname()), nil
		}); err != nil {
			return err
		}
		if err := giveNetwork(ctx, c.client, n); err != nil {
			return err
		}
	}
	return nil
}

// admitNodes notes that there are to be more nodes, once the landscape can have them. Before, nothing of them is kept.
func (r *run) admitNodes(ctx context.Context, c *cluster) error {
	if r.wanted <= r.state.nodes() {
		return nil
	}
	if outdated, err := r.outdated(r.state, firstNode); err != nil || outdated {
		return errors.Join(err, fmt.Errorf("the first node was started by an older program, and lacks ways to others: "+
			"%s starts all anew", r.make("down up NODES="+strconv.Itoa(r.wanted))))
	}
	if err := bindVolumes(ctx, c.client); err != nil {
		return err
	}
	unlock, err := lockRecord()
	if err != nil {
		return err
	}
	defer unlock()
	r.state.Nodes = r.wanted
	return save(r.state)
}

// bindVolumes binds volumes to the first node that were made when there was no other: elsewhere, pods would find them
// empty.
func bindVolumes(ctx context.Context, c client.Client) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := c.List(ctx, volumes); err != nil {
		return fmt.Errorf("volumes of the first node: %w", err)
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if volume.Spec.StorageClassName != volumeClass || volume.Spec.NodeAffinity != nil {
			continue
		}
		before := volume.DeepCopy()
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName}},
			}}},
		}}
		if err := client.IgnoreNotFound(c.Patch(ctx, volume, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("binding volume %s to the first node: %w", volume.Name, err)
		}
	}
	return nil
}

// giveNetwork writes into the Node which pods are its own. It was decided before there was a Node.
func giveNetwork(ctx context.Context, c client.Client, n nodeNumber) error {
	found := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: n.hostname()}, found); err != nil {
		return fmt.Errorf("network of pods: %w", err)
	}
	if found.Spec.PodCIDR != "" {
		return nil
	}
	before := found.DeepCopy()
	found.Spec.PodCIDR = n.pods().String()
	found.Spec.PodCIDRs = []string{found.Spec.PodCIDR}
	if err := c.Patch(ctx, found, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("network of pods of %s: %w", n.hostname(), err)
	}
	return nil
}

// clearVolumeClass removes the StorageClass when it binds volumes at another time than it is to. That of a class cannot
// be changed; the chart makes the class anew, and volumes do not mind.
func clearVolumeClass(ctx context.Context, c client.Client, several bool) error {
	wanted := storagev1.VolumeBindingImmediate
	if several {
		wanted = storagev1.VolumeBindingWaitForFirstConsumer
	}
	class := &storagev1.StorageClass{}
	err := c.Get(ctx, client.ObjectKey{Name: volumeClass}, class)
	if apierrors.IsNotFound(err) || err == nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == wanted {
		return nil
	}
	if err == nil {
		err = client.IgnoreNotFound(c.Delete(ctx, class))
	}
	if err != nil {
		return fmt.Errorf("StorageClass %s: %w", volumeClass, err)
	}
	return nil
}

// prepareNode writes what kubelet and kube-proxy of a node beside the first need: certificates of its own, and nothing
// by which others could be made.
func (l *Landscape) prepareNode(n nodeNumber) error {
	p := pki{dir: filepath.Join(l.kubernetesDir(n), "pki"), authorities: l.runtimePKI().dir}
	authority, err := os.ReadFile(l.runtimePKI().file("ca.crt"))
	if err != nil {
		return fmt.Errorf("authority of the runtime cluster: %w", err)
	}
	if err := replaceFile(p.file("ca.crt"), authority, 0o644); err != nil {
		return fmt.Errorf("authority of the runtime cluster: %w", err)
	}
	for _, c := range slices.Concat(kubeletCertificates(n), []certificate{proxyCertificate}) {
		if err := p.issue(c); err != nil {
			return err
		}
	}
	for _, name := range []string{"kubelet", "kube-proxy"} {
		data, err := p.kubeconfig(apiServer, "", "ca", name)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(l.kubernetesDir(n), name+".kubeconfig"), data, 0o600); err != nil {
			return err
		}
	}
	return l.writeConfiguration(n, func(name string) bool {
		return name == "manifests/kube-proxy.yaml" || !strings.HasPrefix(name, "manifests/")
	})
}

// writeConfiguration renders the files below files/kubernetes, as far as they are wanted, for a node.
func (l *Landscape) writeConfiguration(n nodeNumber, wanted func(name string) bool) error {
	values, err := l.runtimeValues(n)
	if err != nil {
		return err
	}
	return fs.WalkDir(files, "files/kubernetes", func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "files/kubernetes/")
		if err != nil || entry.IsDir() || !wanted(name) {
			return err
		}
		content, err := render("kubernetes/"+name, values)
		if err != nil {
			return fmt.Errorf("configuration of the runtime cluster: %w", err)
		}
		return replaceFile(filepath.Join(l.kubernetesDir(n), name), []byte(content), 0o644)
	})
}
