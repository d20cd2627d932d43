package bootstrap

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// seedRestrictionName is the name of the policy and its binding.
const seedRestrictionName = "seed-restriction.gardener.cloud"

// seedRestriction looks into what gardenlets, extensions of seeds and those who ask for a gardenlet's first certificate
// write of Kubernetes' kinds, where authorizers see names at most. An object is called as the seed may call it, is of a
// type that opens nothing, and has only labels and owners that are listed here, no annotations and no finalizers: these
// make others act. For the kinds of the garden the admission plugin SeedRestriction does the same.
func seedRestriction() *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: seedRestrictionName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					writtenIn(corev1.GroupName, "namespaces", "secrets", "configmaps", "serviceaccounts", "events"),
					writtenIn(coordinationv1.GroupName, "leases"),
					writtenIn(eventsv1.GroupName, "events"),
					writtenIn(certificatesv1.GroupName, "certificatesigningrequests"),
				},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "seeds", Expression: isOfSeed()}},
			Variables:       restrictionVariables(),
			Validations: []admissionregistrationv1.Validation{
				ownName(), boundToken(), allowedType(), allowedTokenData(), allowedLabels(), allowedAnnotations(),
				allowedFinalizers(), allowedOwners(),
				ownEvents(), allowedSigner(),
			},
		},
	}
}

// isOfSeed selects gardenlets, extensions of seeds, and who asks for a gardenlet's first certificate.
func isOfSeed() string {
	var prefixes []string
	for _, prefix := range []string{
		gardencorev1beta1.SeedUserNamePrefix, "system:serviceaccount:" + gardencorev1beta1.SeedNamespaceNamePrefix,
		"system:bootstrap:", "system:serviceaccount:" + gardencorev1beta1.GardenNamespace + ":" +
			seedmanagementv1alpha1.BootstrapServiceAccountName(""),
	} {
		prefixes = append(prefixes, fmt.Sprintf("request.userInfo.username.startsWith('%s')", prefix))
	}
	return strings.Join(prefixes, " || ")
}

// restrictionVariables are what several validations look at. What an object does not have is empty.
func restrictionVariables() []admissionregistrationv1.Variable {
	variables := []admissionregistrationv1.Variable{
		{Name: "where", Expression: "has(request.namespace) ? request.namespace : ''"},
		{Name: "name", Expression: "object.metadata.?name.orValue('')"},
		{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
		{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
		{Name: "finalizers", Expression: "object.metadata.?finalizers.orValue([])"},
		{Name: "owners", Expression: "object.metadata.?ownerReferences.orValue([])"},
		{Name: "oldLabels", Expression: "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})"},
		{Name: "oldAnnotations", Expression: "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})"},
		{Name: "oldFinalizers", Expression: "oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([])"},
		{Name: "oldOwners", Expression: "oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([])"},
		{
			Name: "isToken", Expression: fmt.Sprintf("request.resource.resource == 'secrets' && variables.where == "+
				"'%s'", seedmanagementv1alpha1.BootstrapTokenNamespace),
		},
	}
	return append(variables, knownLabels(), eventResources())
}

// knownLabels are the labels that an object may have, with their values: those of a shoot's objects follow from their
// names, <shoot>.<role>.
func knownLabels() admissionregistrationv1.Variable {
	const none = "{}"
	ofShoot := fmt.Sprintf("{'%s': dyn(variables.name.split('.')[0]), '%s': dyn(variables.name.split('.')[1])}",
		gardencorev1beta1.LabelShootName, gardencorev1beta1.GardenRole)
	isOfShoot :=
		fmt.Sprintf("request.resource.resource in ['secrets', 'configmaps'] && variables.name.contains('.') && "+
			"!variables.name.startsWith('%s') && !variables.where.startsWith('%s')",
			gardencorev1beta1.GeneratedBackupBucketSecretPrefix, gardencorev1beta1.SeedNamespaceNamePrefix)
	ofToken := fmt.Sprintf("'%[1]s' in variables.labels ? {'%[1]s': dyn(variables.labels['%[1]s'])} : %[2]s",
		seedmanagementv1alpha1.BootstrapSeedLabel, none)
	ofNamespace := fmt.Sprintf("{'%s': dyn(variables.name), '%s': dyn('%s')}", corev1.LabelMetadataName,
		gardencorev1beta1.GardenRole, gardencorev1beta1.GardenRoleSeed)
	return admissionregistrationv1.Variable{Name: "knownLabels", Expression: fmt.Sprintf(
		"request.resource.resource == 'namespaces' ? %s : variables.isToken ? (%s) : %s ? %s : %s", ofNamespace,
		ofToken, isOfShoot, ofShoot, none)}
}

// eventResources are the kinds of objects that a seed's events may be about.
func eventResources() admissionregistrationv1.Variable {
	var entries []string
	for _, known := range [][3]string{
		{gardencorev1beta1.GroupName, "Shoot", "shoots"}, {gardencorev1beta1.GroupName, "Seed", "seeds"},
		{gardencorev1beta1.GroupName, "BackupBucket", "backupbuckets"},
		{gardencorev1beta1.GroupName, "BackupEntry", "backupentries"},
		{gardencorev1beta1.GroupName, "ControllerInstallation", "controllerinstallations"},
		{operationsv1alpha1.GroupName, "Bastion", "bastions"},
		{seedmanagementv1alpha1.GroupName, "ManagedSeed", "managedseeds"},
	} {
		entries = append(entries, fmt.Sprintf("'%s/%s': '%s'", known[0], known[1], known[2]))
	}
	return admissionregistrationv1.Variable{Name: "eventResources", Expression: "{" + strings.Join(entries, ", ") + "}"}
}

// ownName asks the authorizers again, now with the name: a request to create does not tell it to them.
func ownName() admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: "request.operation != 'CREATE' || request.resource.resource in ['certificatesigningrequests', " +
			"'events'] || " +
			"authorizer.group(request.resource.group).resource(request.resource.resource).namespace(variables.where).name(variables.name).check('create').allowed()",
		MessageExpression: "'seeds may not create ' + request.resource.resource + ' named ' + variables.name + ' " +
			"here: it does not belong to the seed'",
		Reason: new(metav1.StatusReasonForbidden),
	}
}

