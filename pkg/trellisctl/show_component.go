package trellisctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameOfAPIServer is the component that people reach by the addresses that the shoot advertises.
const nameOfAPIServer = "kube-apiserver"

// workload is what runs a component: a Deployment, StatefulSet or DaemonSet.
type workload struct {
	client.Object
	kind     string
	selector *metav1.LabelSelector
	// labels of its pods.
	labels        map[string]string
	wanted, ready int32
}

func (w workload) readiness() string { return fmt.Sprintf("%d/%d", w.ready, w.wanted) }

// workloads of all namespaces of the place, by their names.
func (p *place) workloads(ctx context.Context) ([]workload, error) {
	var all []workload
	for _, namespace := range p.namespaces {
		deployments, sets, daemons := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}
		for what, list := range map[string]client.ObjectList{
			"Deployments": deployments, "StatefulSets": sets, "DaemonSets": daemons,
		} {
			if err := p.cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return nil, p.cannotList(what, namespace, err)
			}
		}
		all = slices.Concat(all, workloadsOf(deployments, sets, daemons))
	}
	slices.SortFunc(all, func(a, b workload) int {
		return cmp.Or(strings.Compare(a.GetName(), b.GetName()), strings.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	return all, nil
}

func workloadsOf(deployments *appsv1.DeploymentList, sets *appsv1.StatefulSetList,
	daemons *appsv1.DaemonSetList) []workload {
	var all []workload
	for i := range deployments.Items {
		d := &deployments.Items[i]
		all = append(all, workload{
			Object: d, kind: "Deployment", selector: d.Spec.Selector, labels: d.Spec.Template.Labels,
			wanted: ptr.Deref(d.Spec.Replicas, 1), ready: d.Status.ReadyReplicas,
		})
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		all = append(all, workload{
			Object: s, kind: "StatefulSet", selector: s.Spec.Selector, labels: s.Spec.Template.Labels,
			wanted: ptr.Deref(s.Spec.Replicas, 1), ready: s.Status.ReadyReplicas,
		})
	}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		all = append(all, workload{
			Object: d, kind: "DaemonSet", selector: d.Spec.Selector, labels: d.Spec.Template.Labels,
			wanted: d.Status.DesiredNumberScheduled, ready: d.Status.NumberReady,
		})
	}
	return all
}

// namesOfWorkloads are those that people name a component by.
func namesOfWorkloads(workloads []workload) []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = oneLine(w.GetName())
	}
	return slices.Compact(names)
}

// showComponent prints all that runs a component: where several namespaces have one of that name, each of them.
func (p *place) showComponent(ctx context.Context, out io.Writer, name string, now time.Time) error {
	workloads, err := p.workloads(ctx)
	if err != nil {
		return err
	}
	if len(workloads) == 0 {
		return p.hasNone()
	}
	named := slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool { return w.GetName() != name })
	if len(named) == 0 {
		return fmt.Errorf("%s has no component %q; it has %s", p.of, name,
			strings.Join(namesOfWorkloads(workloads), ", "))
	}
	for i, w := range named {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := p.showWorkload(ctx, out, w, now); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) showWorkload(ctx context.Context, out io.Writer, w workload, now time.Time) error {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return fmt.Errorf("%s %s/%s: its selector cannot be read: %w", w.kind, w.GetNamespace(), w.GetName(), err)
	}
	pods, err := p.pods(ctx, w.GetNamespace(), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	services := &corev1.ServiceList{}
	if err := p.cluster.List(ctx, services, client.InNamespace(w.GetNamespace())); err != nil {
		return p.cannotList("Services", w.GetNamespace(), err)
	}
	printLine(out, "Component %s of %s: %s in namespace %s of %s, %s ready", w.GetName(), p.of, w.kind,
		w.GetNamespace(), p.in, w.readiness())
	if p.shoot != nil && w.GetName() == nameOfAPIServer {
		for _, address := range p.shoot.Status.AdvertisedAddresses {
			printLine(out, "URL: %s (%s)", address.URL, address.Name)
		}
	}
	fmt.Fprintln(out)
	if len(pods) == 0 {
		printLine(out, "No pods%s", p.whyNone(w))
	} else if err := printPods(out, pods, now); err != nil {
		return err
	}
	return printServices(out, servicesTo(services.Items, w.labels))
}

// whyNone is why a component has no pods, as far as that is known.
func (p *place) whyNone(w workload) string {
	switch {
	case w.wanted == 0 && p.shoot != nil && wakefulness(p.shoot) != "awake":
		return ": the shoot is " + wakefulness(p.shoot)
	case w.wanted == 0:
		return ": " + w.kind + " wants none"
	}
	return ": its controller has made none; `trellisctl diagnose` writes down its events"
}

// servicesTo are the Services that lead to pods with these labels.
func servicesTo(services []corev1.Service, podLabels map[string]string) []corev1.Service {
	slices.SortFunc(services, func(a, b corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(services, func(s corev1.Service) bool {
		return len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(podLabels))
	})
}

// printServices prints the addresses at which a component is reached; nothing where there are none.
func printServices(out io.Writer, services []corev1.Service) error {
	if len(services) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "SERVICE", "TYPE", "ADDRESS", "PORTS")
	for i := range services {
		t.row(services[i].Name, string(services[i].Spec.Type), serviceAddress(&services[i]), portsOf(&services[i]))
	}
	return t.Flush()
}

// serviceAddress is where others than the cluster reach it, or else its name within the cluster.
func serviceAddress(service *corev1.Service) string {
	var addresses []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(ingress.Hostname, ingress.IP))
	}
	if len(addresses) == 0 {
		return service.Name + "." + service.Namespace + ".svc"
	}
	return strings.Join(addresses, ",")
}

func portsOf(service *corev1.Service) string {
	ports := make([]string, len(service.Spec.Ports))
	for i, port := range service.Spec.Ports {
		ports[i] = fmt.Sprintf("%d/%s", port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP))
	}
	return strings.Join(ports, ",")
}
