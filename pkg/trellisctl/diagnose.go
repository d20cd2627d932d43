package trellisctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/bundle"
	"github.com/trellis-garden/trellis/pkg/version"
)

// maxItems bounds how many objects of a kind are in an archive; maxLog how many bytes of a container's log.
const (
	maxItems = 2000
	maxLog   = 512 << 10
)

// extensionNamespaces begin with this in a seed.
const extensionNamespaces = "extension-"

type diagnoseOptions struct {
	file    string
	sizeMiB int64
	tail    int64
}

func (c *cli) diagnoseCommand() *cobra.Command {
	options := diagnoseOptions{sizeMiB: 20, tail: 2000}
	command := &cobra.Command{
		Use:   "diagnose",
		Short: "Write an archive about a shoot or a seed for a bug report",
		Long: `diagnose writes what you may read about the targeted shoot or seed into a .tar.gz: the objects of the garden
with conditions and events, and from the seed the extensions' objects, pods and logs of the control plane. The file
missing.txt in it says what you may not read.

Secrets, ConfigMaps and kubeconfigs are not written, and what looks like a key, a token or a password is taken out of
all else. Names, addresses and who did what stay: look through it before you send it.`,
		Example: `  trellisctl diagnose --project demo --shoot member1
  trellisctl diagnose --seed local --output seed.tar.gz`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			return session.Diagnose(command.Context(), options, time.Now(), tell(command))
		},
	}
	command.Flags().StringVarP(&options.file, "output", "o", "",
		"file to write, which must not be there yet (default: one named for the target, here)")
	countVar(command.Flags(), &options.sizeMiB, "max-size", 1,
		"how large the archive may be, in MiB before compression")
	countVar(command.Flags(), &options.tail, "tail", 0, "how many lines of each log")
	return command
}

// Diagnose writes the archive of the target. Nothing is left of one that could not be ended.
func (s *Session) Diagnose(ctx context.Context, options diagnoseOptions, now time.Time,
	tell func(string, ...any)) error {
	if s.Target.Shoot == "" && s.Target.Seed == "" {
		return errors.New("diagnose what? Add --project NAME --shoot NAME, or --seed NAME")
	}
	if _, err := s.check(ctx); err != nil {
		return err
	}
	if options.file == "" {
		options.file = archiveName(s.Target, now) + ".tar.gz"
	}
	file, err := os.OpenFile(options.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: remove it, or name another file with --output", options.file)
	}
	if err != nil {
		return err
	}
	d := &diagnosis{
		session: s, archive: bundle.New(file, archiveName(s.Target, now), options.sizeMiB<<20, now), tail: options.tail,
		open: openSeed, now: now,
	}
	if err := errors.Join(d.collect(ctx), d.archive.Close(), file.Close()); err != nil {
		os.Remove(options.file)
		return err
	}
	files, missing := d.archive.Count()
	tell("%s: %s; %s could not be read, which its %s tells. Look through it before you send it.", options.file,
		counted(files, "file"), counted(missing, "thing"), bundle.MissingFile)
	return nil
}

func archiveName(target Target, now time.Time) string {
	name := target.Shoot
	if name == "" {
		name = target.Seed
	}
	return "trellis-" + name + "-" + now.UTC().Format("20060102-150405")
}

// seedAPI is what is asked of a seed.
type seedAPI struct {
	client  client.Client
	logs    func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (string, error)
	version func() (string, error)
}

func openSeed(kubeconfig *clientcmdapi.Config) (*seedAPI, error) {
	config, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	seed, err := client.New(config, client.Options{Scheme: apis.SeedScheme()})
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &seedAPI{
		client: seed, version: func() (string, error) { return versionOf(config) },
		logs: func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (string, error) {
			stream, err := clients.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
			if err != nil {
				return "", err
			}
			defer stream.Close()
			text, err := io.ReadAll(io.LimitReader(stream, maxLog))
			return string(text), err
		},
	}, nil
}

func versionOf(config *rest.Config) (string, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	found, err := clients.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return found.String(), nil
}

// diagnosis fills an archive. What cannot be read is told there; only an archive that cannot be written is an error.
type diagnosis struct {
	session *Session
	archive *bundle.Archive
	tail    int64
	open    func(*clientcmdapi.Config) (*seedAPI, error)
	now     time.Time
	// failed is why the archive cannot be written.
	failed error
}

