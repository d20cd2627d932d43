package csrapprover

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// nodesRegisterWithin is how long a request is looked at again whose node or machine is not registered completely;
// kubelets ask for their certificate while they register.
const nodesRegisterWithin = 10 * time.Minute

// servingUsages are the usages a kubelet asks for; RSA keys add key encipherment.
var servingUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth,
}

// kubelets are those of a shoot, whose machines are in a namespace of the seed.
func kubelets(namespace string, machines, shoot client.Reader) requesters {
	known := &nodes{namespace: namespace, machines: machines, target: shoot}
	return requesters{
		who:      "kubelet",
		signer:   certificatesv1.KubeletServingSignerName,
		patience: nodesRegisterWithin,
		approval: "The kubelet's names and addresses are those of its node, which is a machine of this shoot.",
		check: func(csr *certificatesv1.CertificateSigningRequest) (question, error) {
			request, err := Parse(csr)
			return func(ctx context.Context) (string, error) { return known.unknown(ctx, request) }, err
		},
	}
}

// Request is a checked certificate signing request of a kubelet.
type Request struct {
	// NodeName is the node that asks.
	NodeName string
	// DNSNames and IPs are what the certificate will be valid for.
	DNSNames, IPs []string
}

// What a kubelet asks for is below these by far; what is above is held in memory for nobody.
const (
	maxRequestBytes = 16 << 10
	maxNames        = 64
)

// Parse checks everything that a request says about itself. The error says what is wrong; such a request is never
// approved.
func Parse(csr *certificatesv1.CertificateSigningRequest) (Request, error) {
	name, ok := strings.CutPrefix(csr.Spec.Username, nodeUserPrefix)
	if !ok || name == "" {
		return Request{}, fmt.Errorf("requester %q is not a node", csr.Spec.Username)
	}
	if !slices.Contains(csr.Spec.Groups, nodesGroup) {
		return Request{}, fmt.Errorf("requester %q is not in group %s", csr.Spec.Username, nodesGroup)
	}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(servingUsages, usage) {
			return Request{}, fmt.Errorf("usage %q is not one of a serving certificate", usage)
		}
	}
	if len(csr.Spec.Request) > maxRequestBytes {
		return Request{}, fmt.Errorf("spec.request has %d bytes, more than %d", len(csr.Spec.Request), maxRequestBytes)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return Request{}, errors.New("spec.request is not a PEM block of type CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Request{}, fmt.Errorf("spec.request: %w", err)
	}
	return check(parsed, csr.Spec.Username, name)
}

// check compares the certificate's subject with the requester.
func check(parsed *x509.CertificateRequest, username, nodeName string) (Request, error) {
	switch {
	case parsed.Subject.CommonName != username:
		return Request{}, fmt.Errorf("common name %q differs from the requester %q", parsed.Subject.CommonName,
			username)
	case !slices.Equal(parsed.Subject.Organization, []string{nodesGroup}):
		return Request{}, fmt.Errorf("organization must be exactly %s", nodesGroup)
	case len(parsed.EmailAddresses) > 0 || len(parsed.URIs) > 0:
		return Request{}, errors.New("e-mail and URI names are not allowed")
	case len(parsed.DNSNames)+len(parsed.IPAddresses) == 0:
		return Request{}, errors.New("no DNS name or IP address is asked for")
	case len(parsed.DNSNames)+len(parsed.IPAddresses) > maxNames:
		return Request{}, fmt.Errorf("more than %d DNS names and IP addresses are asked for", maxNames)
	}
	request := Request{NodeName: nodeName, DNSNames: parsed.DNSNames}
	for _, ip := range parsed.IPAddresses {
		request.IPs = append(request.IPs, ip.String())
	}
	return request, nil
}

// Missing returns the names and addresses of the request that the node does not have.
func (r Request) Missing(node *corev1.Node) []string {
	var names, ips []string
	for _, address := range node.Status.Addresses {
		switch address.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names = append(names, address.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			ips = append(ips, address.Address)
		}
	}
	var missing []string
	for _, name := range r.DNSNames {
		if !slices.Contains(names, name) {
			missing = append(missing, name)
		}
	}
	for _, ip := range r.IPs {
		if !slices.Contains(ips, ip) {
			missing = append(missing, ip)
		}
	}
	return missing
}
