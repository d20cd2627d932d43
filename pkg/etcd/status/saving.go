package status

import "slices"

// Saving is what the member tells that saves the changes, of the several members of an etcd that have told something:
// the one that leads, and what others have done with the store while they led. Nil if none says that it leads.
func Saving(members []*Status) *Status {
	leader := slices.IndexFunc(members, func(s *Status) bool { return s.Leads })
	if leader < 0 {
		return nil
	}
	told := *members[leader]
	if told.Store == nil {
		return &told
	}
	store := *told.Store
	for _, member := range members {
		if member.Store != nil {
			store.Delta.takeLater(member.Store.Delta)
			store.Full.takeLater(member.Store.Full)
			store.Verification.takeLater(member.Store.Verification)
		}
	}
	told.Store = &store
	return &told
}

func (o *Operation) takeLater(other Operation) {
	if other.Succeeded.After(o.Succeeded) {
		*o = other
	}
}
