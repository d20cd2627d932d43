package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// DescribeProject tells all about the targeted project.
func (s *Session) DescribeProject(ctx context.Context, out io.Writer, now time.Time) error {
	if s.Target.Project == "" {
		return errors.New("no project is targeted: name one, for example `trellisctl describe project demo`")
	}
	project, err := s.Project(ctx, s.Target.Project)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Project %s\n\n", oneLine(project.Name))
	if err := projectFacts(out, project, now); err != nil {
		return err
	}
	if err := projectMembers(out, project); err != nil {
		return err
	}
	if err := describeConditions(out, "CONDITION", project.Status.Conditions, now); err != nil {
		return err
	}
	if deref(project.Spec.Namespace) != "" {
		fmt.Fprintln(out)
		shoots := *s
		shoots.Target = Target{Project: project.Name}
		l := shoots.lister(shootKind, &listing{}, out)
		l.now = func() time.Time { return now }
		if err := l.list(ctx); err != nil {
			return err
		}
	}
	return s.describeEvents(ctx, out, "Project", project, now)
}

func projectFacts(out io.Writer, project *gardencorev1beta1.Project, now time.Time) error {
	f := newFacts(out)
	f.tell("Namespace", orElse(deref(project.Spec.Namespace), "none yet"))
	f.tell("Phase", string(project.Status.Phase))
	f.tell("Description", deref(project.Spec.Description))
	f.tell("Purpose", deref(project.Spec.Purpose))
	if project.Spec.Owner != nil {
		f.tell("Owner", project.Spec.Owner.Name)
	}
	if project.Spec.CreatedBy != nil {
		f.tell("Created by", project.Spec.CreatedBy.Name)
	}
	f.tell("Created", ago(&project.CreationTimestamp, now))
	f.tell("Deleted", ago(project.DeletionTimestamp, now))
	f.tell("Last change", ago(project.Status.LastActivityTimestamp, now))
	f.tell("Unused since", ago(project.Status.StaleSinceTimestamp, now))
	if at := project.Status.StaleAutoDeleteTimestamp; at != nil {
		f.tell("Will be deleted", at.UTC().Format(time.RFC3339)+", unless it is used")
	}
	return f.Flush()
}

func projectMembers(out io.Writer, project *gardencorev1beta1.Project) error {
	if len(project.Spec.Members) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "MEMBER", "KIND", "ROLES")
	for _, member := range project.Spec.Members {
		name := member.Name
		if member.Namespace != "" {
			name = member.Namespace + "/" + name
		}
		roles := slices.Concat([]string{member.Role}, member.Roles)
		t.row(name, member.Kind, joined(", ", roles...))
	}
	return t.Flush()
}

// DescribeSeed tells all about the targeted seed.
func (s *Session) DescribeSeed(ctx context.Context, out io.Writer, now time.Time) error {
	if s.Target.Seed == "" {
		return errors.New("no seed is targeted: name one, for example `trellisctl describe seed local`")
	}
	seed, err := s.Seed(ctx, s.Target.Seed)
	if err != nil {
		return err
	}
	used, err := s.shootsBySeed(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Seed %s\n\n", oneLine(seed.Name))
	if err := seedFacts(out, seed, usedOf(seed, used(seed.Name)), now); err != nil {
		return err
	}
	if err := describeOperation(out, seed.Status.LastOperation, nil, now); err != nil {
		return err
	}
	if err := describeConditions(out, "CONDITION", seed.Status.Conditions, now); err != nil {
		return err
	}
	return s.describeEvents(ctx, out, "Seed", seed, now)
}

func seedFacts(out io.Writer, seed *gardencorev1beta1.Seed, shoots string, now time.Time) error {
	f := newFacts(out)
	f.tell("Provider", joined(", ", seed.Spec.Provider.Type, labelled("region", seed.Spec.Provider.Region)))
	f.tell("Zones", strings.Join(seed.Spec.Provider.Zones, ", "))
	f.tell("Kubernetes", deref(seed.Status.KubernetesVersion))
	if seed.Status.Gardener != nil {
		f.tell("Gardenlet", joined(" of ", seed.Status.Gardener.Version, seed.Status.Gardener.Name))
	}
	if expires := seed.Status.ClientCertificateExpirationTimestamp; expires != nil {
		f.tell("Certificate", "of gardenlet, until "+expires.UTC().Format(time.RFC3339))
	}
	f.tell("Shoots", shoots)
	f.tell("Taints", seedTaints(seed))
	if backup := seed.Spec.Backup; backup != nil {
		f.tell("Backups", joined(", ", backup.Provider, labelled("region", deref(backup.Region))))
	}
	f.tell("Networks", joined("; ", labelled("pods", seed.Spec.Networks.Pods),
		labelled("services", seed.Spec.Networks.Services), labelled("nodes", deref(seed.Spec.Networks.Nodes))))
	f.tell("Created", ago(&seed.CreationTimestamp, now))
	f.tell("Deleted", ago(seed.DeletionTimestamp, now))
	return f.Flush()
}