func forbidden(expression, message string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: expression, Message: message, Reason: new(metav1.StatusReasonForbidden),
	}
}

// boundToken has the bootstrap tokens that gardenlets make for managed seeds name the managed seed: the certificate
// controller grants them its certificate only.
func boundToken() admissionregistrationv1.Validation {
	label := seedmanagementv1alpha1.BootstrapSeedLabel
	return forbidden(
		fmt.Sprintf("!variables.isToken || ('%s' in variables.labels && "+
			"authorizer.group('%s').resource('managedseeds').namespace('%s').name(variables.labels['%s']).check('update').allowed())",
			label, seedmanagementv1alpha1.GroupName, gardencorev1beta1.GardenNamespace, label),
		fmt.Sprintf("bootstrap tokens made by seeds need the label %s with the name of a managed seed on one of "+
			"their shoots", label))
}

// allowedType keeps seeds from Secrets that controllers and authenticators act upon, such as the token of a service
// account.
func allowedType() admissionregistrationv1.Validation {
	return forbidden(
		fmt.Sprintf("request.resource.resource != 'secrets' || request.operation != 'CREATE' || "+
			"object.?type.orValue('%[1]s') == (variables.isToken ? '%[2]s' : '%[1]s')",
			corev1.SecretTypeOpaque, corev1.SecretTypeBootstrapToken),
		fmt.Sprintf("type: Secrets made by seeds are of type %s, bootstrap tokens of type %s", corev1.SecretTypeOpaque,
			corev1.SecretTypeBootstrapToken))
}

// allowedTokenData: a bootstrap token made by a seed is for one purpose, brings no groups, and ends. "dHJ1ZQ==" is
// "true".
func allowedTokenData() admissionregistrationv1.Validation {
	return forbidden("!variables.isToken || (object.?data.orValue({}).all(key, key in "+
		"['description', 'expiration', 'token-id', 'token-secret', 'usage-bootstrap-authentication']) && "+
		"'expiration' in object.?data.orValue({}) && "+
		"object.data['usage-bootstrap-authentication'] == 'dHJ1ZQ==')",
		"data: bootstrap tokens made by seeds have description, expiration, token-id, token-secret and "+
			"usage-bootstrap-authentication: no groups, no other usage")
}

func allowedLabels() admissionregistrationv1.Validation {
	return forbidden("variables.labels.all(key, (key in variables.oldLabels && variables.oldLabels[key] == "+
		"variables.labels[key]) || "+
		"(key in variables.knownLabels && variables.knownLabels[key] == variables.labels[key]))",
		fmt.Sprintf("metadata.labels: seeds set %s and %s as the object's name says, and no other label",
			gardencorev1beta1.GardenRole, gardencorev1beta1.LabelShootName))
}

