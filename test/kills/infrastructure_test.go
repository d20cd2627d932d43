package kills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// answerDelay is how long those take who answer, so that gardenlet may end before they do.
const answerDelay = 100 * time.Millisecond

// finalizer is that of all who answer.
const finalizer = "example.com/fake"

// answer plays the controllers of the seed, and those of the garden beside gardenlet: workloads become ready,
// extensions succeed, tokens are issued, namespaces are emptied. They are the same before and after a kill.
func (w *world) answer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		time.Sleep(answerDelay)
		for _, stored := range w.stored() {
			w.react(ctx, stored)
		}
		w.dropCluster()
	}
}

// stored are the objects of seed and garden.
func (w *world) stored() []runtime.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(w.seed.objects)), maps.Values(w.garden.objects))
}

// react does what the controller of one object would. What fails because the object has changed meanwhile is done the
// next time, which the change brings about.
func (w *world) react(ctx context.Context, stored runtime.Object) {
	switch o := stored.DeepCopyObject().(type) {
	case extensionObject:
		w.reconcileExtension(ctx, o)
	case *appsv1.Deployment:
		w.rollOut(ctx, o)
	case *appsv1.StatefulSet:
		w.rollOutSet(ctx, o)
	case *corev1.Pod:
		w.mountSecrets(ctx, o)
	case *corev1.Namespace:
		w.emptyNamespace(ctx, o)
	case *corev1.Secret:
		w.issueToken(ctx, o)
	case *resourcesv1alpha1.ManagedResource:
		w.keepResources(ctx, o)
	case *gardencorev1beta1.BackupEntry:
		w.reconcileBackup(ctx, o)
	}
}

// extensionObject is one of the kinds that extensions act on.
type extensionObject interface {
	client.Object
	extensionsv1alpha1.Object
}

func (w *world) reconcileExtension(ctx context.Context, o extensionObject) {
	if o.GetDeletionTimestamp() != nil {
		o.SetFinalizers(nil)
		_ = w.seedClient.Update(ctx, o)
		return
	}
	status := o.GetExtensionStatus()
	operation := o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	if operation == gardencorev1beta1.GardenerOperationWaitForState {
		return
	}
	asked := operation != ""
	if !asked && status.LastOperation != nil && status.ObservedGeneration == o.GetGeneration() {
		return
	}
	annotations := o.GetAnnotations()
	delete(annotations, gardencorev1beta1.GardenerOperation)
	o.SetAnnotations(annotations)
	o.SetFinalizers([]string{finalizer})
	if w.seedClient.Update(ctx, o) != nil {
		return
	}
	status.ObservedGeneration, status.LastError = o.GetGeneration(), nil
	status.LastOperation = succeeded()
	if operation == gardencorev1beta1.GardenerOperationRestore {
		status.LastOperation.Type = gardencorev1beta1.LastOperationTypeRestore
	}
	w.report(ctx, o)
	_ = w.seedClient.Status().Update(ctx, o)
}

func succeeded() *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded,
		Progress: 100, Description: "done", LastUpdateTime: metav1.Now(),
	}
}

// report is what an extension tells, and does, besides having succeeded.
func (w *world) report(ctx context.Context, o extensionObject) {
	switch o := o.(type) {
	case *extensionsv1alpha1.Infrastructure:
		o.Status.NodesCIDR, o.Status.EgressCIDRs = new("10.180.1.0/24"), []string{"192.0.2.1/32"}
		o.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n1"}`)}
		if o.Status.LastOperation.Type != gardencorev1beta1.LastOperationTypeRestore {
			o.Status.State = &runtime.RawExtension{Raw: []byte(`{"id":"n1"}`)}
		}
	case *extensionsv1alpha1.Worker:
		w.makeMachines(o)
	case *extensionsv1alpha1.OperatingSystemConfig:
		if o.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
			return
		}
		reference := corev1.SecretReference{Namespace: o.Namespace, Name: "osc-" + o.Name}
		o.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: reference}
		w.writeSecret(ctx, reference, map[string][]byte{
			extensionsv1alpha1.OperatingSystemConfigSecretDataKey: []byte("user data"),
		})
	}
}

func (w *world) writeSecret(ctx context.Context, at corev1.SecretReference, data map[string][]byte) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: data}
	if w.seedClient.Create(ctx, secret) != nil {
		secret.ResourceVersion = ""
		_ = w.seedClient.Update(ctx, secret)
	}
}

func (w *world) rollOut(ctx context.Context, d *appsv1.Deployment) {
	n := ptr.Deref(d.Spec.Replicas, 1)
	if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
		return
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	_ = w.seedClient.Status().Update(ctx, d)
}

func (w *world) rollOutSet(ctx context.Context, s *appsv1.StatefulSet) {
	n := ptr.Deref(s.Spec.Replicas, 1)
	if s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == n {
		return
	}
	for ordinal := range n {
		for _, claim := range s.Spec.VolumeClaimTemplates {
			_ = w.seedClient.Create(ctx, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: s.Namespace, Name: fmt.Sprintf("%s-%s-%d", claim.Name, s.Name, ordinal),
				},
				Spec: claim.Spec,
			})
		}
	}
	w.runEtcd(ctx, s)
	s.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
	}
	_ = w.seedClient.Status().Update(ctx, s)
}

