package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/trellisctl/order"
)

// creation is one call of create shoot.
type creation struct {
	waiting
	answers          order.Answers
	profile, window  string
	pools, schedules []string
	dryRun           string
	output           formatFlag
}

func (c *cli) createShootCommand() *cobra.Command {
	var o creation
	command := &cobra.Command{
		Use:   "shoot NAME",
		Short: "Create a shoot",
		Long: `Creates a shoot of what the flags say. What is left out is taken from the cloud profile where that has one choice. Where it has
several, a terminal is asked, and elsewhere the choices are told. -o yaml prints the shoot and creates nothing.`,
		Example: `  trellisctl create shoot one --project demo --workers pool:small:1-3 --wait
  trellisctl create shoot fleet --project demo --workerless
  trellisctl create shoot one --project demo --workers pool:small:1 -o yaml`,
		Args: exactlyOne("shoot"),
		RunE: func(command *cobra.Command, arguments []string) error {
			o.answers.Name = arguments[0]
			if err := checkShootName(arguments[0]); err != nil {
				return withHelp(command, err)
			}
			if err := o.parse(); err != nil {
				return err
			}
			session, err := c.shootSession(arguments)
			if err != nil {
				return err
			}
			return session.create(command, &o)
		},
	}
	o.flags(command)
	return command
}

func (o *creation) flags(command *cobra.Command) {
	flags, a := command.Flags(), &o.answers
	flags.StringVar(&o.profile, "cloud-profile", "", "cloud profile, or NamespacedCloudProfile/NAME")
	flags.StringVar(&a.Region, "region", "", "region of the cloud profile")
	flags.StringVar(&a.Version, "kubernetes-version", "",
		"such as 1.36.3, or 1.36 for its newest (default: the newest)")
	flags.StringVar(&a.Provider, "provider", "", "type of the infrastructure (default: that of the cloud profile)")
	flags.StringArrayVar(&o.pools, "workers", nil,
		"a pool of machines as NAME:TYPE:MIN-MAX[:ZONE,…]; repeat it for more pools")
	flags.BoolVar(&a.Workerless, "workerless", false, "no machines: only the API of the cluster is of use")
	flags.StringVar(&a.Purpose, "purpose", "", "evaluation (default), testing, development or production")
	flags.StringVar(&a.CredentialsBinding, "credentials-binding", "", "CredentialsBinding for the infrastructure")
	flags.StringVar(&a.SecretBinding, "secret-binding", "", "SecretBinding for the infrastructure, before 1.34")
	flags.StringVar(&a.HighAvailability, "high-availability", "", "what the control plane outlasts: node or zone")
	flags.StringVar(&a.Networking, "networking-type", "", "type of the network plugin (default: that of the garden)")
	flags.StringArrayVar(&o.schedules, "hibernation-schedule", nil,
		"when to sleep and wake up, as START;END;TIMEZONE with cron expressions; repeat it for more")
	flags.StringVar(&o.window, "maintenance-window", "", "such as 220000+0100-230000+0100")
	o.output.flagFor(command, "yaml: print the shoot and create nothing", formatYAML)
	flags.StringVar(&o.dryRun, "dry-run", "", "server: have the garden check the shoot and create nothing")
	o.waiting.flags(command)
}

// parse reads flags that have a form of their own.
func (o *creation) parse() error {
	if o.dryRun != "" && o.dryRun != "server" {
		return fmt.Errorf("--dry-run %s: must be server, or left out", o.dryRun)
	}
	for _, text := range o.pools {
		pool, err := order.ParsePool(text)
		if err != nil {
			return fmt.Errorf("--workers: %w", err)
		}
		o.answers.Pools = append(o.answers.Pools, pool)
	}
	for _, text := range o.schedules {
		schedule, err := order.ParseSchedule(text)
		if err != nil {
			return fmt.Errorf("--hibernation-schedule: %w", err)
		}
		o.answers.Schedules = append(o.answers.Schedules, schedule)
	}
	if o.window != "" {
		window, err := order.ParseWindow(o.window)
		if err != nil {
			return fmt.Errorf("--maintenance-window: %w", err)
		}
		o.answers.Window = window
	}
	return order.Contradictions(o.answers)
}

// create orders a shoot, or shows what would be ordered.
func (s *Session) create(command *cobra.Command, o *creation) error {
	shoot, err := s.ordered(command, o)
	if err != nil {
		return err
	}
	switch {
	case o.dryRun != "":
		err = s.client.Create(command.Context(), shoot, client.DryRunAll)
	case !o.output.isDocument():
		err = s.client.Create(command.Context(), shoot)
	}
	if apierrors.IsAlreadyExists(err) {
		return s.takeUpCreation(command, o, shoot)
	}
	if err != nil {
		return s.explainCreation(err, shoot)
	}
	if o.output.isDocument() {
		text, err := registration.YAML(s.client.Scheme(), []client.Object{shoot})
		if err != nil {
			return err
		}
		_, err = command.OutOrStdout().Write(text)
		return err
	}
	if o.dryRun != "" {
		fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s would be created\n", shoot.Namespace, shoot.Name)
		return nil
	}
	fmt.Fprintf(command.OutOrStdout(), "Shoot %s/%s is created\n", shoot.Namespace, shoot.Name)
	return s.await(command, o.waiting, s.goalOf(shoot))
}

