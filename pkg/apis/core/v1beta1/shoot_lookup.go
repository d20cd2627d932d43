package v1beta1

// IsWorkerless tells whether a Shoot has no workers: only its API server is of use.
func IsWorkerless(shoot *Shoot) bool { return len(shoot.Spec.Provider.Workers) == 0 }

// FailureToleranceOf is the largest failure that the control plane of a Shoot is to outlast; empty if it may stop with
// one of its pods.
func FailureToleranceOf(spec *ShootSpec) FailureToleranceType {
	if spec.ControlPlane == nil || spec.ControlPlane.HighAvailability == nil {
		return ""
	}
	return spec.ControlPlane.HighAvailability.FailureTolerance.Type
}

// SSHAccessEnabled tells whether the machines of a Shoot can be reached by SSH. They can unless it is turned off.
func SSHAccessEnabled(spec *ShootSpec) bool {
	settings := spec.Provider.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}

// TechnicalID returns the name of a control plane's namespace in its seed. It is unambiguous, because neither name may
// contain "--".
func TechnicalID(project, shoot string) string { return TechnicalIDPrefix + project + "--" + shoot }

// IsUpdatedInPlace says whether the machines of a pool stay when they have to change.
func IsUpdatedInPlace(worker *Worker) bool {
	strategy := deref(worker.UpdateStrategy)
	return strategy == AutoInPlaceUpdate || strategy == ManualInPlaceUpdate
}
