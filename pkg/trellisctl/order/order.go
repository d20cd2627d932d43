// Package order makes a Shoot from what people answer and what a CloudProfile offers. It asks nobody and reads nothing:
// it tells which questions are open, and takes their answers.
package order

import (
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Answers are what is wanted of a new Shoot. What is empty is open, or left to the garden.
type Answers struct {
	Namespace, Name string
	CloudProfile    gardencorev1beta1.CloudProfileReference
	Region          string
	// Version of Kubernetes, or the beginning of one; empty is the newest that is supported.
	Version  string
	Provider string
	Pools    []Pool
	// Workerless: there are to be no pools.
	Workerless bool
	// Purpose, CredentialsBinding, SecretBinding and Networking are the fields of these names.
	Purpose, CredentialsBinding, SecretBinding, Networking string
	// HighAvailability is node, zone, or empty.
	HighAvailability string
	Schedules        []gardencorev1beta1.HibernationSchedule
	Window           *gardencorev1beta1.MaintenanceTimeWindow
}

// Offer is what there is to choose from.
type Offer struct {
	Profile *gardencorev1beta1.CloudProfileSpec
	// CredentialsBindings and SecretBindings are those of the project for the provider of the profile.
	CredentialsBindings, SecretBindings []string
	// Networking are the types that are known; the garden may have others.
	Networking []string
}

// Question is what has to be answered before there can be a Shoot.
type Question struct {
	// Path is the field of the Shoot, Flag what answers the question on a command line.
	Path *field.Path
	Flag string
	// Text is what people are asked.
	Text string
	// Choices are the answers that are possible; none is any text.
	Choices []string
	// Several: more than one choice may be named, separated by commas.
	Several bool
	// Answer takes one, or refuses it.
	Answer func(answer string) error
}

// Open takes what has one choice only, and returns the questions that have several. An answer may bring up others.
func Open(a *Answers, offer Offer) []Question {
	o := &ordering{answers: a, offer: offer}
	o.provider()
	o.region()
	o.pools()
	if len(a.Pools) > 0 {
		o.credentials()
		o.networking()
	}
	return o.questions
}

// ordering collects questions.
type ordering struct {
	answers   *Answers
	offer     Offer
	questions []Question
}

var spec = field.NewPath("spec")

func (o *ordering) provider() {
	if o.answers.Provider == "" {
		o.answers.Provider = o.offer.Profile.Type
	}
}

// choose takes the only choice for a value that is open, and asks when there are several.
func (o *ordering) choose(value *string, choices []string, question Question) {
	switch {
	case *value != "":
	case len(choices) == 1:
		*value = choices[0]
	default:
		question.Choices = choices
		question.Answer = func(answer string) error {
			*value = answer
			return nil
		}
		o.questions = append(o.questions, question)
	}
}

func (o *ordering) region() {
	names := make([]string, len(o.offer.Profile.Regions))
	for i, region := range o.offer.Profile.Regions {
		names[i] = region.Name
	}
	o.choose(&o.answers.Region, names, Question{Path: spec.Child("region"), Flag: "--region", Text: "In which region"})
}

const (
	// noMachines answers the question for a machine type: the Shoot is workerless.
	noMachines = "none"
	// firstPool is the name of a pool whose machine type was asked for.
	firstPool = "worker"
)

func (o *ordering) pools() {
	path := spec.Child("provider", "workers")
	if len(o.answers.Pools) == 0 && !o.answers.Workerless {
		o.questions = append(o.questions, Question{
			Path: path, Flag: "--workers NAME:TYPE:MIN-MAX or --workerless",
			Text:    "Which machines (" + noMachines + " is a cluster without any)",
			Choices: append(o.machineTypes(), noMachines), Answer: o.firstPool,
		})
		return
	}
	for i := range o.answers.Pools {
		o.pool(&o.answers.Pools[i], path.Index(i))
	}
}

func (o *ordering) firstPool(machineType string) error {
	if machineType == noMachines {
		o.answers.Workerless = true
		return nil
	}
	o.answers.Pools = []Pool{{Name: firstPool, Type: machineType, open: true}}
	return nil
}

func (o *ordering) pool(pool *Pool, path *field.Path) {
	if pool.open {
		o.questions = append(o.questions, Question{
			Path: path.Child("maximum"), Flag: "--workers",
			Text: "How many machines of pool " + pool.Name + ", as MIN-MAX, such as 1-3",
			Answer: func(answer string) (err error) {
				pool.Minimum, pool.Maximum, err = parseSize(answer)
				pool.open = err != nil
				return err
			},
		})
	}
	zones := o.zones(pool.Type)
	switch {
	case len(pool.Zones) > 0:
	case len(zones) == 1:
		pool.Zones = zones
	case len(zones) > 1:
		o.questions = append(o.questions, Question{
			Path: path.Child("zones"), Flag: "--workers " + pool.String() + ":ZONE,…",
			Text: "In which zones are machines of pool " + pool.Name, Choices: zones, Several: true,
			Answer: func(answer string) error {
				pool.Zones = strings.Split(answer, ",")
				return nil
			},
		})
	}
}

// machineTypes are those that new pools may have.
func (o *ordering) machineTypes() []string {
	var types []string
	for _, machine := range o.offer.Profile.MachineTypes {
		if machine.Usable == nil || *machine.Usable {
			types = append(types, machine.Name)
		}
	}
	return types
}

// zones are those of the region that have machines of a type.
func (o *ordering) zones(machineType string) []string {
	var zones []string
	for _, region := range o.offer.Profile.Regions {
		if region.Name != o.answers.Region {
			continue
		}
		for _, zone := range region.Zones {
			if !slices.Contains(zone.UnavailableMachineTypes, machineType) {
				zones = append(zones, zone.Name)
			}
		}
	}
	return zones
}

// credentials takes the only binding; those of Secrets, which are older, only where there is no other.
func (o *ordering) credentials() {
	if o.answers.SecretBinding != "" {
		return
	}
	value, choices := &o.answers.CredentialsBinding, o.offer.CredentialsBindings
	question := Question{
		Path: spec.Child("credentialsBindingName"), Flag: "--credentials-binding",
		Text: "With the credentials of which CredentialsBinding",
	}
	if *value == "" && len(choices) == 0 && len(o.offer.SecretBindings) > 0 {
		value, choices = &o.answers.SecretBinding, o.offer.SecretBindings
		question.Path, question.Flag = spec.Child("secretBindingName"), "--secret-binding"
		question.Text = "With the credentials of which SecretBinding"
	}
	o.choose(value, choices, question)
}

func (o *ordering) networking() {
	o.choose(&o.answers.Networking, o.offer.Networking, Question{
		Path: spec.Child("networking", "type"), Flag: "--networking-type", Text: "With which network plugin",
	})
}

// Shoot makes a Shoot of answers without open questions. Versions are completed as the garden does it at the given
// time; it reports what the profile does not offer, and leaves all other checks to the garden.
func Shoot(a Answers, profile *gardencorev1beta1.CloudProfileSpec, now time.Time) (*gardencorev1beta1.Shoot,
	field.ErrorList) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	s := &shoot.Spec
	s.CloudProfile = new(a.CloudProfile)
	s.Region, s.Provider.Type, s.Kubernetes.Version = a.Region, a.Provider, a.Version
	if a.Purpose != "" {
		s.Purpose = new(gardencorev1beta1.ShootPurpose(a.Purpose))
	}
	if a.HighAvailability != "" {
		tolerance := gardencorev1beta1.FailureTolerance{
			Type: gardencorev1beta1.FailureToleranceType(a.HighAvailability),
		}
		s.ControlPlane = &gardencorev1beta1.ControlPlane{
			HighAvailability: &gardencorev1beta1.HighAvailability{FailureTolerance: tolerance},
		}
	}
	if len(a.Schedules) > 0 {
		s.Hibernation = &gardencorev1beta1.Hibernation{Schedules: a.Schedules}
	}
	if a.Window != nil {
		s.Maintenance = &gardencorev1beta1.Maintenance{TimeWindow: a.Window}
	}
	if len(a.Pools) > 0 {
		addPools(s, a)
	}
	errs := gardencorev1beta1.DefaultShootFromCloudProfile(shoot, nil, profile, now)
	if len(errs) > 0 {
		return nil, errs
	}
	if errs := gardencorev1beta1.ValidateShootAgainstCloudProfile(shoot, nil, profile, now); len(errs) > 0 {
		return nil, errs
	}
	return shoot, nil
}