func (d *diagnosis) collect(ctx context.Context) error {
	d.versions()
	if d.session.Target.Shoot != "" {
		if err := d.shoot(ctx); err != nil {
			return err
		}
	} else {
		d.seed(ctx)
	}
	return errors.Join(d.failed, ctx.Err())
}

func (d *diagnosis) versions() {
	text := "trellisctl " + version.String() + "\n"
	config, err := d.session.garden.restConfig()
	if err == nil {
		var found string
		if found, err = versionOf(config); err == nil {
			text += "garden " + found + "\n"
		}
	}
	if err != nil {
		d.archive.Missing("version of the garden", err)
	}
	d.text(fmt.Sprintf("%sat %s about %s\n", text, d.now.UTC().Format(time.RFC3339), d.session.Target), "versions.txt")
}

func (d *diagnosis) shoot(ctx context.Context) error {
	shoot, err := d.session.Shoot(ctx)
	if err != nil {
		return err
	}
	scheme := d.session.client.Scheme()
	d.objects([]runtime.Object{shoot}, scheme, "garden", "shoot.yaml")
	var conditions bytes.Buffer
	fmt.Fprintf(&conditions, "%s, %s\n", wakefulness(shoot), lastOperation(shoot.Status.LastOperation))
	if err := showConditions(&conditions, shoot); err != nil {
		return err
	}
	d.text(conditions.String(), "garden", "conditions.txt")
	d.project(ctx, shoot.Namespace)
	d.events(ctx, "Shoot", shoot.Namespace, shoot.Name)
	if shoot.Spec.SeedName != nil {
		d.get(ctx, &gardencorev1beta1.Seed{}, *shoot.Spec.SeedName, "garden", "seed.yaml")
	}
	kubeconfig, err := d.session.controlPlaneKubeconfig(ctx, shoot)
	if err != nil {
		d.archive.Missing("control plane", err)
		return nil
	}
	if seed := d.openSeed(kubeconfig); seed != nil {
		d.namespace(ctx, seed, shoot.Status.TechnicalID, "control-plane")
	}
	return nil
}

func (d *diagnosis) seed(ctx context.Context) {
	name := d.session.Target.Seed
	d.get(ctx, &gardencorev1beta1.Seed{}, name, "garden", "seed.yaml")
	d.events(ctx, "Seed", "", name)
	kubeconfig, err := d.session.SeedKubeconfig(ctx, name)
	if err != nil {
		d.archive.Missing("seed", err)
		return
	}
	seed := d.openSeed(kubeconfig)
	if seed == nil {
		return
	}
	d.namespace(ctx, seed, gardenNamespace, "seed")
	namespaces := &corev1.NamespaceList{}
	if err := seed.client.List(ctx, namespaces, client.Limit(maxItems)); err != nil {
		d.archive.Missing("namespaces of extensions", err)
		return
	}
	for _, namespace := range namespaces.Items {
		if strings.HasPrefix(namespace.Name, extensionNamespaces) {
			d.namespace(ctx, seed, namespace.Name, namespace.Name)
		}
	}
}

// openSeed connects to a seed and tells its version.
func (d *diagnosis) openSeed(kubeconfig *clientcmdapi.Config) *seedAPI {
	seed, err := d.open(kubeconfig)
	if err != nil {
		d.archive.Missing("seed", err)
		return nil
	}
	found, err := seed.version()
	if err != nil {
		d.archive.Missing("version of the seed", err)
	} else {
		d.text(found+"\n", "seed-version.txt")
	}
	return seed
}

// project finds the project by its namespace.
func (d *diagnosis) project(ctx context.Context, namespace string) {
	projects, err := d.session.projectsByNamespace(ctx)
	if err != nil {
		d.archive.Missing("project", err)
		return
	}
	if name := projects[namespace]; name != "" {
		d.get(ctx, &gardencorev1beta1.Project{}, name, "garden", "project.yaml")
		return
	}
	d.archive.Missing("project", fmt.Errorf("you see none whose namespace is %s", namespace))
}

// get adds an object of the garden that has no namespace.
func (d *diagnosis) get(ctx context.Context, object client.Object, name string, path ...string) {
	if err := d.session.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		d.archive.Missing(strings.Join(path, "/"), err)
		return
	}
	d.objects([]runtime.Object{object}, d.session.client.Scheme(), path...)
}

