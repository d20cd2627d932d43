package memberapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const (
	// ServiceName is that of the Service and the EndpointSlice, in the namespace of the members' credentials, that lead
	// the fleet's kube-apiserver to the server.
	ServiceName = "member-api"

	managedByLabel = clusterv1alpha1.ManagedByLabel
	managedBy      = clusterv1alpha1.ManagedByFleet
	servicePort    = 443
	// versionPriority is below that of versions which the kube-apiserver serves by itself: who leaves the choice to it
	// is not to depend on the server.
	versionPriority = 50
	// triedAnnotation changes when the kube-apiserver is to try at once whether it reaches the server. By itself it
	// tries again after up to 30 seconds where it has failed before.
	triedAnnotation = "federation.trellis.garden/try"
)

// reasonReached tells that the kube-apiserver has asked the server, and not that it serves the version by itself.
const reasonReached = "Passed"

var (
	clusters = clusterv1alpha1.KarmadaGroupVersion
	trial    = schema.GroupVersion{Group: "reach.federation.trellis.garden", Version: "v1"}
)

// nameOf is the name of the APIService of a version.
func nameOf(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// reachTimeout is how long the kube-apiserver may take to reach the server.
const reachTimeout = 15 * time.Second

// askAgainAfter is how soon the kube-apiserver is asked to try again within reachTimeout.
const askAgainAfter = time.Second

// host is the name that the kube-apiserver expects in the server's certificate.
func host() string { return ServiceName + "." + clusterv1alpha1.CredentialsNamespace + ".svc" }

// publisher has the fleet's kube-apiserver ask a server.
type publisher struct {
	client    client.Client
	address   netip.AddrPort
	authority []byte
	// mayHandBack fails where the server could hand nothing back.
	mayHandBack func(context.Context) error
}

// publish returns when the kube-apiserver has reached the server. If it does not, everything is as it was before.
func (p *publisher) publish(ctx context.Context) error {
	if err := p.mayHandBack(ctx); err != nil {
		return errors.Join(err, p.unpublish(ctx))
	}
	meta := metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: ServiceName}
	service := &corev1.Service{ObjectMeta: meta}
	if err := p.ensure(ctx, service,
		func() {
			service.Spec.ClusterIP = corev1.ClusterIPNone
			service.Spec.Ports = servicePorts(p.address)
		}); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta}
	if err := p.ensure(ctx, slice, func() { fillSlice(slice, p.address) }); err != nil {
		return err
	}
	// What a process left that was killed keeps people from Clusters until it is mended.
	if _, _, err := p.look(ctx, clusters); errors.Is(err, errWithdrawn) {
		if err := p.register(ctx, trial); err != nil {
			return err
		}
	}
	return errors.Join(p.register(ctx, clusters), withdraw(context.WithoutCancel(ctx), p.client, trial))
}

// register returns when the kube-apiserver asks the server for a version. If it does not reach it, the version is not
// registered any more.
func (p *publisher) register(ctx context.Context, gv schema.GroupVersion) error {
	registration := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv)}}
	if err := p.ensure(ctx, registration, func() { fillRegistration(registration, gv, p.authority) }); err != nil {
		return err
	}
	if err := p.waitReached(ctx, gv); err != nil {
		_ = withdraw(context.WithoutCancel(ctx), p.client, gv)
		return err
	}
	return nil
}

func (p *publisher) ensure(ctx context.Context, object client.Object, fill func()) error {
	_, err := controllerutil.CreateOrPatch(ctx, p.client, object, func() error {
		object.SetLabels(map[string]string{managedByLabel: managedBy})
		fill()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%T %s in the fleet: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func servicePorts(address netip.AddrPort) []corev1.ServicePort {
	return []corev1.ServicePort{
		{
			Name: "https", Protocol: corev1.ProtocolTCP, Port: servicePort,
			TargetPort: intstr.FromInt32(int32(address.Port())),
		},
	}
}

func fillSlice(slice *discoveryv1.EndpointSlice, address netip.AddrPort) {
	slice.Labels[discoveryv1.LabelServiceName] = ServiceName
	slice.Labels[discoveryv1.LabelManagedBy] = managedBy
	if slice.AddressType == "" {
		slice.AddressType = discoveryv1.AddressTypeIPv4
		if address.Addr().Is6() {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
	}
	slice.Endpoints = []discoveryv1.Endpoint{
		{Addresses: []string{address.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
	}
	slice.Ports = []discoveryv1.EndpointPort{
		{Name: new("https"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(address.Port()))},
	}
}

// fillRegistration leaves out the label of what kube-apiserver registers by itself, which it therefore does not put
// back.
func fillRegistration(registration *apiregistrationv1.APIService, gv schema.GroupVersion, authority []byte) {
	registration.Spec = apiregistrationv1.APIServiceSpec{
		Group: gv.Group, Version: gv.Version,
		Service: &apiregistrationv1.ServiceReference{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: ServiceName, Port: new(int32(servicePort)),
		},
		CABundle: authority, GroupPriorityMinimum: 1000, VersionPriority: versionPriority,
	}
}

func (p *publisher) waitReached(ctx context.Context, gv schema.GroupVersion) error {
	last, asked := "", time.Now()
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, reachTimeout, true,
		func(ctx context.Context) (reached bool, err error) {
			reached, last, err = p.look(ctx, gv)
			if err == nil && !reached && time.Since(asked) >= askAgainAfter {
				asked = time.Now()
				p.askToTry(ctx, gv)
			}
			return reached, err
		})
	if wait.Interrupted(err) {
		return &unreachedError{p.address, last}
	}
	return err
}

// askToTry has the kube-apiserver find out whether it reaches the server, now and not when its own time has come. That
// it cannot be asked is no reason to give up: it tries by itself, too.
func (p *publisher) askToTry(ctx context.Context, gv schema.GroupVersion) {
	registration := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv)}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, triedAnnotation,
		time.Now().UTC().Format(time.RFC3339Nano))
	_ = p.client.Patch(ctx, registration, client.RawPatch(types.MergePatchType, patch))
}

// unpublish has the kube-apiserver serve Clusters by itself, which it begins with the removal.
func (p *publisher) unpublish(ctx context.Context) error { return Unpublish(ctx, p.client) }

// Unpublish is for those who remove a server that may have had no time to say so itself.
func Unpublish(ctx context.Context, fleet client.Client) error {
	return errors.Join(withdraw(ctx, fleet, clusters), withdraw(ctx, fleet, trial))
}

// withdraw removes the registration of a version if it is a server's.
func withdraw(ctx context.Context, fleet client.Client, gv schema.GroupVersion) error {
	registration := &apiregistrationv1.APIService{}
	if err := fleet.Get(ctx, client.ObjectKey{Name: nameOf(gv)}, registration); err != nil {
		return client.IgnoreNotFound(err)
	}
	if registration.Labels[managedByLabel] != managedBy {
		return nil
	}
	uid := registration.UID
	err := fleet.Delete(ctx, registration, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("APIService %s in the fleet: %w", registration.Name, err)
	}
	return nil
}
