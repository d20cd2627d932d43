package nodeagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// updatePatience is how long an update in place may fail until the node says so. It is tried on.
	updatePatience = 5 * time.Minute
	// mostOfReason is how much of a failure the node tells, in bytes.
	mostOfReason = 500
	// cpuManagerState is where the kubelet notes which CPUs are whose.
	cpuManagerState = "/var/lib/kubelet/cpu_manager_state"
)

// inPlace is what a machine takes over only once its node is drained, where machines are updated and not replaced.
type inPlace struct {
	// Hash names all of it.
	Hash string `json:"hash"`
	// Kubelet is the version of the kubelet.
	Kubelet string `json:"kubelet"`
	// Authorities and Key say which rotations of certificate authorities, and of the key for tokens of service
	// accounts, the machine knows of.
	Authorities string `json:"authorities,omitempty"`
	Key         string `json:"key,omitempty"`
	// Since is when it was applied: only what the kubelet says later, says the new one.
	Since metav1.Time `json:"since,omitzero"`
	// Pods are those of this rotation: they were started after the machine had taken it over.
	Pods string `json:"pods,omitempty"`
}

// rotation names what pods hold from their start on.
func (p *inPlace) rotation() string { return p.Authorities + "/" + p.Key }

// inPlaceOf reads what is told of updates in place; nil for machines that are replaced.
func inPlaceOf(osc *extensionsv1alpha1.OperatingSystemConfig) *inPlace {
	told, hash := osc.Spec.InPlaceUpdates, osc.Annotations[gardencorev1beta1.AnnotationWorkerInPlaceUpdate]
	if told == nil || hash == "" {
		return nil
	}
	result := &inPlace{Hash: hash, Kubelet: told.Kubelet}
	if rotations := told.CredentialsRotation; rotations != nil {
		if ca := rotations.CertificateAuthorities; ca != nil && ca.LastInitiationTime != nil {
			result.Authorities = ca.LastInitiationTime.UTC().Format(time.RFC3339)
		}
		if key := rotations.ServiceAccountKey; key != nil && key.LastInitiationTime != nil {
			result.Key = key.LastInitiationTime.UTC().Format(time.RFC3339)
		}
	}
	return result
}

// waitsForDrain says whether some of what is wanted has to wait until the node is drained.
func (d *desired) waitsForDrain(wanted *desired) bool {
	return d.InPlace != nil && wanted.InPlace != nil && d.InPlace.Hash != wanted.InPlace.Hash
}

// renews says whether the machine is to get certificates of another authority.
func (d *desired) renews(wanted *desired) bool {
	return d.InPlace != nil && wanted.InPlace != nil && d.InPlace.Authorities != wanted.InPlace.Authorities
}

func isKubelet(unit extensionsv1alpha1.Unit) bool { return unit.Name == kubeletUnit }

// holding is what is wanted with the kubelet as it is: its unit and the files of that. The authorities of the kubelet's
// clients are not held back: a rotation has them trusted long before anybody relies on it.
func (d *desired) holding(applied *desired) *desired {
	held := map[string]bool{}
	for _, unit := range slices.Concat(d.Units, applied.Units) {
		if isKubelet(unit) {
			for _, path := range unit.FilePaths {
				held[path] = path != KubeletCAPath
			}
		}
	}
	result := &desired{CRI: d.CRI, InPlace: applied.InPlace}
	if d.cgroupDriver() != applied.cgroupDriver() {
		result.CRI = applied.CRI
	}
	isHeld := func(file extensionsv1alpha1.File) bool { return held[file.Path] }
	result.Files = append(slices.DeleteFunc(slices.Clone(d.Files), isHeld),
		slices.DeleteFunc(slices.Clone(applied.Files),
			func(file extensionsv1alpha1.File) bool { return !isHeld(file) })...)
	for _, unit := range d.Units {
		if i := slices.IndexFunc(applied.Units, isKubelet); isKubelet(unit) && i >= 0 {
			unit = applied.Units[i]
		}
		result.Units = append(result.Units, unit)
	}
	return result
}

