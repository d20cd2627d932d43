// Package machine is the driver of machine-controller-manager for the local cloud: a machine is a privileged pod that
// boots systemd from a machine image.
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
)

// goneTimeout is how long DeleteMachine waits for a pod; it is called again.
const goneTimeout = 30 * time.Second

// Driver makes machines in the cluster of the client.
type Driver struct {
	Client kubernetes.Interface
}

var _ driver.Driver = &Driver{}

// CreateMachine implements driver.Driver. It may be repeated after any failure.
func (d *Driver) CreateMachine(ctx context.Context,
	request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	spec, err := specOf(request.MachineClass)
	if err != nil {
		return nil, err
	}
	userData := request.Secret.Data["userData"]
	if len(userData) == 0 {
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("machine class %s: its Secret has no userData", request.MachineClass.Name))
	}
	pod := podFor(request.Machine.Name, request.MachineClass.Name, spec)
	created, err := d.ensurePod(ctx, pod)
	if err != nil {
		return nil, err
	}
	if err := d.ensureUserData(ctx, created, userData); err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{
		ProviderID: providerID(spec.Namespace, request.Machine.Name), NodeName: request.Machine.Name,
	}, nil
}

func (d *Driver) ensurePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pods := d.Client.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, statusOf(err, "create pod "+pod.Namespace+"/"+pod.Name)
	}
	if created.DeletionTimestamp != nil {
		return nil, status.Error(codes.Unavailable,
			fmt.Sprintf("the former pod %s/%s is still being deleted", pod.Namespace, pod.Name))
	}
	return created, nil
}

// ensureUserData makes the Secret that the pod is waiting for. The pod owns it, so that it never outlives the machine.
func (d *Driver) ensureUserData(ctx context.Context, pod *corev1.Pod, userData []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace,
			Name:      pod.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
				BlockOwnerDeletion: new(false),
			}},
		},
		Data: map[string][]byte{userDataKey: userData},
	}
	secrets := d.Client.CoreV1().Secrets(pod.Namespace)
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Of a machine that had the same name, or of an earlier try: this try's token is the valid one.
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return statusOf(err, "write the user data of "+pod.Namespace+"/"+pod.Name)
}

// InitializeMachine implements driver.Driver: there is nothing to do.
func (d *Driver) InitializeMachine(context.Context,
	*driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "machines of the local cloud need no initialization")
}

// DeleteMachine implements driver.Driver. It returns when the pod is gone; a machine that is not there is deleted.
func (d *Driver) DeleteMachine(ctx context.Context,
	request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	spec, err := specOf(request.MachineClass)
	if err != nil {
		return nil, err
	}
	name := podName(request.Machine.Name)
	pods := d.Client.CoreV1().Pods(spec.Namespace)
	err = pods.Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return &driver.DeleteMachineResponse{}, nil
	}
	if err != nil {
		return nil, statusOf(err, "delete pod "+spec.Namespace+"/"+name)
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, goneTimeout, true,
		func(ctx context.Context) (bool, error) {
			_, err := pods.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	if err != nil {
		return nil, statusOf(err, "wait for the end of pod "+spec.Namespace+"/"+name)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context,
	request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	spec, err := specOf(request.MachineClass)
	if err != nil {
		return nil, err
	}
	name := podName(request.Machine.Name)
	pod, err := d.Client.CoreV1().Pods(spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, statusOf(err, "read pod "+spec.Namespace+"/"+name)
	}
	response := &driver.GetMachineStatusResponse{
		ProviderID: providerID(spec.Namespace, request.Machine.Name), NodeName: request.Machine.Name,
	}
	if pod.Status.PodIP != "" {
		response.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: pod.Status.PodIP}}
	}
	return response, nil
}

// ListMachines implements driver.Driver.
func (d *Driver) ListMachines(ctx context.Context,
	request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	spec, err := specOf(request.MachineClass)
	if err != nil {
		return nil, err
	}
	pods, err := d.Client.CoreV1().Pods(spec.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelMachine})
	if err != nil {
		return nil, statusOf(err, "list pods in "+spec.Namespace)
	}
	return &driver.ListMachinesResponse{MachineList: machinesOf(pods.Items, request.MachineClass.Name)}, nil
}

func machinesOf(pods []corev1.Pod, class string) map[string]string {
	machines := map[string]string{}
	for _, pod := range pods {
		if pod.Annotations[annotationClass] == class {
			machine := pod.Annotations[annotationMachine]
			machines[providerID(pod.Namespace, machine)] = machine
		}
	}
	return machines
}

// GetVolumeIDs implements driver.Driver: volumes of the local cloud are never attached to machines.
func (d *Driver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}

// specOf reads and checks the providerSpec of a class.
func specOf(class *machinev1alpha1.MachineClass) (apis.MachineSpec, error) {
	var spec apis.MachineSpec
	if class.Provider != apis.Type {
		return spec, status.Error(codes.InvalidArgument,
			fmt.Sprintf("machine class %s is for provider %q, not %q", class.Name, class.Provider, apis.Type))
	}
	if err := json.Unmarshal(class.ProviderSpec.Raw, &spec); err != nil {
		return spec, status.Error(codes.InvalidArgument,
			fmt.Sprintf("machine class %s: providerSpec: %v", class.Name, err))
	}
	if spec.Image == "" || spec.Namespace == "" {
		return spec, status.Error(codes.InvalidArgument,
			fmt.Sprintf("machine class %s: providerSpec needs image and namespace", class.Name))
	}
	return spec, nil
}

func providerID(namespace, machine string) string {
	return apis.ProviderIDPrefix + namespace + "/" + machine
}

// statusOf turns an error of the API into one with the code that machine-controller-manager acts on.
func statusOf(err error, doing string) error {
	if err == nil {
		return nil
	}
	code := codes.Internal
	switch {
	case apierrors.IsNotFound(err):
		code = codes.NotFound
	case apierrors.IsForbidden(err):
		code = codes.PermissionDenied
	case apierrors.IsInvalid(err):
		code = codes.InvalidArgument
	case wait.Interrupted(err), errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsConflict(err):
		code = codes.Unavailable
	}
	return status.Error(code, doing+": "+err.Error())
}
