package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// bastionTimeout is how long a bastion may take to come.
	bastionTimeout = 10 * time.Minute
	// nodesExpiration is how long the credentials are valid with which nodes are listed.
	nodesExpiration = 10 * time.Minute
)

// sshOptions are the flags of the command ssh.
type sshOptions struct {
	cidrs                         []string
	publicKeyFile, privateKeyFile string
	format                        formatFlag
	bastionName                   string
	keep, noKeepalive             bool
	timeout                       time.Duration
}

func (o *sshOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&o.cidrs, "cidr", nil,
		"ranges from which the bastion may be reached (default: those of the configuration, or your public address)")
	flags.StringVar(&o.publicKeyFile, "public-key-file", "",
		"your public key for the bastion (default: of a new pair, which is thrown away afterwards)")
	flags.StringVar(&o.privateKeyFile, "private-key-file", "",
		"the private key to it (default: the same path without .pub if there is one, else what the SSH agent has)")
	flags.BoolVar(&o.keep, "keep-bastion", false, "leave the bastion there; it goes an hour after it was last kept alive")
	flags.BoolVar(&o.noKeepalive, "no-keepalive", false,
		"print how to log in and end, with --keep-bastion: nothing keeps the bastion alive")
	flags.StringVar(&o.bastionName, "bastion-name", "", "use a bastion of yours that was kept; needs --public-key-file")
	flags.DurationVar(&o.timeout, "wait-timeout", bastionTimeout, "how long to wait for the bastion")
	o.format.flag(command, formatText, formatYAML, formatJSON)
}

// check says which flags do not go together.
func (o *sshOptions) check(node string, run []string) error {
	switch {
	case node == "" && len(run) > 0:
		return errors.New("name the node on which the command is to run, for example `trellisctl ssh NODE -- uptime`")
	case o.noKeepalive && !o.keep:
		return errors.New("--no-keepalive ends at once, and the bastion would go with it: add --keep-bastion")
	case o.privateKeyFile != "" && o.publicKeyFile == "":
		return errors.New("--private-key-file belongs to a public key: add --public-key-file")
	case o.bastionName != "" && o.publicKeyFile == "":
		return errors.New("--bastion-name is for a bastion that knows your key: add --public-key-file")
	case len(run) > 0 && (o.noKeepalive || o.format.value != ""):
		return errors.New("either a command runs on the node, or it is printed how to log in: leave out the command, " +
			"or --no-keepalive and --output")
	}
	for _, text := range o.cidrs {
		if _, err := netip.ParsePrefix(text); err != nil {
			return fmt.Errorf("--cidr: %w; a range is such as 203.0.113.7/32", err)
		}
	}
	return nil
}

func (c *cli) sshCommand() *cobra.Command {
	var options sshOptions
	command := &cobra.Command{
		Use:   "ssh [NODE] [-- COMMAND…]",
		Short: "Log in to a machine of a shoot through a bastion",
		Long: `ssh makes a bastion, which leads to the machines of the shoot and to nothing else, logs in to one of them
through it, and deletes the bastion afterwards. Without a node it lists those there are.

It runs the program ssh with a configuration of its own, in which the keys of the bastion and of the machine are pinned.
Where there is no such program, or no terminal, it prints what to run, and keeps the bastion until it is interrupted.`,
		Example: `  trellisctl ssh --project demo --shoot member1
  trellisctl ssh NODE --project demo --shoot member1
  trellisctl ssh NODE --shoot member1 -- sudo journalctl -u kubelet
  trellisctl ssh NODE --keep-bastion --no-keepalive --output json`,
		Args: func(command *cobra.Command, arguments []string) error {
			if before, _ := splitCommand(command, arguments); len(before) > 1 {
				return errors.New("name one node at most; a command for it comes behind --, as in " +
					"`trellisctl ssh NODE -- uptime`")
			}
			return nil
		},
		ValidArgsFunction: onlyFirst(c.completeNodes),
		RunE: func(command *cobra.Command, arguments []string) error {
			before, run := splitCommand(command, arguments)
			node := ""
			if len(before) == 1 {
				node = before[0]
			}
			if err := options.check(node, run); err != nil {
				return err
			}
			session, err := c.connect()
			if err != nil {
				return err
			}
			return session.ssh(command, options, node, run)
		},
	}
	options.flags(command)
	return command
}

// splitCommand separates what comes before -- from the command behind it.
func splitCommand(command *cobra.Command, arguments []string) (before, run []string) {
	if dash := command.ArgsLenAtDash(); dash >= 0 {
		return arguments[:dash], arguments[dash:]
	}
	return arguments, nil
}

