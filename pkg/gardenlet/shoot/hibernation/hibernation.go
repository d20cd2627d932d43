// Package hibernation stops the control plane of a shoot that has lost its machines, and marks it as asleep.
package hibernation

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

const (
	// clearInterval and clearTimeout bound the wait until the cluster knows that its nodes are gone.
	clearInterval = time.Second
	clearTimeout  = 10 * time.Minute
)

// Hibernation stops one shoot.
type Hibernation struct {
	Plan       *plan.Plan
	Seed       client.WithWatch
	Extensions *extensions.Objects
}

// Add adds the end of a hibernation, after everything that needs the control plane: the cluster forgets its nodes, and
// then stops from the top to the bottom. Waking up is the rest of the graph.
func (h *Hibernation) Add(g *flow.Graph, after ...flow.TaskID) {
	cleared := g.Add(flow.Task{
		Name:   "Waiting until nothing of the nodes is left",
		SkipIf: h.Plan.Workerless || h.Plan.Hibernation == plan.Asleep, Dependencies: after,
		Fn: flow.TaskFn(h.forgetNodes).RetryUntilTimeout(clearInterval, clearTimeout),
	})
	marked := g.Add(flow.Task{
		Name: "Marking the shoot as asleep", Dependencies: []flow.TaskID{cleared},
		Fn: tasks.Retried(func(ctx context.Context) error { return MarkAsleep(ctx, h.Seed, h.Plan.Identity, true) }),
	})
	controllers := g.Add(flow.Task{
		Name: "Stopping controllers of the control plane", Fn: tasks.Retried(h.stopControllers),
		Dependencies: []flow.TaskID{marked},
	})
	apiServer := g.Add(flow.Task{
		Name: "Stopping kube-apiserver", Fn: tasks.Rollout(h.stop(components.APIServers)),
		Dependencies: []flow.TaskID{controllers},
	})
	g.Add(flow.Task{
		Name: "Stopping etcds", Fn: tasks.Rollout(h.stop(components.Stores)), Dependencies: []flow.TaskID{apiServer},
	})
	h.Extensions.AddRemoval(g, "DNS records", &extensionsv1alpha1.DNSRecordList{}, extension.DNSRecordTiming, apiServer)
}

// MarkAsleep writes, at the Secret with the kubeconfig, whether the shoot has lost its machines and is to be stopped.
// It tells the next run where to go on, and resource-manager that there is nobody to talk to.
func MarkAsleep(ctx context.Context, seed client.Client, shoot plan.Identity, asleep bool) error {
	secret := &corev1.Secret{}
	if err := seed.Get(ctx, shoot.Key(kubeapiserver.InternalKubeconfigSecret), secret); err != nil {
		return fmt.Errorf("marking the shoot as asleep: %w", err)
	}
	if (secret.Annotations[resourcesv1alpha1.Asleep] == "true") == asleep {
		return nil
	}
	patch := client.MergeFrom(secret.DeepCopy())
	delete(secret.Annotations, resourcesv1alpha1.Asleep)
	if asleep {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.Asleep, "true")
	}
	if err := seed.Patch(ctx, secret, patch); err != nil {
		return fmt.Errorf("marking the shoot as asleep: %w", err)
	}
	return nil
}

// IsAsleep says whether the shoot of a namespace sleeps: see MarkAsleep.
func IsAsleep(ctx context.Context, seed client.Reader, namespace string) (bool, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret}
	if err := client.IgnoreNotFound(seed.Get(ctx, key, secret)); err != nil {
		return false, fmt.Errorf("reading Secret %s, which tells whether the shoot sleeps: %w", key, err)
	}
	return secret.Annotations[resourcesv1alpha1.Asleep] == "true", nil
}

// forgetNodes removes what machines that are gone have left in the cluster, and fails until it is away: when the
// cluster wakes up, no pod may seem to run, and no Service may lead to one. The Worker has been reconciled, so there
// are no machines.
func (h *Hibernation) forgetNodes(ctx context.Context) error {
	clientset, err := access.Clientset(ctx, h.Seed, h.Plan.Namespace)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, kubernetes.Interface) error{
		deleteNodes, deleteBoundPods, checkEndpoints, deleteAttachments,
	} {
		if err := step(ctx, clientset); err != nil {
			return err
		}
	}
	return nil
}

// deleteNodes deletes all Nodes.
func deleteNodes(ctx context.Context, clientset kubernetes.Interface) error {
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if err := clientset.CoreV1().Nodes().Delete(ctx, node.Name,
			metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting node %s, whose machine is gone: %w", node.Name, err)
		}
	}
	return left("nodes", len(nodes.Items))
}

// deleteBoundPods deletes pods that are bound to a node: there is no kubelet that could still end them.
func deleteBoundPods(ctx context.Context, clientset kubernetes.Interface) error {
	pods, err := clientset.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for _, pod := range pods.Items {
		err := clientset.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting pod %s/%s, whose node is gone: %w", pod.Namespace, pod.Name, err)
		}
	}
	return left("pods on nodes", len(pods.Items))
}

// checkEndpoints fails while a Service still leads to a pod.
func checkEndpoints(ctx context.Context, clientset kubernetes.Interface) error {
	slices, err := clientset.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing endpoint slices: %w", err)
	}
	count := 0
	for _, slice := range slices.Items {
		count += podEndpoints(slice)
	}
	return left("endpoints of pods", count)
}

// podEndpoints counts the endpoints of a slice that are pods.
func podEndpoints(slice discoveryv1.EndpointSlice) int {
	count := 0
	for _, endpoint := range slice.Endpoints {
		if endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod" {
			count++
		}
	}
	return count
}

// deleteAttachments deletes VolumeAttachments, finalizers or not: volumes are detached when their machine is gone.
func deleteAttachments(ctx context.Context, clientset kubernetes.Interface) error {
	attachments, err := clientset.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing volume attachments: %w", err)
	}
	api := clientset.StorageV1().VolumeAttachments()
	for _, attachment := range attachments.Items {
		err := api.Delete(ctx, attachment.Name, metav1.DeleteOptions{})
		if err == nil {
			_, err = api.Patch(ctx, attachment.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
				metav1.PatchOptions{})
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting VolumeAttachment %s, whose node is gone: %w", attachment.Name, err)
		}
	}
	return left("volume attachments", len(attachments.Items))
}

// left is the error that says how much is left.
func left(what string, count int) error {
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d %s are left in the shoot", count, what)
}

// stopControllers stops all Deployments of the control plane but those of later stages, those of extensions as well:
// each of them would only complain about the API server. Whoever deploys them sets their replicas again when the shoot
// wakes up.
func (h *Hibernation) stopControllers(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	labels := client.MatchingLabels{component.LabelGardenRole: component.GardenRoleControlPlane}
	if err := h.Seed.List(ctx, list, client.InNamespace(h.Plan.Namespace), labels); err != nil {
		return fmt.Errorf("listing the Deployments of the control plane: %w", err)
	}
	later := map[string]bool{}
	for _, c := range components.ControlPlane {
		later[c.Name] = c.Stage == components.APIServers || c.Stage == components.Stores
	}
	var all []error
	for i := range list.Items {
		if !later[list.Items[i].Name] {
			all = append(all, component.Scale(ctx, h.Seed, &list.Items[i], 0))
		}
	}
	return errors.Join(all...)
}

// stop makes a task that stops a stage.
func (h *Hibernation) stop(stage components.Stage) flow.TaskFn {
	return func(ctx context.Context) error { return components.Stop(ctx, h.Seed, h.Plan.Namespace, stage) }
}
