package apiserverconfig

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
)

// strictPolicies decodes audit policies and refuses unknown fields, which kube-apiserver would only log.
var strictPolicies = serializer.NewCodecFactory(audit.Scheme, serializer.EnableStrict).UniversalDecoder()

// validateAuditPolicy accepts what kube-apiserver loads as it is meant.
func validateAuditPolicy(data []byte) error {
	if _, _, err := strictPolicies.Decode(data, nil, &auditinternal.Policy{}); err != nil {
		return inKey(KeyPolicy, fmt.Errorf("must be a Policy of audit.k8s.io/v1: %w", err))
	}
	loaded, err := policy.LoadPolicyFromBytes(data)
	if err != nil {
		return inKey(KeyPolicy, err)
	}
	if loaded == nil {
		return inKey(KeyPolicy, errors.New("is empty"))
	}
	return nil
}
