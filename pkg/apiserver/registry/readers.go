package registry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"

	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// readersField is the field that holds an object's readers. No client selects by it, for it is not one of Kind.Fields.
const readersField = "readers"

// readersREST serves a kind of which everybody may list, and watch, what they are a reader of. An object appears in a
// watch when somebody becomes its reader, and is deleted from it when they cease to be.
type readersREST struct {
	*resourceREST
	resource   schema.GroupResource
	authorizer authorizer.Authorizer
}

// List implements rest.Lister.
func (r *readersREST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	restricted, err := r.restrict(ctx, options)
	if err != nil {
		return nil, err
	}
	return r.resourceREST.List(ctx, restricted)
}

// Watch implements rest.Watcher.
func (r *readersREST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	restricted, err := r.restrict(ctx, options)
	if err != nil {
		return nil, err
	}
	return r.resourceREST.Watch(ctx, restricted)
}

// restrict narrows a request to what the caller is a reader of, unless they have a right of their own to all that they
// ask for.
func (r *readersREST) restrict(ctx context.Context,
	options *metainternalversion.ListOptions) (*metainternalversion.ListOptions, error) {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	caller := attributes.GetUser()
	if caller == nil {
		return nil, apierrors.NewUnauthorized("nobody is logged in")
	}
	entitled, err := r.isEntitled(ctx, attributes)
	if err != nil || entitled {
		return options, err
	}
	// What seeds are told is complete: a seed that does not see a project yet tries again, and takes none for gone.
	if identity, isSeed := seedauthorizer.IdentityOf(caller); isSeed {
		return nil, apierrors.NewForbidden(r.resource, attributes.GetName(),
			fmt.Errorf("%s may only %s what belongs to its seed", identity, attributes.GetVerb()))
	}
	return readableOnly(options, caller)
}

// isEntitled tells whether the caller had the right to this very request if nobody had rights for being authenticated
// alone. An authorizer that fails is an error, for who may see all must not take what is not shown for gone.
func (r *readersREST) isEntitled(ctx context.Context, attributes authorizer.Attributes) (bool, error) {
	decision, _, err := r.authorizer.Authorize(ctx, withoutEverybody{attributes})
	switch {
	case decision == authorizer.DecisionAllow:
		return true, nil
	case err != nil:
		return false, apierrors.NewInternalError(fmt.Errorf("asking whether %q may %s all %s: %w",
			attributes.GetUser().GetName(), attributes.GetVerb(), r.resource, err))
	}
	return false, nil
}

// withoutEverybody is a request of somebody who is not in the group of everybody who is authenticated.
type withoutEverybody struct{ authorizer.Attributes }

// GetUser implements authorizer.Attributes.
func (w withoutEverybody) GetUser() user.Info {
	caller := w.Attributes.GetUser()
	return &user.DefaultInfo{
		Name: caller.GetName(), UID: caller.GetUID(), Extra: caller.GetExtra(),
		Groups: slices.DeleteFunc(slices.Clone(caller.GetGroups()),
			func(group string) bool { return group == user.AllAuthenticated }),
	}
}

// readableOnly adds to a request that the caller is a reader. The answer is one page, of now: whether a page is the
// last one, and where the next begins, would tell of objects that are not shown.
func readableOnly(options *metainternalversion.ListOptions,
	caller user.Info) (*metainternalversion.ListOptions, error) {
	restricted := &metainternalversion.ListOptions{}
	if options != nil {
		restricted = options.DeepCopy()
	}
	if restricted.Continue != "" || restricted.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, apierrors.NewResourceExpired("what you are a member of is listed as it is now, on one page: ask " +
			"again without continue and resourceVersionMatch=Exact")
	}
	restricted.Limit = 0
	mine := readerSelector(namesOf(caller))
	if restricted.FieldSelector == nil {
		restricted.FieldSelector = mine
	} else {
		restricted.FieldSelector = fields.AndSelectors(restricted.FieldSelector, mine)
	}
	return restricted, nil
}

// readerName is how a user, or a group, stands in the field of readers: on a line of its own, on which no name can end.
func readerName(kind, name string) string { return "\n" + kind + " " + strconv.Quote(name) + "\n" }

// namesOf are the names under which somebody can be a reader.
func namesOf(caller user.Info) []string {
	names := []string{readerName(rbacv1.UserKind, caller.GetName())}
	for _, group := range caller.GetGroups() {
		names = append(names, readerName(rbacv1.GroupKind, group))
	}
	return names
}

// readersOf is the field of readers. A service account is the user that it authenticates as.
func readersOf(subjects []rbacv1.Subject) string {
	var names strings.Builder
	for _, subject := range subjects {
		switch subject.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			names.WriteString(readerName(subject.Kind, subject.Name))
		case rbacv1.ServiceAccountKind:
			names.WriteString(readerName(rbacv1.UserKind,
				serviceaccount.MakeUsername(subject.Namespace, subject.Name)))
		}
	}
	return names.String()
}

// readerSelector selects the objects that have one of the names among their readers.
type readerSelector []string

var _ fields.Selector = readerSelector{}

// Matches implements fields.Selector.
func (s readerSelector) Matches(object fields.Fields) bool {
	readers := object.Get(readersField)
	return slices.ContainsFunc(s, func(name string) bool { return strings.Contains(readers, name) })
}

// Empty implements fields.Selector: it never selects everything.
func (s readerSelector) Empty() bool { return false }

// RequiresExactMatch implements fields.Selector.
func (s readerSelector) RequiresExactMatch(string) (value string, found bool) { return "", false }

// Transform implements fields.Selector. Names of fields are not translated.
func (s readerSelector) Transform(fields.TransformFunc) (fields.Selector, error) { return s, nil }

// Requirements implements fields.Selector: none that is about one value.
func (s readerSelector) Requirements() fields.Requirements { return nil }

// String implements fields.Selector. It is written into logs, which need not have all groups of a user.
func (s readerSelector) String() string { return readersField }

// DeepCopySelector implements fields.Selector.
func (s readerSelector) DeepCopySelector() fields.Selector { return slices.Clone(s) }
