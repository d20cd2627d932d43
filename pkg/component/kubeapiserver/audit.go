package kubeapiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// DefaultAuditPolicy is for clusters whose owners have none. It notes who changed what others trust or are allowed, and
// who went into pods: never the content of an object, and nothing of what goes on all the time.
func DefaultAuditPolicy() *auditv1.Policy {
	changes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return &auditv1.Policy{
		TypeMeta:          metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages:        []auditv1.Stage{auditv1.StageRequestReceived},
		OmitManagedFields: true,
		Rules: []auditv1.PolicyRule{
			{Level: auditv1.LevelMetadata, Resources: []auditv1.GroupResources{
				{
					Resources: []string{
						"pods/attach", "pods/exec", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy",
					},
				},
			}},
			{Level: auditv1.LevelMetadata, Verbs: changes, Resources: []auditv1.GroupResources{
				{Resources: []string{"secrets"}},
				{Group: "rbac.authorization.k8s.io"},
				{Group: "admissionregistration.k8s.io"},
				{Group: "apiregistration.k8s.io"},
				{Group: "certificates.k8s.io", Resources: []string{"certificatesigningrequests/approval"}},
			}},
			{Level: auditv1.LevelNone},
		},
	}
}
