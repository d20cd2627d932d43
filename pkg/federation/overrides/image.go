package overrides

import (
	"regexp"
	"strings"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// image is the name of an image, taken apart.
type image struct {
	registry, repository, tag, digest string
}

var (
	tagPattern    = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// parseImage: the first part is a registry if it looks like a host.
func parseImage(name string) image {
	var i image
	name, i.digest, _ = strings.Cut(name, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name, i.tag = name[:colon], name[colon+1:]
	}
	first, rest, more := strings.Cut(name, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.registry, name = first, rest
	}
	i.repository = name
	return i
}

// String puts the name together again.
func (i image) String() string {
	var b strings.Builder
	if i.registry != "" {
		b.WriteString(i.registry + "/")
	}
	b.WriteString(i.repository)
	if i.tag != "" {
		b.WriteString(":" + i.tag)
	}
	if i.digest != "" {
		b.WriteString("@" + i.digest)
	}
	return b.String()
}

// override changes one component: add appends text to it.
func (i image) override(o policyv1alpha1.ImageOverrider) image {
	switch o.Component {
	case policyv1alpha1.ImageRegistry:
		i.registry = changed(i.registry, o)
	case policyv1alpha1.ImageRepository:
		i.repository = changed(i.repository, o)
	case policyv1alpha1.ImageTag:
		i = i.withVersion(changed(i.version(), o), o.Operator)
	}
	return i
}

func changed(part string, o policyv1alpha1.ImageOverrider) string {
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		return part + o.Value
	case policyv1alpha1.OverriderOpReplace:
		return o.Value
	}
	return ""
}

// version is what identifies the content: the tag, else the digest.
func (i image) version() string {
	if i.tag != "" {
		return i.tag
	}
	return i.digest
}

// withVersion sets a tag or a digest, whichever the text looks like, and drops the other. Other text changes nothing.
func (i image) withVersion(version string, operator policyv1alpha1.OverriderOperator) image {
	switch {
	case operator == policyv1alpha1.OverriderOpRemove:
		i.tag, i.digest = "", ""
	case tagPattern.MatchString(version):
		i.tag, i.digest = version, ""
	case digestPattern.MatchString(version):
		i.tag, i.digest = "", version
	}
	return i
}
