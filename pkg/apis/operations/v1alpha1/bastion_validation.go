package v1alpha1

import (
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ValidateBastion checks a Bastion on its own.
func ValidateBastion(bastion *Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel,
		field.NewPath("metadata"))
	spec, path := &bastion.Spec, field.NewPath("spec")
	if spec.ShootRef.Name == "" {
		errs = append(errs, field.Required(path.Child("shootRef", "name"),
			"name the Shoot whose nodes are to be reached"))
	}
	errs = append(errs, validatePublicKey(spec.SSHPublicKey, path.Child("sshPublicKey"))...)
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Required(path.Child("ingress"),
			"say from where the bastion may be reached, such as {ipBlock: {cidr: 203.0.113.7/32}}"))
	}
	for i := range spec.Ingress {
		errs = append(errs, validateIngress(&spec.Ingress[i], path.Child("ingress").Index(i).Child("ipBlock"))...)
	}
	return errs
}

func validatePublicKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, "give the public key of the user, as in authorized_keys")}
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil {
		return field.ErrorList{
			field.Invalid(path, key, "must be a public key as in authorized_keys, such as ssh-ed25519 AAAA…"),
		}
	}
	return nil
}

func validateIngress(policy *BastionIngressPolicy, path *field.Path) field.ErrorList {
	errs := validateCIDR(policy.IPBlock.CIDR, path.Child("cidr"))
	for i, except := range policy.IPBlock.Except {
		errs = append(errs, validateCIDR(except, path.Child("except").Index(i))...)
	}
	return errs
}

func validateCIDR(cidr string, path *field.Path) field.ErrorList {
	if cidr == "" {
		return field.ErrorList{field.Required(path, "give a range in CIDR notation, such as 203.0.113.7/32")}
	}
	if _, err := netip.ParsePrefix(cidr); err != nil {
		return field.ErrorList{field.Invalid(path, cidr, "must be a range in CIDR notation, such as 203.0.113.7/32")}
	}
	return nil
}

// ValidateBastionUpdate checks a change of a Bastion.
func ValidateBastionUpdate(bastion, old *Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&bastion.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	createdBy := field.NewPath("metadata", "annotations").Key(gardencorev1beta1.GardenerCreatedBy)
	errs = append(errs, validateImmutable(bastion.Annotations[gardencorev1beta1.GardenerCreatedBy],
		old.Annotations[gardencorev1beta1.GardenerCreatedBy], createdBy)...)
	path := field.NewPath("spec")
	errs = append(errs, validateImmutable(bastion.Spec.ShootRef.Name, old.Spec.ShootRef.Name,
		path.Child("shootRef", "name"))...)
	errs = append(errs, validateImmutable(bastion.Spec.SSHPublicKey, old.Spec.SSHPublicKey,
		path.Child("sshPublicKey"))...)
	return append(errs, ValidateBastion(bastion)...)
}

// ValidateBastionStatusUpdate checks a change of the status of a Bastion.
func ValidateBastionStatusUpdate(bastion *Bastion, now time.Time) field.ErrorList {
	heartbeat := bastion.Status.LastHeartbeatTimestamp
	if heartbeat == nil || !heartbeat.After(now) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(field.NewPath("status", "lastHeartbeatTimestamp"), heartbeat.UTC().Format(time.RFC3339),
			"must not be in the future"),
	}
}

func validateImmutable(value, old string, path *field.Path) field.ErrorList {
	if value == old {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "cannot be changed; it was "+old)}
}
