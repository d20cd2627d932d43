package v1beta1

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// acceptedAs tells what the server says about a new object.
func acceptedAs(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *Shoot:
		return ValidateNewShoot(o)
	case *Seed:
		return ValidateSeed(o)
	case *CloudProfile:
		return ValidateCloudProfile(o)
	case *NamespacedCloudProfile:
		return ValidateNamespacedCloudProfile(o)
	case *Project:
		return ValidateProject(o)
	case *Quota:
		return ValidateQuota(o)
	case *SecretBinding:
		return ValidateSecretBinding(o)
	case *BackupBucket:
		return ValidateBackupBucket(o)
	case *BackupEntry:
		return ValidateBackupEntry(o)
	case *ControllerRegistration:
		return ValidateControllerRegistration(o)
	case *ControllerDeployment:
		return ValidateControllerDeployment(o)
	case *ControllerInstallation:
		return ValidateControllerInstallation(o)
	case *ExposureClass:
		return ValidateExposureClass(o)
	case *InternalSecret:
		return ValidateInternalSecret(o)
	case *ShootState:
		return ValidateShootState(o)
	}
	return nil
}

// What the landscape and the examples hold of our kinds is accepted.
func TestExamplesAreAccepted(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "..", "landscape", "local")
	scheme, decoder := newScheme(t), newDecoder(t)
	for _, pattern := range []string{"garden", "examples"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range bytes.Split(data, []byte("\n---\n")) {
				object, _, err := decoder.Decode(document, nil, nil)
				if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) {
					continue // of another group
				}
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				scheme.Default(object)
				if errs := acceptedAs(object); len(errs) > 0 {
					t.Errorf("%s: %v", file, errs.ToAggregate())
				}
			}
		}
	}
}

// The seed that the gardenlet of the landscape registers is accepted.
func TestSeedOfLandscapeIsAccepted(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "landscape", "local", "gardenlet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var gardenlet struct {
		SeedConfig Seed `json:"seedConfig"`
	}
	if err := yaml.Unmarshal(data, &gardenlet); err != nil {
		t.Fatal(err)
	}
	seed := gardenlet.SeedConfig
	SetDefaultsSeed(&seed)
	expectError(t, ValidateSeed(&seed), "", "")
}
