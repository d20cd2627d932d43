package trellisctl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

const (
	// bastionPoll is how often is looked whether a bastion is there.
	bastionPoll = time.Second
	// keepaliveEvery is how often a bastion is kept alive, of which the garden forgets those that are an hour old.
	keepaliveEvery = 3 * time.Minute
	// deletionTimeout bounds the deletion of a bastion after an interrupt.
	deletionTimeout = 30 * time.Second
)

// ranges are those from which the bastion is to be reached.
func (s *Session) ranges(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	if route := s.garden.Bastions; route != nil && len(route.CIDRs) > 0 {
		return route.CIDRs, nil
	}
	config, err := s.garden.restConfig()
	if err != nil {
		return nil, err
	}
	address, err := ownAddress(config.Host)
	if err != nil {
		return nil, fmt.Errorf("say with --cidr from where the bastion is to be reached: %w", err)
	}
	own, err := rangeOf(address)
	if err != nil {
		return nil, err
	}
	return []string{own.String()}, nil
}

// rangeOf is the range of an address that others see: of IPv6 the whole subnet, in which machines change theirs.
func rangeOf(address netip.Addr) (netip.Prefix, error) {
	if !address.IsGlobalUnicast() || address.IsPrivate() {
		return netip.Prefix{}, fmt.Errorf("say with --cidr from where the bastion is to be reached, such as --cidr "+
			"203.0.113.7/32: this machine's own address %s is not the one that the bastion sees", address)
	}
	bits := 32
	if address.Is6() {
		bits = 64
	}
	return address.Prefix(bits)
}

// ownAddress is that from which this machine talks to a server. Nothing is sent for that.
func ownAddress(server string) (netip.Addr, error) {
	at, err := url.Parse(server)
	if err != nil {
		return netip.Addr{}, err
	}
	port := at.Port()
	if port == "" {
		port = "443"
	}
	connection, err := net.Dial("udp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		return netip.Addr{}, err
	}
	defer connection.Close()
	address, err := netip.ParseAddrPort(connection.LocalAddr().String())
	return address.Addr().Unmap(), err
}

// ensureBastion makes a bastion for a public key, or lets the ranges into one that is there.
func (s *Session) ensureBastion(ctx context.Context, shoot *gardencorev1beta1.Shoot, name, publicKey string,
	ranges []string) (*operationsv1alpha1.Bastion, error) {
	bastion := &operationsv1alpha1.Bastion{}
	bastion.Namespace, bastion.Name = shoot.Namespace, name
	if name == "" {
		bastion.Name = "cli-" + strings.ToLower(rand.Text()[:8])
	}
	var ingress []operationsv1alpha1.BastionIngressPolicy
	for _, text := range ranges {
		ingress = append(ingress, operationsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: text}})
	}
	if name != "" {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(bastion), bastion)
		if err == nil {
			return bastion, s.reuse(ctx, bastion, shoot, publicKey, ingress)
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading bastion %s/%s: %w", bastion.Namespace, name, err)
		}
	}
	bastion.Spec = operationsv1alpha1.BastionSpec{SSHPublicKey: publicKey, Ingress: ingress}
	bastion.Spec.ShootRef.Name = shoot.Name
	err := s.client.Create(ctx, bastion)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("you may not make bastions in %s: ask an owner of the project to make you an admin of "+
			"it (%w)", shoot.Namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("making a bastion for shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return bastion, nil
}

// reuse lets the user, where they are now, into a bastion of theirs, and keeps it alive.
func (s *Session) reuse(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot,
	publicKey string, ingress []operationsv1alpha1.BastionIngressPolicy) error {
	if bastion.Spec.ShootRef.Name != shoot.Name || strings.TrimSpace(bastion.Spec.SSHPublicKey) != publicKey {
		return fmt.Errorf("bastion %s/%s is for another shoot, or for another key than that of --public-key-file",
			bastion.Namespace, bastion.Name)
	}
	before := bastion.DeepCopy()
	bastion.Spec.Ingress = ingress
	metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, gardencorev1beta1.GardenerOperation,
		gardencorev1beta1.GardenerOperationKeepalive)
	if err := s.client.Patch(ctx, bastion, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing bastion %s/%s: %w", bastion.Namespace, bastion.Name, err)
	}
	return nil
}

// awaitBastion waits until a bastion can be used as it is asked for, and tells what it waits for whenever that changes.
func (s *Session) awaitBastion(ctx context.Context, bastion *operationsv1alpha1.Bastion, timeout time.Duration,
	tell func(string, ...any)) error {
	waiting, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	key, told := client.ObjectKeyFromObject(bastion), ""
	for {
		err := s.client.Get(waiting, key, bastion)
		if isRefusal(err) {
			return fmt.Errorf("reading bastion %s: %w", key, err)
		}
		ready, state := false, ""
		if err != nil {
			state = "no connection to the garden, trying again: " + err.Error()
		} else {
			ready, state = stateOf(bastion)
		}
		if ready {
			return nil
		}
		if state != told && waiting.Err() == nil {
			told = state
			tell("Bastion %s: %s", bastion.Name, oneLine(state))
		}
		pause(waiting, bastionPoll)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting.Err() != nil:
			return fmt.Errorf("bastion %s cannot be used after %s: %s", key, timeout,
				orElse(told, "nobody has seen it"))
		}
	}
}

// stateOf tells whether a bastion can be used, and if not, what it waits for.
func stateOf(bastion *operationsv1alpha1.Bastion) (ready bool, state string) {
	condition := conditions.Get(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
	seen := bastion.Status.ObservedGeneration
	switch {
	case bastion.DeletionTimestamp != nil:
		return false, "it is being deleted"
	case condition == nil || seen == nil || *seen < bastion.Generation:
		return false, "waiting for the seed"
	case condition.Status == gardencorev1beta1.ConditionTrue && hostOf(bastion) != "":
		return true, ""
	}
	return false, condition.Message
}

// hostOf is the public address of a bastion.
func hostOf(bastion *operationsv1alpha1.Bastion) string {
	if bastion.Status.Ingress == nil {
		return ""
	}
	return orElse(bastion.Status.Ingress.IP, bastion.Status.Ingress.Hostname)
}

// keepAlive keeps a bastion alive until the context ends.
func (s *Session) keepAlive(ctx context.Context, bastion *operationsv1alpha1.Bastion, tell func(string, ...any)) {
	for {
		pause(ctx, keepaliveEvery)
		if ctx.Err() != nil {
			return
		}
		if err := s.heartbeat(ctx, bastion); err != nil && ctx.Err() == nil {
			tell("Bastion %s is not kept alive: %s", bastion.Name, oneLine(err.Error()))
		}
	}
}

func (s *Session) heartbeat(ctx context.Context, bastion *operationsv1alpha1.Bastion) error {
	kept := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: bastion.Namespace, Name: bastion.Name}}
	before := kept.DeepCopy()
	metav1.SetMetaDataAnnotation(&kept.ObjectMeta, gardencorev1beta1.GardenerOperation,
		gardencorev1beta1.GardenerOperationKeepalive)
	return s.client.Patch(ctx, kept, client.MergeFrom(before))
}

// deleteBastion deletes a bastion, also when the command was interrupted.
func (s *Session) deleteBastion(ctx context.Context, bastion *operationsv1alpha1.Bastion) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	err := s.client.Delete(ctx, bastion, client.Preconditions{UID: &bastion.UID})
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return errors.Join(err, fmt.Errorf("bastion %s/%s is left; delete it with `kubectl -n %s delete bastion %s`",
		bastion.Namespace, bastion.Name, bastion.Namespace, bastion.Name))
}
