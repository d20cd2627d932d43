package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dns,scope=Namespaced
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.spec.type`,description="Type of the extension"
// +kubebuilder:printcolumn:name="Domain Name",type=string,JSONPath=`.spec.name`,description="Name of the record"
// +kubebuilder:printcolumn:name="Record Type",type=string,JSONPath=`.spec.recordType`,description="A, AAAA, CNAME or TXT"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// DNSRecord is a record in DNS.
type DNSRecord struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec DNSRecordSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status DNSRecordStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// DNSRecordList is a list of DNSRecord objects.
type DNSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []DNSRecord `json:"items"`
}

// DNSRecordSpec is what record is wanted.
type DNSRecordSpec struct {
	// DefaultSpec holds the fields that all extension kinds share.
	DefaultSpec `json:",inline"`
	// Secret with the credentials.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Region of the DNS provider.
	// +optional
	Region *string `json:"region,omitempty"`
	// Hosted zone; found by the name when left out.
	// +optional
	Zone *string `json:"zone,omitempty"`
	// Full name of the record. Immutable.
	Name string `json:"name"`
	// Type of the record. Immutable.
	RecordType DNSRecordType `json:"recordType"`
	// Addresses, one name for CNAME, or texts.
	Values []string `json:"values"`
	// Time to live in seconds. Defaults to 120.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
}

// DNSRecordType is the type of a record.
type DNSRecordType string

const (
	// DNSRecordTypeA holds IPv4 addresses.
	DNSRecordTypeA DNSRecordType = "A"
	// DNSRecordTypeAAAA holds IPv6 addresses.
	DNSRecordTypeAAAA DNSRecordType = "AAAA"
	// DNSRecordTypeCNAME holds another name.
	DNSRecordTypeCNAME DNSRecordType = "CNAME"
	// DNSRecordTypeTXT holds texts.
	DNSRecordTypeTXT DNSRecordType = "TXT"
)

// DNSRecordStatus is what was last observed of a record.
type DNSRecordStatus struct {
	// DefaultStatus holds the fields that all extension kinds share.
	DefaultStatus `json:",inline"`
	// Hosted zone that was found.
	// +optional
	Zone *string `json:"zone,omitempty"`
}
