package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serviceURL finds out where a Service of the fleet is served. Nothing runs in a fleet, so its cluster IP leads
// nowhere: the Service must have an external name or address.
func serviceURL(ctx context.Context, reader client.Reader,
	reference *admissionregistrationv1.ServiceReference) (*url.URL, error) {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
	if err := reader.Get(ctx, key, service); err != nil {
		return nil, fmt.Errorf("clientConfig.service: %w", err)
	}
	host := externalHost(service)
	if host == "" {
		return nil, fmt.Errorf("clientConfig.service: Service %s of the fleet has no external name or address, and "+
			"no pods are behind it; "+
			"give a url, or make it one of type ExternalName", key)
	}
	port := int32(443)
	if reference.Port != nil {
		port = *reference.Port
	}
	result := &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	if reference.Path != nil {
		result.Path = "/" + strings.TrimPrefix(*reference.Path, "/")
	}
	return result, nil
}

func externalHost(service *corev1.Service) string {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return service.Spec.ExternalName
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if host := cmp.Or(ingress.Hostname, ingress.IP); host != "" {
			return host
		}
	}
	if len(service.Spec.ExternalIPs) > 0 {
		return service.Spec.ExternalIPs[0]
	}
	return ""
}