// events adds those of the garden about objects of a kind and name.
func (d *diagnosis) events(ctx context.Context, kind, namespace, name string) {
	events, err := d.session.eventsAbout(ctx, kind, namespace, name)
	if err != nil {
		d.archive.Missing("garden/events.yaml", err)
		return
	}
	about := make([]runtime.Object, len(events))
	for i := range events {
		about[i] = &events[i]
	}
	d.objects(about, d.session.client.Scheme(), "garden", "events.yaml")
}

// kindFile is a kind, and the file for its objects.
type kindFile struct {
	file string
	list client.ObjectList
}

// seedKinds are those that are looked at in a namespace of a seed. None of them is there to hold secrets.
func seedKinds() []kindFile {
	return []kindFile{
		{"events", &corev1.EventList{}}, {"deployments", &appsv1.DeploymentList{}},
		{"statefulsets", &appsv1.StatefulSetList{}}, {"machines", &machinev1alpha1.MachineList{}},
		{"machinedeployments", &machinev1alpha1.MachineDeploymentList{}},
		{"managedresources", &resourcesv1alpha1.ManagedResourceList{}},
		{"infrastructures", &extensionsv1alpha1.InfrastructureList{}},
		{"controlplanes", &extensionsv1alpha1.ControlPlaneList{}}, {"workers", &extensionsv1alpha1.WorkerList{}},
		{"networks", &extensionsv1alpha1.NetworkList{}}, {"extensions", &extensionsv1alpha1.ExtensionList{}},
		{"operatingsystemconfigs", &extensionsv1alpha1.OperatingSystemConfigList{}},
		{"containerruntimes", &extensionsv1alpha1.ContainerRuntimeList{}},
		{"dnsrecords", &extensionsv1alpha1.DNSRecordList{}}, {"bastions", &extensionsv1alpha1.BastionList{}},
	}
}

// namespace adds what is in a namespace of a seed, and the logs of its pods.
func (d *diagnosis) namespace(ctx context.Context, seed *seedAPI, namespace, folder string) {
	for _, kind := range seedKinds() {
		d.list(ctx, seed.client, kind.list, namespace, folder, kind.file+".yaml")
	}
	pods := &corev1.PodList{}
	d.list(ctx, seed.client, pods, namespace, folder, "pods.yaml")
	for i := range pods.Items {
		d.logs(ctx, seed, &pods.Items[i], folder)
	}
}

func (d *diagnosis) list(ctx context.Context, c client.Client, list client.ObjectList, namespace string,
	path ...string) {
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(maxItems)); err != nil {
		d.archive.Missing(strings.Join(path, "/"), err)
		return
	}
	if list.GetContinue() != "" {
		d.archive.Missing(strings.Join(path, "/"), fmt.Errorf("there are more than %d", maxItems))
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		d.archive.Missing(strings.Join(path, "/"), err)
		return
	}
	d.objects(items, c.Scheme(), path...)
}

// logs adds those of all containers, and of containers that have ended before.
func (d *diagnosis) logs(ctx context.Context, seed *seedAPI, pod *corev1.Pod, folder string) {
	limit := int64(maxLog)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, previous := range []bool{false, true} {
			if previous && status.RestartCount == 0 {
				continue
			}
			name := status.Name + ".log"
			if previous {
				name = status.Name + ".previous.log"
			}
			text, err := seed.logs(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{
				Container: status.Name, Previous: previous, TailLines: &d.tail, LimitBytes: &limit, Timestamps: true,
			})
			if err != nil {
				d.archive.Missing(strings.Join([]string{folder, "logs", pod.Name, name}, "/"), err)
			}
			if text != "" {
				d.text(text, folder, "logs", pod.Name, name)
			}
		}
	}
}

// objects adds objects in one file, with their kinds, which lists leave out. No objects are no file.
func (d *diagnosis) objects(objects []runtime.Object, scheme *runtime.Scheme, path ...string) {
	var all []map[string]any
	for _, object := range objects {
		fields, err := fieldsWithKind(object, scheme)
		if err != nil {
			d.archive.Missing(strings.Join(path, "/"), err)
			return
		}
		all = append(all, fields)
	}
	if len(all) > 0 && d.failed == nil {
		d.failed = d.archive.Objects(all, path...)
	}
}

func (d *diagnosis) text(text string, path ...string) {
	if d.failed == nil {
		d.failed = d.archive.Text(text, path...)
	}
}

func fieldsWithKind(object runtime.Object, scheme *runtime.Scheme) (map[string]any, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = kind.GroupVersion().String(), kind.Kind
	return fields, nil
}
