package simulated

import (
	"slices"
	"strconv"
)

// discovery gives the documents that tell which APIs there are; nil for other paths.
func discovery(url string) object {
	switch url {
	case "/api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()}
	case "/api/v1":
		return resourcesOf("v1")
	}
	for _, r := range Resources {
		if url == "/apis/"+r.groupVersion() {
			return resourcesOf(r.groupVersion())
		}
		if r.Group != "" && url == "/apis/"+r.Group {
			return group(r)
		}
	}
	return nil
}

func groups() []object {
	var result []object
	var seen []string
	for _, r := range Resources {
		if r.Group != "" && !slices.Contains(seen, r.Group) {
			seen = append(seen, r.Group)
			result = append(result, group(r))
		}
	}
	return result
}

func group(r Resource) object {
	version := object{"groupVersion": r.groupVersion(), "version": r.Version}
	return object{
		"kind": "APIGroup", "apiVersion": "v1", "name": r.Group, "versions": []object{version},
		"preferredVersion": version,
	}
}

func resourcesOf(groupVersion string) object {
	resources := []object{}
	for _, r := range Resources {
		if r.groupVersion() == groupVersion {
			resources = append(resources, object{
				"name": r.Name, "kind": r.Kind, "namespaced": r.Namespaced, "singularName": "",
				"verbs": []string{"get", "list", "watch", "create", "update", "patch", "delete"},
			})
		}
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": resources}
}

// versionText is called with the lock held.
func (s *Server) versionText() string { return strconv.Itoa(s.version) }
