package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// dependents predicts the bindings of what the predicted ones take along, now or then.
func (p *predictor) dependents(ctx context.Context) {
	referrers := make([]types.NamespacedName, 0, len(p.predicted))
	for key := range p.predicted {
		referrers = append(referrers, key)
	}
	slices.SortFunc(referrers, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, referrer := range referrers {
		p.detach(referrer, p.attach(ctx, referrer))
	}
}

// attach enters a referrer into the bindings of all that it takes along, and gives their keys.
func (p *predictor) attach(ctx context.Context, referrer types.NamespacedName) map[types.NamespacedName]bool {
	attached := map[types.NamespacedName]bool{}
	then, o := p.predicted[referrer], p.outlooks[referrer]
	if then == nil || !then.BindingSpec().PropagateDeps {
		return attached
	}
	snapshot := references.SnapshotOf(referrer, then.BindingSpec())
	if snapshot == nil {
		return attached
	}
	refers, err := references.Of(ctx, p.Interpreter, o.Then)
	if errors.Is(err, references.ErrElsewhere) {
		o.change.note("what it does not take along: %v", err)
	} else if err != nil {
		o.change.note("what it takes along could not be found out: %v", err)
		return p.attachedNow(referrer)
	}
	for _, r := range refers {
		objects, err := p.Find(ctx, r)
		if err != nil {
			o.change.note("what it takes along could not be found out: %v", err)
			return p.attachedNow(referrer)
		}
		for _, object := range objects {
			found := Object{Now: object, Then: object}
			if found.key() == referrer || object.GetDeletionTimestamp() != nil || p.Skipped.Skips(object) {
				continue
			}
			attached[found.key()] = true
			p.require(found, func(b bindings.Binding) {
				spec := b.BindingSpec()
				spec.RequiredBy = references.WithSnapshot(spec.RequiredBy, referrer, snapshot)
			})
		}
	}
	return attached
}

// attachedNow are the keys of the bindings that list a referrer.
func (p *predictor) attachedNow(referrer types.NamespacedName) map[types.NamespacedName]bool {
	attached := map[types.NamespacedName]bool{}
	for key, b := range p.existing {
		for _, s := range b.BindingSpec().RequiredBy {
			if references.KeyOf(s) == referrer {
				attached[key] = true
			}
		}
	}
	return attached
}

// detach takes a referrer out of the bindings of all others.
func (p *predictor) detach(referrer types.NamespacedName, attached map[types.NamespacedName]bool) {
	for key := range p.attachedNow(referrer) {
		if attached[key] || p.current(key) == nil {
			continue
		}
		p.require(objectOf(p.current(key)), func(b bindings.Binding) {
			spec := b.BindingSpec()
			spec.RequiredBy = references.WithSnapshot(spec.RequiredBy, referrer, nil)
		})
	}
}

// require changes who requires an object. A binding that nobody requires and no policy claims is removed.
func (p *predictor) require(o Object, change func(bindings.Binding)) {
	if known, found := p.outlooks[o.key()]; found && known.Then == nil {
		return
	}
	p.outlookOf(o)
	var then bindings.Binding
	if current := p.current(o.key()); current != nil {
		if !bindings.IsFor(current, bindings.TemplateKeyOf(o.template(), o.template().GroupVersionKind())) {
			return
		}
		then = current.DeepCopyObject().(bindings.Binding)
	} else {
		then = bindings.NewFor(o.template())
	}
	change(then)
	if len(then.BindingSpec().RequiredBy) == 0 && !bindings.IsPlaced(then.BindingSpec()) && policyOf(then) == "" {
		then = nil
	}
	p.predicted[o.key()] = then
}