func allowedAnnotations() admissionregistrationv1.Validation {
	return forbidden("variables.annotations.all(key, key in variables.oldAnnotations && "+
		"variables.oldAnnotations[key] == variables.annotations[key])",
		"metadata.annotations: seeds set none")
}

func allowedFinalizers() admissionregistrationv1.Validation {
	return forbidden("variables.finalizers == variables.oldFinalizers",
		"metadata.finalizers: seeds add none and remove none")
}

// allowedOwners: only the Lease of a seed has an owner, the Seed, and what tells of the operations on a shoot has one,
// that Shoot, whose deletion does not wait for it.
func allowedOwners() admissionregistrationv1.Validation {
	ownedBy := func(kind, name, also string) string {
		return fmt.Sprintf("variables.owners.all(owner, owner.apiVersion == '%s' && owner.kind == '%s' && "+
			"owner.name == %s%s)", gardencorev1beta1.SchemeGroupVersion, kind, name, also)
	}
	return forbidden(
		fmt.Sprintf("variables.owners == variables.oldOwners || (request.resource.resource == 'leases' && "+
			"variables.where == '%s' && %s) || (request.resource.resource == 'configmaps' && "+
			"variables.name.endsWith('.%s') && %s)", gardencorev1beta1.GardenerSeedLeaseNamespace,
			ownedBy("Seed", "variables.name", ""), gardencorev1beta1.ShootProjectConfigMapSuffixOperation,
			ownedBy("Shoot", "variables.name.split('.')[0]", " && !owner.?blockOwnerDeletion.orValue(false)")),
		"metadata.ownerReferences: what seeds write is owned by nobody, but their Lease by the Seed, and what tells "+
			"of the operation on a Shoot by the Shoot, without blockOwnerDeletion")
}

// ownEvents: events are about objects that belong to the seed. Everybody may read Seeds, so the right to change it is
// asked for.
func ownEvents() admissionregistrationv1.Validation {
	about := func(object string) string {
		return fmt.Sprintf("[request.resource.group == '' ? %s.involvedObject : %s.regarding].all(about, "+
			"[about.?apiVersion.orValue('').split('/')[0]].all(group, group + '/' + about.?kind.orValue('') in "+
			"variables.eventResources && "+
			"authorizer.group(group).resource(variables.eventResources[group + '/' + "+
			"about.kind]).namespace(about.?namespace.orValue('')).name(about.?name.orValue(''))"+
			".check(about.kind == 'Seed' ? 'update' : 'get').allowed()))", object, object)
	}
	return forbidden("request.resource.resource != 'events' || ("+about("object")+" && (oldObject == null || "+
		about("oldObject")+"))",
		"events of seeds are about objects of the garden that belong to the seed")
}

// allowedSigner: seeds ask for client certificates of the garden only. Whether one is granted, the certificate
// controller decides.
func allowedSigner() admissionregistrationv1.Validation {
	return forbidden(fmt.Sprintf("request.resource.resource != 'certificatesigningrequests' || "+
		"object.spec.signerName == '%s'", certificatesv1.KubeAPIServerClientSignerName),
		"spec.signerName: seeds ask "+certificatesv1.KubeAPIServerClientSignerName+
			" for certificates, and no other signer")
}

func writtenIn(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
			},
		},
	}
}

// bringPolicyTo takes over what a policy says, and leaves what the API server has defaulted.
func bringPolicyTo(present, wanted *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	present.MatchConditions, present.Variables, present.Validations = wanted.MatchConditions, wanted.Variables,
		wanted.Validations
	present.ParamKind = wanted.ParamKind
	if present.MatchConstraints == nil ||
		len(present.MatchConstraints.ResourceRules) != len(wanted.MatchConstraints.ResourceRules) {
		present.MatchConstraints = wanted.MatchConstraints
		return
	}
	if selector := wanted.MatchConstraints.ObjectSelector; selector != nil {
		present.MatchConstraints.ObjectSelector = selector
	}
	for i := range wanted.MatchConstraints.ResourceRules {
		rule, asWanted := &present.MatchConstraints.ResourceRules[i], wanted.MatchConstraints.ResourceRules[i]
		rule.APIGroups, rule.Resources, rule.Operations = asWanted.APIGroups, asWanted.Resources, asWanted.Operations
	}
}

// denying binds a policy to the whole garden.
func denying(policy string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{
				admissionregistrationv1.Deny,
			},
		},
	}
}