// succeeds says whether what waits for a drain is another one than was applied.
func (a *Agent) succeeds(wanted *desired) bool {
	before, after := a.applied.InPlace, wanted.InPlace
	if before == nil || after == nil {
		return before != after
	}
	return before.Hash != after.Hash || before.Kubelet != after.Kubelet || before.rotation() != after.rotation()
}

// inPlaceAfter is what is to be remembered when something has been applied just now. Pods that are there when the
// machine is made are of the rotation that it begins with.
func (a *Agent) inPlaceAfter(wanted *desired) *inPlace {
	switch {
	case wanted.InPlace == nil:
		return nil
	case !a.succeeds(wanted):
		return a.applied.InPlace
	}
	begun := *wanted.InPlace
	begun.Since, begun.Pods = metav1.Now(), wanted.InPlace.rotation()
	if a.applied.InPlace != nil {
		begun.Pods = a.applied.InPlace.Pods
	}
	return &begun
}

// isReadyForUpdate says whether machine-controller-manager has drained the node for an update in place. One that has
// failed is tried again.
func isReadyForUpdate(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == machinev1alpha1.NodeInPlaceUpdate && c.Status == corev1.ConditionTrue &&
			(c.Reason == machinev1alpha1.ReadyForUpdate || c.Reason == machinev1alpha1.UpdateFailed)
	})
}

// nodeName is the name of the machine's node.
func (a *Agent) nodeName() (string, error) {
	if a.config.MachineName != "" {
		return a.config.MachineName, nil
	}
	return os.Hostname()
}

// node reads the machine's node; nil if it has not registered.
func (a *Agent) node(ctx context.Context, client kubernetes.Interface) (*corev1.Node, error) {
	name, err := a.nodeName()
	if err != nil {
		return nil, err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", name, err)
	}
	return node, nil
}

// update brings a machine whose node is drained up to date, and says on the node what came of it. Everything may be
// repeated, so that an update that was killed half-way is simply done again.
func (a *Agent) update(ctx context.Context, client kubernetes.Interface, node *corev1.Node, wanted *desired) error {
	err := a.tryUpdate(ctx, client, wanted)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		a.failing = time.Time{}
		if latest, err := a.isLatest(ctx, client, wanted); err != nil || !latest {
			return err
		}
		return a.tell(ctx, client, node, machinev1alpha1.LabelValueNodeUpdateSuccessful, nil)
	}
	err = fmt.Errorf("updating the machine in place: %w", err)
	if a.failing.IsZero() {
		a.failing = time.Now()
	}
	if time.Since(a.failing) < cmp.Or(a.patience, updatePatience) {
		return err
	}
	reason := err.Error()
	reason = reason[:min(len(reason), mostOfReason)]
	return errors.Join(err, a.tell(ctx, client, node, machinev1alpha1.LabelValueNodeUpdateFailed, &reason))
}

// isLatest says whether what was done is all that is wanted by now. machine-controller-manager takes a machine that
// says that it is updated to be what its MachineDeployment asks for at the time; so what has come meanwhile is done
// before.
func (a *Agent) isLatest(ctx context.Context, client kubernetes.Interface, done *desired) (bool, error) {
	name := a.config.OperatingSystemConfigSecretName
	secret, err := client.CoreV1().Secrets(secretNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("fetching Secret %s/%s: %w", secretNamespace, name, err)
	}
	latest, err := wantedBy(secret)
	if err != nil {
		return false, err
	}
	return !done.waitsForDrain(latest), nil
}