// emptyNamespace deletes what is in a namespace that is being deleted, and lets it go when nothing is left.
func (w *world) emptyNamespace(ctx context.Context, namespace *corev1.Namespace) {
	if namespace.DeletionTimestamp == nil {
		return
	}
	left := false
	for _, stored := range w.stored() {
		o := stored.DeepCopyObject().(client.Object)
		if o.GetNamespace() != namespace.Name {
			continue
		}
		left = true
		if o.GetDeletionTimestamp() == nil {
			_ = w.seedClient.Delete(ctx, o)
		}
	}
	if left {
		w.wake()
		return
	}
	namespace.Finalizers = nil
	_ = w.seedClient.Update(ctx, namespace)
}

// reconcileBackup plays gardenlet's controller of BackupEntries and the extension that it asks.
func (w *world) reconcileBackup(ctx context.Context, entry *gardencorev1beta1.BackupEntry) {
	if entry.Status.LastOperation != nil && entry.Status.ObservedGeneration == entry.Generation {
		return
	}
	w.writeSecret(ctx, corev1.SecretReference{Namespace: technicalID, Name: extensionsv1alpha1.BackupSecretName},
		map[string][]byte{
			extensionsv1alpha1.BackupSecretBucketName: []byte("bucket"), "accessKeyID": []byte("id"),
			"secretAccessKey": []byte("key"),
		})
	entry.Status.LastOperation, entry.Status.ObservedGeneration = succeeded(), entry.Generation
	_ = w.gardenClient.Status().Update(ctx, entry)
}

// makeMachines plays the Worker's extension: a machine for each pool, which becomes a node with a pod. A shoot that is
// to sleep has no machines; their nodes stay, as nobody is left to delete them.
func (w *world) makeMachines(worker *extensionsv1alpha1.Worker) {
	sleeps := w.isToSleep(worker.Namespace)
	worker.Status.MachineDeployments = nil
	for _, pool := range worker.Spec.Pools {
		worker.Status.MachineDeployments = append(worker.Status.MachineDeployments,
			extensionsv1alpha1.MachineDeployment{
				Name: worker.Namespace + "-" + pool.Name, Minimum: pool.Minimum, Maximum: pool.Maximum,
			})
		if !sleeps {
			w.join(pool)
		}
	}
}

// isToSleep reads the Cluster of a shoot.
func (w *world) isToSleep(namespace string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, stored := range w.seed.objects {
		cluster, ok := stored.(*extensionsv1alpha1.Cluster)
		if !ok || cluster.Name != namespace {
			continue
		}
		shoot := &gardencorev1beta1.Shoot{}
		return json.Unmarshal(cluster.Spec.Shoot.Raw, shoot) == nil && shoot.Spec.Hibernation != nil &&
			ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	}
	return false
}

// join makes the machine of a pool a node, whose node-agent runs what it was given.
func (w *world) join(pool extensionsv1alpha1.WorkerPool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	name := pool.Name + "-0"
	annotations := object{}
	if checksum := w.configurationOf(pool.Name); checksum != "" {
		annotations[checksumAnnotation] = checksum
	}
	w.cluster.put(path{"/api/v1", "nodes", "", name}, object{
		"kind": "Node", "apiVersion": "v1", "metadata": object{
			"name": name, "annotations": annotations,
			"labels": object{gardencorev1beta1.LabelWorkerPool: pool.Name},
		},
		"status": object{"conditions": []object{{"type": "Ready", "status": "True"}}},
	})
	w.cluster.put(path{"/api/v1", "pods", metav1.NamespaceSystem, "proxy"}, object{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": object{
			"name": "proxy", "namespace": metav1.NamespaceSystem, "labels": object{
				resourcesv1alpha1.ManagedBy: resourcesv1alpha1.GardenerManager,
			},
		},
		"spec": object{"nodeName": name},
	})
}

// checksumAnnotation is where node-agent tells which configuration it runs.
const checksumAnnotation = "checksum/cloud-config-data"

// configurationOf is the checksum of what the node-agents of a pool were given; the lock is held.
func (w *world) configurationOf(pool string) string {
	for at, stored := range w.cluster.objects {
		if at.resource == "secrets" && stored["pool"] == pool {
			sum := sha256.Sum256(stored["configuration"].([]byte))
			return hex.EncodeToString(sum[:])
		}
	}
	return ""
}

// dropCluster forgets the content of a shoot whose namespace goes, and with it etcd.
func (w *world) dropCluster() {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, stored := range w.seed.objects {
		namespace, ok := stored.(*corev1.Namespace)
		if ok && namespace.Name == technicalID && namespace.DeletionTimestamp == nil {
			return
		}
	}
	for at := range w.cluster.objects {
		w.cluster.remove(at)
	}
}