// completeNodes completes the nodes of the targeted shoot.
func (c *cli) completeNodes(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	session, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	m, err := session.machines(command.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return m.names(), cobra.ShellCompDirectiveNoFileComp
}

// machines are those of a shoot.
type machines struct {
	shoot *gardencorev1beta1.Shoot
	nodes []corev1.Node
}

// machines lists the nodes of the targeted shoot.
func (s *Session) machines(ctx context.Context) (machines, error) {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return machines{}, err
	}
	if err := mayHaveSSH(shoot); err != nil {
		return machines{}, err
	}
	list := s.listNodes
	if list == nil {
		list = s.nodesOf
	}
	nodes, err := list(ctx, shoot)
	if err != nil {
		return machines{}, fmt.Errorf("listing the nodes of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return machines{shoot, nodes}, nil
}

// mayHaveSSH says why there is no machine to log in to.
func mayHaveSSH(shoot *gardencorev1beta1.Shoot) error {
	if err := hasControlPlane(shoot); err != nil {
		return err
	}
	switch {
	case gardencorev1beta1.IsWorkerless(shoot):
		return fmt.Errorf("shoot %s/%s has no workers, so there is no machine to log in to", shoot.Namespace,
			shoot.Name)
	case !gardencorev1beta1.SSHAccessEnabled(&shoot.Spec):
		return fmt.Errorf("shoot %s/%s allows no SSH: its spec.provider.workersSettings.sshAccess.enabled is false",
			shoot.Namespace, shoot.Name)
	}
	return nil
}

// nodesOf asks the shoot.
func (s *Session) nodesOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]corev1.Node, error) {
	kubeconfig, err := s.ShootKubeconfig(ctx, shoot, AccessAuto, nodesExpiration)
	if err != nil {
		return nil, err
	}
	config, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// nodeWay is a node as programs read it.
type nodeWay struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	IP     string `json:"ip"`
}

func waysOf(nodes []corev1.Node) []nodeWay {
	ways := make([]nodeWay, len(nodes))
	for i := range nodes {
		ways[i] = nodeWay{nodes[i].Name, readinessOf(&nodes[i]), addressOf(&nodes[i])}
	}
	return ways
}

func readinessOf(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return "Ready"
		}
	}
	return "NotReady"
}

// addressOf is that of the machine in its network, where the bastion is.
func addressOf(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// printNodes is what ssh does without a node.
func printNodes(out io.Writer, format formatFlag, m machines) error {
	ways := waysOf(m.nodes)
	if format.isDocument() {
		return format.print(out, map[string]any{"nodes": ways})
	}
	t := newTable(out, "NODE", "STATUS", "ADDRESS")
	for _, way := range ways {
		t.row(way.Name, way.Status, way.IP)
	}
	return t.Flush()
}

// names are those of the nodes.
func (m machines) names() []string {
	names := make([]string, len(m.nodes))
	for i := range m.nodes {
		names[i] = oneLine(m.nodes[i].Name)
	}
	return names
}

// node finds a node by name.
func (m machines) node(name string) (*corev1.Node, error) {
	for i := range m.nodes {
		if m.nodes[i].Name == name && addressOf(&m.nodes[i]) == "" {
			return nil, fmt.Errorf("node %q has no address yet; try again in a moment", name)
		}
		if m.nodes[i].Name == name {
			return &m.nodes[i], nil
		}
	}
	return nil, fmt.Errorf("shoot %s/%s has no node %q, but %s", m.shoot.Namespace, m.shoot.Name, name,
		orElse(strings.Join(m.names(), ", "), "none"))
}

// machineKeys are the private keys that open the machines of a shoot: that of now, and that of before a rotation, which
// machines take that have not heard of it.
func (s *Session) machineKeys(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([][]byte, error) {
	var keys [][]byte
	for _, suffix := range []string{".ssh-keypair", ".ssh-keypair.old"} {
		secret := &corev1.Secret{}
		name := shoot.Name + suffix
		err := s.client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("you may not read the key to the machines: ask an owner of the project to make you "+
				"an admin of it (%w)", err)
		}
		if err != nil {
			return nil, fmt.Errorf("key to the machines: %w", err)
		}
		if key := secret.Data[dataKeyPrivate]; len(key) > 0 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("Secret %s/%s.ssh-keypair with the key to the machines is not there yet; "+
			"`trellisctl ls shoots` shows how far the shoot is", shoot.Namespace, shoot.Name)
	}
	return keys, nil
}

// dataKeyPrivate is the key of Secrets with a key pair under which the private one is.
const dataKeyPrivate = "id_rsa"