// tryUpdate does what an update consists of. Credentials are first: those that there are still serve to get others.
func (a *Agent) tryUpdate(ctx context.Context, client kubernetes.Interface, wanted *desired) error {
	if a.applied.renews(wanted) && a.renewed != wanted.InPlace.Authorities {
		if err := a.renewCredentials(ctx, client, wanted); err != nil {
			return err
		}
		a.renewed = wanted.InPlace.Authorities
	}
	if err := a.forgetCPUs(ctx, wanted); err != nil {
		return err
	}
	if err := a.apply(ctx, wanted); err != nil {
		return err
	}
	node, err := a.node(ctx, client)
	if err != nil {
		return err
	}
	if err := a.kubeletProblem(node); err != nil {
		return err
	}
	return a.restartPods(ctx, client, node.Name)
}

// forgetCPUs stops a kubelet that is to assign CPUs by another policy, and removes what it noted by the old one: with
// that it would not start.
func (a *Agent) forgetCPUs(ctx context.Context, wanted *desired) error {
	if a.applied.cpuManagerPolicy() == wanted.cpuManagerPolicy() {
		return nil
	}
	if err := a.machine.units.Stop(ctx, kubeletUnit); err != nil {
		return fmt.Errorf("stopping %s: %w", kubeletUnit, err)
	}
	return os.RemoveAll(a.machine.path(cpuManagerState))
}

// cpuManagerPolicy is the kubelet's; empty for its default.
func (d *desired) cpuManagerPolicy() string {
	var settings struct {
		CPUManagerPolicy string `json:"cpuManagerPolicy"`
	}
	data, err := d.content(KubeletConfigPath)
	if err != nil || yaml.Unmarshal(data, &settings) != nil || settings.CPUManagerPolicy == "none" {
		return ""
	}
	return settings.CPUManagerPolicy
}

// kubeletProblem says why the kubelet that was started last does not work yet.
func (a *Agent) kubeletProblem(node *corev1.Node) error {
	if node == nil {
		return errors.New("the Node is gone")
	}
	if got, want := node.Status.NodeInfo.KubeletVersion, "v"+a.applied.InPlace.Kubelet; got != want {
		return fmt.Errorf("the kubelet reports version %s, not %s; see: journalctl -u kubelet", got, want)
	}
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.LastHeartbeatTime.Time.Before(a.applied.InPlace.Since.Truncate(time.Second)) {
			return errors.New("the kubelet has not reported since it was started; see: journalctl -u kubelet")
		}
		if c.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", c.Message)
		}
		return nil
	}
	return errors.New("the kubelet has not reported whether the node is ready")
}

// restartPods has those pods of the node made anew that a drain leaves, after a rotation of what pods hold from their
// start on: the cluster's authorities and their tokens. That DaemonSets make others is why they are left.
func (a *Agent) restartPods(ctx context.Context, client kubernetes.Interface, node string) error {
	rotation := a.applied.InPlace.rotation()
	if a.applied.InPlace.Pods == rotation {
		return nil
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("listing the pods of Node %s: %w", node, err)
	}
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		started := pod.CreationTimestamp.Time
		if owner == nil || owner.Kind != "DaemonSet" || started.After(a.applied.InPlace.Since.Time) {
			continue
		}
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting Pod %s/%s, which holds credentials of before a rotation: %w", pod.Namespace,
				pod.Name, err)
		}
	}
	done := *a.applied
	done.InPlace = new(*a.applied.InPlace)
	done.InPlace.Pods = rotation
	return a.remember(&done)
}

// tell says on the node what came of an update. machine-controller-manager acts on it.
func (a *Agent) tell(ctx context.Context, client kubernetes.Interface, node *corev1.Node, result string,
	reason *string) error {
	if node.Labels[machinev1alpha1.LabelKeyNodeUpdateResult] == result {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]string{machinev1alpha1.LabelKeyNodeUpdateResult: result},
		"annotations": map[string]*string{machinev1alpha1.AnnotationKeyMachineUpdateFailedReason: reason},
	}})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("saying on Node %s what came of the update: %w", node.Name, err)
	}
	a.log.Info("Updated in place", "result", result)
	return nil
}