// addPools adds what only Shoots with workers have.
func addPools(s *gardencorev1beta1.ShootSpec, a Answers) {
	if a.CredentialsBinding != "" {
		s.CredentialsBindingName = &a.CredentialsBinding
	}
	if a.SecretBinding != "" {
		s.SecretBindingName = &a.SecretBinding
	}
	if a.Networking != "" {
		s.Networking = &gardencorev1beta1.Networking{Type: &a.Networking}
	}
	for _, pool := range a.Pools {
		s.Provider.Workers = append(s.Provider.Workers, gardencorev1beta1.Worker{
			Name: pool.Name, Machine: gardencorev1beta1.Machine{Type: pool.Type}, Minimum: pool.Minimum,
			Maximum: pool.Maximum, Zones: pool.Zones,
		})
	}
}

// Contradictions tells which answers do not go together, by flags.
func Contradictions(a Answers) error {
	switch {
	case a.Workerless && len(a.Pools) > 0:
		return errors.New("--workerless and --workers contradict each other: leave out one of them")
	case a.Workerless && (a.CredentialsBinding != "" || a.SecretBinding != "" || a.Networking != ""):
		return errors.New("--workerless needs neither credentials nor a network plugin: leave out " +
			"--credentials-binding, --secret-binding and --networking-type")
	case a.CredentialsBinding != "" && a.SecretBinding != "":
		return errors.New("--credentials-binding and --secret-binding contradict each other: leave out one of them")
	}
	return nil
}