// ordered is the Shoot that the flags, the cloud profile and answers make.
func (s *Session) ordered(command *cobra.Command, o *creation) (*gardencorev1beta1.Shoot, error) {
	ctx, a := command.Context(), &o.answers
	if s.Target.Project == "" {
		return nil, errors.New("no project is targeted: add --project NAME; `trellisctl ls projects` lists them")
	}
	namespace, err := s.projectNamespace(ctx, s.Target.Project)
	if err != nil {
		return nil, err
	}
	a.Namespace = namespace
	asker := newAsker(command)
	if a.CloudProfile, err = s.chooseProfile(ctx, asker, namespace, o.profile); err != nil {
		return nil, err
	}
	profile, err := s.profile(ctx, namespace, a.CloudProfile)
	if err != nil {
		return nil, err
	}
	offer, err := s.offer(ctx, namespace, profile)
	if err != nil {
		return nil, err
	}
	if err := asker.all(func() []order.Question { return order.Open(a, offer) }); err != nil {
		return nil, err
	}
	shoot, errs := order.Shoot(*a, profile, time.Now())
	if len(errs) > 0 {
		return nil, fmt.Errorf("shoot %s/%s: %w", namespace, a.Name, errs.ToAggregate())
	}
	return shoot, nil
}

// chooseProfile is the cloud profile that is named, the only one, or one that is asked for.
func (s *Session) chooseProfile(ctx context.Context, asker *asker, namespace,
	named string) (gardencorev1beta1.CloudProfileReference, error) {
	none := gardencorev1beta1.CloudProfileReference{}
	if named != "" {
		return order.ParseProfile(named), nil
	}
	profiles, own := &gardencorev1beta1.CloudProfileList{}, &gardencorev1beta1.NamespacedCloudProfileList{}
	if err := s.client.List(ctx, profiles); err != nil {
		return none, fmt.Errorf("listing cloud profiles: %w; name one by --cloud-profile", err)
	}
	if err := s.client.List(ctx, own, client.InNamespace(namespace)); err != nil {
		return none, fmt.Errorf("listing namespaced cloud profiles: %w; name one by --cloud-profile", err)
	}
	var choices []string
	for i := range profiles.Items {
		choices = append(choices, profiles.Items[i].Name)
	}
	for i := range own.Items {
		choices = append(choices,
			gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile+"/"+own.Items[i].Name)
	}
	if len(choices) == 1 {
		return order.ParseProfile(choices[0]), nil
	}
	if len(choices) == 0 {
		return none, errors.New("the garden has no cloud profile: ask an operator for one")
	}
	chosen := ""
	question := cloudProfileQuestion(choices, &chosen)
	err := asker.all(func() []order.Question {
		if chosen != "" {
			return nil
		}
		return []order.Question{question}
	})
	return order.ParseProfile(chosen), err
}

// offer is what a project has to choose from, beside its cloud profile.
func (s *Session) offer(ctx context.Context, namespace string,
	profile *gardencorev1beta1.CloudProfileSpec) (order.Offer, error) {
	offer := order.Offer{Profile: profile}
	bindings, old := &securityv1alpha1.CredentialsBindingList{}, &gardencorev1beta1.SecretBindingList{}
	if err := s.client.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return offer, fmt.Errorf("listing CredentialsBindings: %w", err)
	}
	if err := s.client.List(ctx, old, client.InNamespace(namespace)); err != nil {
		return offer, fmt.Errorf("listing SecretBindings: %w", err)
	}
	for _, binding := range bindings.Items {
		if binding.Provider.Type == profile.Type {
			offer.CredentialsBindings = append(offer.CredentialsBindings, binding.Name)
		}
	}
	for _, binding := range old.Items {
		if binding.Provider != nil && slices.Contains(strings.Split(binding.Provider.Type, ","), profile.Type) {
			offer.SecretBindings = append(offer.SecretBindings, binding.Name)
		}
	}
	offer.Networking = s.networkPlugins(ctx, namespace)
	return offer, nil
}

// networkPlugins are the types that are known: those of the garden's extensions for operators, who alone may read them,
// and for others those of the project's shoots. Not to know them is no error.
func (s *Session) networkPlugins(ctx context.Context, namespace string) []string {
	var types []string
	registrations, shoots := &gardencorev1beta1.ControllerRegistrationList{}, &gardencorev1beta1.ShootList{}
	if err := s.client.List(ctx, registrations); err == nil {
		for _, registered := range registrations.Items {
			for _, resource := range registered.Spec.Resources {
				if resource.Kind == extensionsv1alpha1.NetworkResource {
					types = append(types, resource.Type)
				}
			}
		}
	} else if err := s.client.List(ctx, shoots, client.InNamespace(namespace)); err == nil {
		for _, shoot := range shoots.Items {
			if networking := shoot.Spec.Networking; networking != nil && deref(networking.Type) != "" {
				types = append(types, *networking.Type)
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}
